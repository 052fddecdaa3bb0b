"""Buckets in, a window with its figures out: estimates for all traffic beside what was counted."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from monitor.judging.rubric import CRITICAL_MAX, PASS_MIN, SCORE_MAX, SCORE_MIN
from monitor.windows.bucket import (
    ABSTAINED,
    CRITICAL,
    CRITICAL_NO,
    CRITICAL_YES,
    FAILED,
    OVERALL,
    PAIR,
    THINNED,
    BucketCounts,
    Cell,
)

Z_95 = 1.959964


@dataclass(frozen=True, slots=True)
class WindowStats:
    """The figures of one dimension in one segment. None stands where nothing was counted; it is not zero."""

    dimension: str
    segment: str
    n: int
    """Judged units with a score (for `critical`: judged units)."""
    abstained: int
    judged: int
    """Judged units of the segment, whatever the dimension said."""
    failed: int
    """Units of the segment that no judge could judge."""
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    pass_at_4: float | None
    critical_rate: float | None
    mean_unweighted: float | None
    pass_at_4_unweighted: float | None
    critical_rate_unweighted: float | None
    weight: float
    """The conversations that the scored units stand for."""
    bounds: tuple[float, float] | None = None
    """Between which the weighted mean lies whatever the missing ones (failed, expired, abstained) would score."""
    thinned: int = 0
    """Units that a budget left out; the judged ones stand for them, so they are missing nowhere."""

    @property
    def coverage(self) -> float | None:
        """Return the share of the units that were judged; None if there were none."""
        total = self.judged + self.failed
        return self.judged / total if total else None


@dataclass(frozen=True)
class Window:
    """Merged buckets from `start` up to `end`."""

    start: datetime
    end: datetime
    counts: BucketCounts

    @property
    def units(self) -> int:
        """Return the units judged, whole ones."""
        return sum(
            count
            for cell, count in self.counts.items()
            if cell.dimension == CRITICAL
            and cell.segment == OVERALL
            and cell.mark in {CRITICAL_NO, CRITICAL_YES}
        )


def merged(buckets: Iterable[BucketCounts]) -> BucketCounts:
    """Return the sum of buckets; the order does not matter, and a sum of nothing is empty."""
    total: dict[Cell, int] = {}
    known = total.get
    for bucket in buckets:
        for cell, count in bucket.items():
            total[cell] = known(cell, 0) + count
    return {cell: count for cell, count in total.items() if count}


def window(buckets: Mapping[datetime, BucketCounts], start: datetime, end: datetime) -> Window:
    """Return the window of the buckets that begin in [start, end)."""
    return Window(start, end, merged(counts for begin, counts in buckets.items() if start <= begin < end))


Classes = Mapping[tuple[str, str], int]
"""Counts by mark and rate."""


class _Units(NamedTuple):
    """What is known of whole units."""

    judged: int = 0
    failed: int = 0
    weight_failed: float = 0.0
    thinned: int = 0


Scored = Sequence[tuple[float, float, int]]
"""Score, weight and count of each class."""
_SCORES = tuple(str(score) for score in range(SCORE_MIN, SCORE_MAX + 1))


def all_stats(counts: BucketCounts) -> dict[tuple[str, str], WindowStats]:
    """Return the figures of every (dimension, segment) that the counts know."""
    series: dict[tuple[str, str], dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for (dimension, segment, _, mark, rate), count in counts.items():
        if dimension.startswith(PAIR):
            continue
        series[dimension, segment][mark, rate] += count
    units = {segment: _units(classes) for (name, segment), classes in series.items() if name == CRITICAL}
    return {
        (dimension, segment): _stats(dimension, segment, classes, units.get(segment, _Units()))
        for (dimension, segment), classes in series.items()
    }


def no_stats(dimension: str, segment: str) -> WindowStats:
    """Return the figures of a series without a single judgment."""
    return _stats(dimension, segment, {}, _Units())


def _units(classes: Classes) -> _Units:
    failed = sum(count for (mark, _), count in classes.items() if mark == FAILED)
    thinned = sum(count for (mark, _), count in classes.items() if mark == THINNED)
    judged = sum(classes.values()) - failed - thinned
    return _Units(judged, failed, _weight_of(classes, FAILED), thinned)


def _weight_of(classes: Classes, wanted: str) -> float:
    return math.fsum(_weight(rate) * count for (mark, rate), count in classes.items() if mark == wanted)


def _stats(dimension: str, segment: str, classes: Classes, units: _Units) -> WindowStats:
    marks = (CRITICAL_NO, CRITICAL_YES) if dimension == CRITICAL else _SCORES
    scored = [
        (float(mark), _weight(rate), count)
        for (mark, rate), count in sorted(classes.items())
        if mark in marks
    ]
    plain = [(score, 1.0, count) for score, _, count in scored]
    mean, low, high = _hajek(scored)
    mean_unweighted, _, _ = _hajek(plain)
    whole_units = dimension == CRITICAL
    bad = (1.0, 1.0) if whole_units else (SCORE_MIN, CRITICAL_MAX)
    return WindowStats(
        dimension=dimension,
        segment=segment,
        n=sum(count for _, _, count in scored),
        abstained=sum(count for (mark, _), count in classes.items() if mark == ABSTAINED),
        judged=units.judged,
        failed=units.failed,
        mean=None if whole_units else mean,
        mean_low=None if whole_units else low,
        mean_high=None if whole_units else high,
        pass_at_4=None if whole_units else _share(scored, PASS_MIN, SCORE_MAX),
        critical_rate=_share(scored, *bad),
        mean_unweighted=None if whole_units else mean_unweighted,
        pass_at_4_unweighted=None if whole_units else _share(plain, PASS_MIN, SCORE_MAX),
        critical_rate_unweighted=_share(plain, *bad),
        weight=math.fsum(weight * count for _, weight, count in scored),
        bounds=None if whole_units else _bounds(scored, _weight_of(classes, ABSTAINED) + units.weight_failed),
        thinned=units.thinned,
    )


@lru_cache(maxsize=4096)
def _weight(rate: str) -> float:
    return 1 / float(rate)


def _share(scored: Scored, low: float, high: float) -> float | None:
    total = math.fsum(weight * count for _, weight, count in scored)
    if not total:
        return None
    return math.fsum(weight * count for score, weight, count in scored if low <= score <= high) / total


def _bounds(scored: Scored, missing: float) -> tuple[float, float] | None:
    """Return the mean with all that is missing at the lowest score, and at the highest (Manski's bounds)."""
    total = math.fsum(weight * count for _, weight, count in scored) + missing
    if not total:
        return None
    known = math.fsum(weight * count * score for score, weight, count in scored)
    return (known + missing * SCORE_MIN) / total, (known + missing * SCORE_MAX) / total


def _hajek(scored: Scored) -> tuple[float | None, float | None, float | None]:
    """Return the ratio estimate of the mean with its linearised 95 % interval, which needs two units."""
    total = math.fsum(weight * count for _, weight, count in scored)
    if not total:
        return None, None, None
    mean = math.fsum(weight * count * score for score, weight, count in scored) / total
    n = sum(count for _, _, count in scored)
    if n < 2:  # noqa: PLR2004 - one unit has no spread
        return mean, None, None
    squares = math.fsum(count * (weight * (score - mean)) ** 2 for score, weight, count in scored)
    half = Z_95 * math.sqrt(squares * n / (n - 1)) / total
    return mean, max(mean - half, SCORE_MIN), min(mean + half, SCORE_MAX)
