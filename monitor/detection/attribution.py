"""Counts before and since an onset in, what changed where out: quality within groups and their mix, adding up.

Kitagawa's decomposition (1955) of a difference of weighted means. With shares p and means x of each group,
before (0) and since (1), bars for the mean of both times, and G = sum of pbar xbar:

    within_i = pbar_i (x1_i - x0_i)        mix_i = (p1_i - p0_i) (xbar_i - G)
    sum of within + sum of mix = mean since - mean before, exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from monitor.detection.baseline import DimensionBaseline
from monitor.detection.counts import SeriesCounts

Totals = Mapping[str, tuple[float, float]]
"""Group -> sum of w, sum of w x."""


@dataclass(frozen=True)
class Part:
    """What one group contributes to a change, in points of the whole mean."""

    group: str
    within: float
    mix: float
    share_before: float
    share: float
    mean_before: float | None
    """None where the group had no unit."""
    mean: float | None


@dataclass(frozen=True)
class Attribution:
    """A change of a mean, taken apart; the parts with the most worsening first."""

    change: float
    parts: tuple[Part, ...]

    @property
    def within(self) -> float:
        """Return what quality within the groups contributes."""
        return sum(part.within for part in self.parts)

    @property
    def mix(self) -> float:
        """Return what a change of the groups' shares contributes."""
        return sum(part.mix for part in self.parts)


@dataclass(frozen=True)
class Onset:
    """Since when, at the grain of a bucket."""

    at: datetime
    low: datetime
    high: datetime


def attribute(before: Totals, since: Totals) -> Attribution | None:
    """Take the change of the whole mean apart by groups; None if one side has no unit."""
    groups = sorted({*before, *since})
    totals = np.array([(*before.get(g, (0.0, 0.0)), *since.get(g, (0.0, 0.0))) for g in groups]).reshape(
        -1, 4
    )
    weight0, sum0, weight1, sum1 = totals.T
    if not weight0.sum() or not weight1.sum():
        return None
    share0, share1 = weight0 / weight0.sum(), weight1 / weight1.sum()
    own0, own1 = sum0 / np.where(weight0, weight0, 1), sum1 / np.where(weight1, weight1, 1)
    # A group that is new or gone has one mean only: all that it contributes is mix.
    mean0, mean1 = np.where(weight0, own0, own1), np.where(weight1, own1, own0)
    share, mean = (share0 + share1) / 2, (mean0 + mean1) / 2
    within = share * (mean1 - mean0)
    mix = (share1 - share0) * (mean - share @ mean)
    parts = [
        Part(
            group=group,
            within=float(within[i]),
            mix=float(mix[i]),
            share_before=float(share0[i]),
            share=float(share1[i]),
            mean_before=float(own0[i]) if weight0[i] else None,
            mean=float(own1[i]) if weight1[i] else None,
        )
        for i, group in enumerate(groups)
    ]
    parts.sort(key=lambda part: (part.within + part.mix, part.group))
    return Attribution(
        change=float(sum1.sum() / weight1.sum() - sum0.sum() / weight0.sum()), parts=tuple(parts)
    )


def totals_by_stratum(series: SeriesCounts) -> Totals:
    """Return the totals of a series by stratum."""
    units = series.counts.sum(axis=0)
    weight = series.weights * units.sum(axis=1)
    scores = series.weights * (units @ series.values)
    return _added(
        [
            (stratum, float(w), float(x))
            for (stratum, _), w, x in zip(series.columns, weight, scores, strict=True)
        ]
    )


def baseline_totals(baseline: DimensionBaseline) -> Totals:
    """Return the totals of the pinned span by stratum, from the baseline alone."""
    return {stratum: (one.weight, one.weight * one.mean) for stratum, one in baseline.strata.items()}


def by_attribute(totals: Totals, place: int, name: str) -> Totals:
    """Return the totals of strata by the attribute at one place of them (0: the first), called by its name."""
    return _added(
        [
            (f"{name}={stratum.split(',')[place]}", weight, scores)
            for stratum, (weight, scores) in totals.items()
        ]
    )


def onset(series: SeriesCounts, row: int, low: int, high: int) -> Onset:
    """Return rows of an assessment as times."""
    bucket = timedelta(minutes=series.bucket_minutes)
    return Onset(series.start + row * bucket, series.start + low * bucket, series.start + high * bucket)


def _added(rows: Sequence[tuple[str, float, float]]) -> Totals:
    total: dict[str, tuple[float, float]] = {}
    for group, weight, scores in rows:
        before = total.get(group, (0.0, 0.0))
        total[group] = (before[0] + weight, before[1] + scores)
    return {group: sums for group, sums in total.items() if sums[0]}
