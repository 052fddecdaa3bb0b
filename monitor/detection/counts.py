"""Buckets in, dense arrays out: what a series counted by bucket, by stratum and weight class, by mark.

A column is a (stratum, rate) pair that occurred, so an array is [bucket, column, mark] and holds no
empty products of strata and weight classes. Counts are whole numbers kept as float64 for the matrix
products that follow.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from monitor.judging.rubric import SCORE_MAX, SCORE_MIN
from monitor.windows.bucket import CRITICAL, CRITICAL_NO, CRITICAL_YES, PAIR, BucketCounts

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Flags = NDArray[np.bool_]
SeriesKey = tuple[str, str]
"""Dimension and segment."""
Column = tuple[str, str]
"""Stratum and rate, as a cell has them."""

SCORE_MARKS = tuple(str(score) for score in range(SCORE_MIN, SCORE_MAX + 1))
SHARE_MARKS = (CRITICAL_NO, CRITICAL_YES)
_SLACK_DAYS = 1
"""Rows kept free behind the newest bucket, so that the arrays move once a day and not with each bucket."""


@dataclass(frozen=True)
class SeriesCounts:
    """One series over consecutive buckets. `counts` is a view of the cache: read it, never write it."""

    dimension: str
    segment: str
    start: datetime
    """Where row 0 begins."""
    bucket_minutes: int
    columns: tuple[Column, ...]
    weights: Floats
    """[column] the conversations that one unit stands for, 1/rate."""
    values: Floats
    """[mark] the marks as numbers: scores 1 to 5, or 0 and 1 of a share."""
    counts: Floats
    """[bucket, column, mark] judged units."""

    @property
    def key(self) -> SeriesKey:
        """Return which series it is."""
        return self.dimension, self.segment

    @property
    def strata(self) -> tuple[str, ...]:
        """Return the strata that occur, sorted."""
        return tuple(sorted({stratum for stratum, _ in self.columns}))

    @property
    def stratum_of(self) -> Integers:
        """Return [column] the index of its stratum in `strata`."""
        place = {stratum: index for index, stratum in enumerate(self.strata)}
        return np.array([place[stratum] for stratum, _ in self.columns], dtype=np.intp)

    @property
    def heaviest(self) -> Floats:
        """Return [column] the largest weight of its stratum."""
        of = self.stratum_of
        largest = np.zeros(len(self.columns))
        np.maximum.at(largest, of, self.weights)
        return largest[of]

    @cached_property
    def by_column(self) -> Floats:
        """Return [column] the units counted."""
        # Rows first: that is the order in which they lie in memory.
        units: Floats = self.counts.sum(axis=0).sum(axis=1)
        return units

    @property
    def n(self) -> int:
        """Return the units counted."""
        return int(self.by_column.sum())

    def rows(self, first: int, last: int) -> "SeriesCounts":
        """Return the buckets [first, last) as a series of their own."""
        return SeriesCounts(
            dimension=self.dimension,
            segment=self.segment,
            start=self.start + first * timedelta(minutes=self.bucket_minutes),
            bucket_minutes=self.bucket_minutes,
            columns=self.columns,
            weights=self.weights,
            values=self.values,
            counts=self.counts[first:last],
        )


@dataclass
class CountsCache:
    """Dense arrays of one scope. It changes by `update` alone; whoever fills it reads only changed buckets."""

    bucket_minutes: int
    span: timedelta
    """How far back from the newest bucket rows are kept, at least."""
    shares: frozenset[str] = frozenset({CRITICAL})
    """Dimensions whose marks are 0 and 1."""
    _first: int | None = None
    _series: dict[SeriesKey, "_Dense"] = field(default_factory=dict)

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """Return every series seen, sorted."""
        return tuple(sorted(self._series))

    def update(self, changed: Mapping[datetime, BucketCounts]) -> int:
        """Put these buckets in the place of what was known of them; return how many were kept.

        A bucket must come whole, and an emptied one as an empty mapping. Older ones than `span` are dropped.
        """
        if not changed:
            return 0
        self._make_room(max(map(self._number, changed)))
        kept = 0
        for start, cells in changed.items():
            row = self._row(start)
            if row >= 0:
                self._fill(row, cells)
                kept += 1
        return kept

    def series(self, key: SeriesKey, start: datetime, end: datetime) -> SeriesCounts:
        """Return a series over the buckets in [start, end); what is not held was not counted."""
        known = self._series.get(key) or _Dense(0, self._marks(key[0]))
        first, last = self._row(start), self._row(end)
        counts = known.counts[: self._capacity, : len(known.columns)]
        if first < 0 or last > len(counts):
            # Asked for more than is held: the rest is empty, and this copy is the rare case.
            whole = np.zeros((last - first, *counts.shape[1:]))
            inner = counts[max(first, 0) : max(last, 0)]
            offset = max(-first, 0)
            whole[offset : offset + len(inner)] = inner
            counts, first, last = whole, 0, len(whole)
        return SeriesCounts(
            dimension=key[0],
            segment=key[1],
            start=start,
            bucket_minutes=self.bucket_minutes,
            columns=tuple(known.columns),
            weights=known.weights,
            values=known.values,
            counts=counts[first:last],
        )

    @property
    def _span_rows(self) -> int:
        return -(-self.span // timedelta(minutes=self.bucket_minutes))

    @property
    def _capacity(self) -> int:
        return self._span_rows + _SLACK_DAYS * 1440 // self.bucket_minutes

    def _number(self, start: datetime) -> int:
        return int(start.astimezone(UTC).timestamp()) // (60 * self.bucket_minutes)

    def _row(self, start: datetime) -> int:
        return self._number(start) - (self._first or 0)

    def _marks(self, dimension: str) -> tuple[str, ...]:
        return SHARE_MARKS if dimension in self.shares else SCORE_MARKS

    def _make_room(self, newest: int) -> None:
        if self._first is None:
            self._first = newest - self._span_rows + 1
        beyond = newest - self._first - self._capacity + 1
        if beyond <= 0:
            return
        # Far enough that a day's buckets follow before it moves again.
        moved = newest - self._span_rows + 1 - self._first
        self._first += moved
        for dense in self._series.values():
            dense.move(moved)
        # A prompt that served last week is a series that nobody will ask for again.
        self._series = {key: dense for key, dense in self._series.items() if dense.counts.any()}

    def _fill(self, row: int, cells: BucketCounts) -> None:
        for dense in self._series.values():
            dense.counts[row] = 0
        for (dimension, segment, stratum, mark, rate), count in cells.items():
            if dimension.startswith(PAIR):
                continue
            dense_or_none = self._series.get((dimension, segment))
            if dense_or_none is None:
                dense_or_none = _Dense(self._capacity, self._marks(dimension))
                self._series[dimension, segment] = dense_or_none
            dense_or_none.put(row, (stratum, rate), mark, count)


class _Dense:
    """The array of one series. Its columns are sorted, so that sums are the same whatever came first."""

    def __init__(self, rows: int, marks: tuple[str, ...]) -> None:
        self.values: Floats = np.array([float(mark) for mark in marks])
        self.columns: list[Column] = []
        self.weights: Floats = np.zeros(0)
        self.counts: Floats = np.zeros((rows, 0, len(marks)))
        self._place = {mark: index for index, mark in enumerate(marks)}

    def put(self, row: int, column: Column, mark: str, count: int) -> None:
        """Write one cell. A mark that is no value (an abstention, a failure) is no unit of the series."""
        place = self._place.get(mark)
        if place is None:
            return
        index = bisect_left(self.columns, column)
        if index == len(self.columns) or self.columns[index] != column:
            self.columns.insert(index, column)
            self.weights = np.insert(self.weights, index, 1 / float(column[1]))
            self.counts = np.insert(self.counts, index, 0.0, axis=1)
        self.counts[row, index, place] = count

    def move(self, rows: int) -> None:
        """Forget the oldest rows and make room for as many new ones."""
        kept = self.counts[rows:].copy()
        self.counts[:] = 0
        self.counts[: len(kept)] = kept
