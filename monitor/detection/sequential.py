"""One scope's buckets and its baseline in, what every series says now out. It remembers arrays, and no conclusion."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np

from monitor.detection.attribution import Onset, onset
from monitor.detection.baseline import Baseline
from monitor.detection.census import CENSUS
from monitor.detection.counts import Column, CountsCache, Flags, Floats, SeriesCounts, SeriesKey
from monitor.detection.critical_rate import assess_shares, share_increments
from monitor.detection.multiplicity import half_for_all, patience, speaking, threshold
from monitor.detection.policy import MINUTES_PER_MONTH, DetectionPolicy
from monitor.detection.regression import Payoffs, assess, increments, payoffs
from monitor.intake.moments import ceiling
from monitor.judging.drift import Shift
from monitor.windows.bucket import CRITICAL, OTHER, OVERALL, BucketCounts
from monitor.windows.window import Z_95

_SPREAD_UNITS_MIN = 2
_BLIPS_AWAITED = 3
"""Lengths of a blip for which segments wait for what is said of all traffic."""
_PAYOFFS_MAX = 4096
"""Payoffs remembered; each belongs to a series, a baseline and the columns that occur."""


def excuse(shift: Shift | None) -> float:
    """Return the end of a shift's interval that excuses most, in points; nothing where it may be no shift at all."""
    return shift.low if shift is not None and (shift.high < 0 or shift.low > 0) else 0.0


@dataclass(frozen=True)
class Reading:
    """What one series says at the end of its last bucket."""

    series: SeriesCounts
    """Over the rows that were looked at."""
    evidence: float
    threshold: float
    """What it needs if it is the first of so many series."""
    speaks: bool
    """Its evidence is enough among all, and the change goes on: it fires if it does not already."""
    onset: Onset
    effect: float
    """Weighted change since the onset: points, or share; nan without a unit since."""
    se: float
    """Its standard error, as far as the baseline knows the spread."""
    strata: Mapping[str, float]
    """What is normal, by stratum that the baseline knows."""
    pages: bool
    recovered: bool
    judged: int
    """Units of the newest stretch, that of a recovery."""

    @property
    def key(self) -> SeriesKey:
        """Return which series it is."""
        return self.series.key

    @property
    def is_share(self) -> bool:
        """Tell whether it is a share of something bad."""
        return len(self.series.values) == 2  # noqa: PLR2004 - 0 and 1

    @cached_property
    def n(self) -> int:
        """Return the units since the onset."""
        return self.since().n

    @cached_property
    def value(self) -> float:
        """Return the weighted mean or share since the onset, over the strata that the baseline knows."""
        return _mean(self.since(), self.strata)

    @property
    def low(self) -> float:
        """Return the lower end of the effect's 95 % interval."""
        return self.effect - self._half

    @property
    def high(self) -> float:
        """Return its upper end."""
        return self.effect + self._half

    @cached_property
    def _half(self) -> float:
        return Z_95 * self.se if self.is_share else half_width(self.since(), self.strata, self.se)

    def since(self) -> SeriesCounts:
        """Return the counts since the onset."""
        row = (self.onset.at - self.series.start) // timedelta(minutes=self.series.bucket_minutes)
        return self.series.rows(row, len(self.series.counts))


@dataclass
class SequentialDetector:
    """The detector of one scope. `read` is a function of the buckets, the baseline and what it is given."""

    policy: DetectionPolicy
    bucket_minutes: int
    counts_signals: bool = False
    """It reads shares over all traffic, and nothing that was judged; or the other way round."""
    _cache: CountsCache = field(init=False)
    _known: dict[datetime, BucketCounts] = field(default_factory=dict)
    _paid: dict[tuple[object, ...], Payoffs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin without a bucket."""
        self._cache = CountsCache(
            bucket_minutes=self.bucket_minutes, span=self.policy.window, shares=frozenset({CRITICAL, *CENSUS})
        )

    def update(self, buckets: Mapping[datetime, BucketCounts], *, start: datetime) -> int:
        """Take the buckets that begin at `start` or later; return how many were not known as they are."""
        # A store that remembers hands out the same object again, and then nothing is compared.
        changed = {
            begin: counts
            for begin, counts in buckets.items()
            if self._known.get(begin) is not counts and self._known.get(begin) != counts
        }
        emptied: dict[datetime, BucketCounts] = {
            begin: {} for begin in self._known if begin >= start and begin not in buckets
        }
        self._cache.update(changed | emptied)
        self._known = dict(buckets)
        return len(changed) + len(emptied)

    def read(
        self,
        baseline: Baseline,
        since: Mapping[SeriesKey, datetime],
        *,
        end: datetime,
        shifts: Mapping[str, Shift],
        share_of_budget: float = 1.0,
    ) -> dict[SeriesKey, Reading]:
        """Return what each live series says at a bucket's boundary; nothing before the end of the baseline.

        `since` has where evidence begins for series that have told of something; those named there are read even
        without a unit.
        """
        start = max(end - self.policy.window, ceiling(baseline.end, minutes=self.bucket_minutes))
        if start >= end:
            return {}
        live = self._live(baseline, start, end, since)
        rows = {key: _row(at, start, self.bucket_minutes) for key, at in since.items()}
        scored = [one for one in live if one.dimension in baseline.dimensions]
        shares = [one for one in live if one.dimension in baseline.shares]
        return self._scores(scored, baseline, rows, shifts, share_of_budget) | self._shares(
            shares, baseline, rows, share_of_budget
        )

    def _live(
        self, baseline: Baseline, start: datetime, end: datetime, named: Mapping[SeriesKey, datetime]
    ) -> list[SeriesCounts]:
        watched = (OVERALL, *self.policy.segments)
        found = [
            _occurring(self._cache.series(key, start, end))
            for key in {*self._cache.keys, *named}
            if _is_followed(key, named)
            and key[1].partition("=")[0] in watched
            and (key[0] in CENSUS) is self.counts_signals
            and (key[0] in baseline.dimensions or key[0] in baseline.shares)
        ]
        found = [(n, one) for n, one in found if n or one.key in named]
        found.sort(key=lambda one: (one[1].key not in named, one[1].segment != OVERALL, -one[0], one[1].key))
        return sorted((one for _, one in found[: self.policy.series_max]), key=lambda one: one.key)

    def _scores(
        self,
        series: list[SeriesCounts],
        baseline: Baseline,
        rows: Mapping[SeriesKey, int],
        shifts: Mapping[str, Shift],
        share_of_budget: float,
    ) -> dict[SeriesKey, Reading]:
        if not series:
            return {}
        policy = self.policy.regression
        baseline_id = baseline.id
        sums = increments([(one, self._payoffs(one, baseline, baseline_id, shifts)) for one in series])
        doubt = {name: excuse(shift) - shift.mean if excuse(shift) else 0.0 for name, shift in shifts.items()}
        found = assess(
            sums,
            policy,
            since=np.array([rows.get(one.key, 0) for one in series]),
            parts=np.array([one.segment != OVERALL for one in series]),
            doubt=np.array([doubt.get(one.dimension, 0.0) for one in series]),
        )
        h0 = self._patience(self.policy.false_pages_per_month * share_of_budget)
        evidence = {one.key: float(found.evidence[i]) for i, one in enumerate(series)}
        allowed = speaking(evidence, h0)
        # Something happened to all traffic, and may be forgiven as a blip: for a while its parts wait until that is
        # known, for it is most of their evidence too. Not for long: one of them may be falling by itself.
        awaited = len(series[0].counts) - _BLIPS_AWAITED * policy.blip_minutes // self.bucket_minutes
        undecided = {
            one.dimension
            for i, one in enumerate(series)
            if one.segment == OVERALL
            and one.key in allowed
            and found.onset[i] > awaited
            and not found.sustained[i]
        }
        speaks = found.sustained & ~found.recovered
        return {
            one.key: Reading(
                series=one,
                evidence=evidence[one.key],
                threshold=threshold(len(series), h0),
                speaks=one.key in allowed and bool(speaks[i]) and one.dimension not in undecided,
                onset=onset(one, int(found.onset[i]), int(found.onset_low[i]), int(found.onset_high[i])),
                effect=float(found.effect[i]),
                se=float(found.se[i]),
                strata={
                    name: known.mean for name, known in baseline.dimensions[one.dimension].strata.items()
                },
                pages=bool(found.pages[i]),
                recovered=bool(found.recovered[i]),
                judged=self._judged(one, policy.resolve_minutes),
            )
            for i, one in enumerate(series)
        }

    def _shares(
        self,
        series: list[SeriesCounts],
        baseline: Baseline,
        rows: Mapping[SeriesKey, int],
        share_of_budget: float,
    ) -> dict[SeriesKey, Reading]:
        if not series:
            return {}
        policy = self.policy.critical_rate
        sums = share_increments([(one, baseline.shares[one.dimension]) for one in series], policy)
        found = assess_shares(sums, policy, since=np.array([rows.get(one.key, 0) for one in series]))
        h0 = self._patience(self.policy.false_critical_per_month * share_of_budget)
        evidence = {one.key: float(found.evidence[i]) for i, one in enumerate(series)}
        weights = half_for_all(evidence)
        allowed = speaking({key: weights[key] + known for key, known in evidence.items()}, h0)
        effect = found.share - found.normal
        return {
            one.key: Reading(
                series=one,
                evidence=evidence[one.key],
                threshold=threshold(len(series), h0) - weights[one.key],
                speaks=one.key in allowed and bool(found.sustained[i]) and bool(effect[i] > 0),
                onset=onset(one, int(found.onset[i]), int(found.onset_low[i]), int(found.onset_high[i])),
                effect=float(effect[i]),
                se=float(found.se[i]),
                strata={name: known.share for name, known in baseline.shares[one.dimension].strata.items()},
                pages=True,
                recovered=bool(found.recovered[i]),
                judged=self._judged(one, policy.resolve_minutes),
            )
            for i, one in enumerate(series)
        }

    def _payoffs(
        self, series: SeriesCounts, baseline: Baseline, baseline_id: str, shifts: Mapping[str, Shift]
    ) -> Payoffs:
        excused = excuse(shifts.get(series.dimension))
        # The columns decide, not the segment: all segments of one mix share their payoffs.
        key = (baseline_id, series.dimension, series.columns, excused)
        paid = self._paid.get(key)
        if paid is None:
            if len(self._paid) >= _PAYOFFS_MAX:
                self._paid.clear()
            known = baseline.dimensions[series.dimension]
            paid = self._paid[key] = payoffs(series, known, self.policy.regression, judge_shift=excused)
        return paid

    def _patience(self, false_per_month: float) -> float:
        return patience(
            evaluations_per_month=MINUTES_PER_MONTH / self.bucket_minutes, false_per_month=false_per_month
        )

    def _judged(self, series: SeriesCounts, minutes: int) -> int:
        return int(series.counts[-max(minutes // self.bucket_minutes, 1) :].sum())


def half_width(series: SeriesCounts, strata: Mapping[str, float], se: float) -> float:
    """Return half the 95 % interval of an effect of scores, whose standard error is `se` by the baseline's spread."""
    # A fall makes answers differ more than they did in the baseline.
    return Z_95 * max(se, _spread(series, strata))


def _is_followed(key: SeriesKey, named: Mapping[SeriesKey, datetime]) -> bool:
    """Tell whether a segment is one thing: what came after a day's first values is another crowd each day."""
    return key in named or key[1].partition("=")[2] != OTHER


def _occurring(series: SeriesCounts) -> tuple[float, SeriesCounts]:
    """Return the units of a series, and it without the columns that have none.

    What an old bucket held must not change a bet.
    """
    by_column = series.by_column
    used: Flags = by_column > 0
    if used.all():
        return float(by_column.sum()), series
    columns: tuple[Column, ...] = tuple(
        column for column, keep in zip(series.columns, used, strict=True) if keep
    )
    # Indexing with `used` would turn the axes in memory, and each product after it copy them back.
    counts = series.counts.compress(used, axis=1)
    return float(by_column.sum()), replace(
        series, columns=columns, weights=series.weights[used], counts=counts
    )


def _mean(series: SeriesCounts, strata: Mapping[str, float]) -> float:
    known = np.array([stratum in strata for stratum, _ in series.columns], dtype=np.bool_)
    units: Floats = series.counts.sum(axis=0)[known]
    weights = series.weights[known]
    total = float(weights @ units.sum(axis=1))
    return float(weights @ (units @ series.values)) / total if total else float("nan")


def _spread(series: SeriesCounts, strata: Mapping[str, float]) -> float:
    """Return the standard error of the effect from the units themselves, linearised; 0 for a single one."""
    normal = np.array([strata.get(stratum, np.nan) for stratum, _ in series.columns])
    known = ~np.isnan(normal)
    units: Floats = series.counts.sum(axis=0)[known]
    w, off = series.weights[known], series.values - normal[known, None]
    n, total = float(units.sum()), float(w @ units.sum(axis=1))
    if n < _SPREAD_UNITS_MIN:
        return 0.0
    effect = float(w @ (units * off).sum(axis=1)) / total
    squares = float(w**2 @ (units * (off - effect) ** 2).sum(axis=1))
    return math.sqrt(squares * n / (n - 1)) / total


def _row(at: datetime, start: datetime, bucket_minutes: int) -> int:
    bucket = timedelta(minutes=bucket_minutes)
    # A bucket that had begun when the alert ended holds evidence from before.
    return max(-((start - at) // bucket), 0) if at > start else 0
