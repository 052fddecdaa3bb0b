"""Counts of a good stretch in, a pinned baseline out: what is normal in each stratum, and how sure that is.

A baseline never moves by itself. It is a value: it can be stored as JSON and compared with another.
All means and spreads are in points of the dimension's scale, weighted to all traffic (Hajek).
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from monitor.detection.counts import Floats, SeriesCounts
from monitor.detection.critical_rate import ShareBaseline, pin_share
from monitor.intake.event import Moment, Value

HOURS_DAY, HOURS_WEEK = 24, 168
DAYS_FOR_HOURS_OF_DAY, DAYS_FOR_HOURS_OF_WEEK = 7, 21
_TIMES_SEEN = 2.85
"""How often an hour of the day or week must have had units, on average: a span's empty days teach nothing."""
_BORROWED = 30
"""Units of the dimension's common spread that each stratum borrows, so that few units do not look certain."""
_UNITS_MIN = 2
_VARIANCE_MIN = 0.01
"""Square points: a stratum that never varied in the span is not certain for all time."""
_SLOPE_SD = 0.5


class BaselinePolicy(BaseModel):
    """How a baseline is pinned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tolerance_points: Annotated[float, Field(ge=0, le=1)] = 0.03
    """The least change of a stratum's mean that is worth a word. Lower: small segments are found sooner,
    and the judge's own wander is told as news."""
    wander_factor: Annotated[float, Field(ge=0, le=5)] = 2.0
    """Standard deviations of the baseline's own wander that are tolerated."""
    error_factor: Annotated[float, Field(ge=0, le=5)] = 2.0
    """Standard errors of the baseline's own mean that are tolerated."""
    days_wanted: Annotated[float, Field(ge=0.25, le=60)] = 7.0
    """Days that a span should hold; fewer are pinned on request only."""
    units_min: Annotated[int, Field(ge=20)] = 200
    """Judged conversations without which a span is none."""


class StratumBaseline(Value):
    """What is normal in one stratum of one dimension."""

    mean: float
    variance: float
    """Of one unit, sum w^2 (x-m)^2 / sum w^2, so that a mean of units has se^2 = variance sum w^2 / (sum w)^2."""
    n: int
    weight: float
    """Sum of w: the conversations that it stands for."""
    weight_squares: float
    """Sum of w^2."""
    weight_max: float
    tolerance: float
    """Epsilon: how far the mean may fall before it counts as a change."""
    slope: float = 1.0
    """How much of the hours' profile it takes part in: less near the end of the scale."""

    @property
    def se(self) -> float:
        """Return the standard error of the mean."""
        return float(np.sqrt(self.variance * self.weight_squares)) / self.weight


class DimensionBaseline(Value):
    """What is normal in one dimension: its strata, its hours, its wander."""

    strata: dict[str, StratumBaseline]
    wander: float
    """Tau: standard deviation of the hourly mean, beyond sampling error and the hours' profile."""
    profile: tuple[float, ...] = (0.0,)
    """What an hour adds to a mean, times the stratum's slope: one value, 24 (of the day, UTC) or 168 (of the week)."""


class Baseline(Value):
    """What is normal for one scope, pinned from a span that someone vouched for."""

    scope_id: str
    label: str
    """What was accepted: a release, a judge's version."""
    start: Moment
    end: Moment
    bucket_minutes: int
    dimensions: dict[str, DimensionBaseline]
    shares: dict[str, ShareBaseline]

    @property
    def id(self) -> str:
        """Return the hash of all that it says, 12 hex digits."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=6).hexdigest()


class BaselineChange(Value):
    """One stratum of one dimension in two baselines; None where one of them does not know it."""

    dimension: str
    stratum: str
    mean_before: float | None
    mean: float | None
    z: float | None
    """The difference in its standard errors."""


def pin(
    series: Iterable[SeriesCounts], *, scope_id: str, label: str, policy: BaselinePolicy | None = None
) -> Baseline:
    """Pin what is normal from the overall series of every dimension and share, all of one span.

    Raises ValueError without a single unit.
    """
    found = [one for one in series if one.n]
    if not found:
        raise ValueError("a baseline needs judged units, and the span has none")
    first = found[0]
    minutes = first.bucket_minutes
    scored = {
        one.dimension: pin_dimension(one, policy or BaselinePolicy()) for one in found if _is_scored(one)
    }
    return Baseline(
        scope_id=scope_id,
        label=label,
        start=first.start,
        end=first.start + len(first.counts) * timedelta(minutes=minutes),
        bucket_minutes=minutes,
        dimensions=scored,
        shares={one.dimension: pin_share(one) for one in found if not _is_scored(one)},
    )


def pin_dimension(series: SeriesCounts, policy: BaselinePolicy) -> DimensionBaseline:
    """Return what is normal in one dimension, from its overall series."""
    strata, of, w = series.strata, series.stratum_of, series.weights
    totals = series.counts.sum(axis=0)
    each = np.eye(len(strata))[of].T
    n = each @ totals.sum(axis=1)
    weight, squares = each @ (w * totals.sum(axis=1)), each @ (w**2 * totals.sum(axis=1))
    mean = each @ (w * (totals @ series.values)) / np.maximum(weight, 1e-300)
    off = series.values - mean[of, None]
    spread = each @ (w**2 * (totals * off**2).sum(axis=1))
    common = max(float(spread.sum() / squares.sum()), _VARIANCE_MIN)
    variance = (n * spread / np.maximum(squares, 1e-300) + _BORROWED * common) / (n + _BORROWED)
    se = np.sqrt(variance * squares) / np.maximum(weight, 1e-300)

    hours = _Hours.of(series, mean[of], variance[of])
    profile = hours.profile()
    slope = _slopes(series, profile, mean, variance)
    swing = slope[of, None] * profile[cells_of(series, len(profile)).astype(np.intp)]
    wander = _Hours.of(series, mean[of], variance[of], swing).wander(np.zeros(1))
    tolerance = np.maximum.reduce(
        [
            np.full(len(strata), policy.tolerance_points),
            np.full(len(strata), policy.wander_factor * wander),
            policy.error_factor * se,
        ]
    )
    weight_max = [float(w[of == place].max()) for place in range(len(strata))]
    return DimensionBaseline(
        strata={
            stratum: StratumBaseline(
                mean=float(mean[i]),
                variance=float(variance[i]),
                n=int(n[i]),
                weight=float(weight[i]),
                weight_squares=float(squares[i]),
                weight_max=weight_max[i],
                tolerance=float(tolerance[i]),
                slope=float(slope[i]),
            )
            for i, stratum in enumerate(strata)
            if n[i] >= _UNITS_MIN
        },
        wander=wander,
        profile=tuple(float(value) for value in profile),
    )


def diff(before: Baseline, after: Baseline) -> tuple[BaselineChange, ...]:
    """Return every stratum of every dimension in two baselines, the largest worsening first."""
    changes = []
    for dimension in sorted({*before.dimensions, *after.dimensions}):
        old = _strata(before.dimensions, dimension)
        new = _strata(after.dimensions, dimension)
        changes += [
            _change(dimension, stratum, old.get(stratum), new.get(stratum))
            for stratum in sorted({*old, *new})
        ]
    return tuple(sorted(changes, key=lambda change: (change.z is None, change.z or 0.0)))


def cells_of(series: SeriesCounts, cells: int) -> Floats:
    """Return [bucket] which hour's cell of a profile of 1, 24 or 168 values each bucket falls into, in UTC."""
    start = series.start.weekday() * 1440 + series.start.hour * 60 + series.start.minute
    minutes = start + series.bucket_minutes * np.arange(len(series.counts))
    return (minutes // 60 % HOURS_WEEK % cells).astype(np.float64)


class _Hours:
    """The residual of every hour of the baseline from its strata's means, all strata together."""

    def __init__(self, residual: Floats, variance: Floats, cell: Floats, days: float) -> None:
        self.residual, self.variance, self.cell, self.days = residual, variance, cell, days

    @classmethod
    def of(
        cls, series: SeriesCounts, mean: Floats, variance: Floats, swing: Floats | None = None
    ) -> "_Hours":
        """Return the hours; `swing` [column, bucket] is taken off first."""
        w = series.weights
        n = series.counts.sum(axis=2)
        off = series.counts @ series.values - n * (mean if swing is None else mean + swing.T)
        week = cells_of(series, HOURS_WEEK)
        hour = np.cumsum(np.r_[0, np.diff(week) != 0])
        weight, total = np.bincount(hour, n @ w), np.bincount(hour, off @ w)
        squares = np.bincount(hour, n @ (w**2 * variance))
        known = weight > 0
        weight, cell = weight[known], week[np.r_[True, np.diff(hour) > 0]][known]
        days = len(series.counts) * series.bucket_minutes / 1440
        return cls(total[known] / weight, squares[known] / weight**2, cell, days)

    def profile(self) -> Floats:
        """Return what each hour adds, shrunk towards nothing as far as the hours' noise explains it."""
        if self.days < DAYS_FOR_HOURS_OF_DAY or not self._often(HOURS_DAY):
            return np.zeros(1)
        noise = self.variance + self.wander(np.zeros(1), HOURS_DAY) ** 2
        daily = _shrunk(self.residual, noise, self.cell % HOURS_DAY, HOURS_DAY)
        if self.days >= DAYS_FOR_HOURS_OF_WEEK and self._often(HOURS_WEEK):
            week = np.arange(HOURS_WEEK) % HOURS_DAY
            left = self.residual - daily[(self.cell % HOURS_DAY).astype(np.intp)]
            noise = self.variance + self.wander(np.zeros(1), HOURS_WEEK) ** 2
            weekly = _shrunk(left, noise, self.cell, HOURS_WEEK)
            if weekly.any():
                return weekly + daily[week]
        return daily if daily.any() else np.zeros(1)

    def _often(self, cells: int) -> bool:
        return len(self.cell) >= _TIMES_SEEN * len(np.unique(self.cell % cells))

    def wander(self, profile: Floats, cells: int = 1) -> float:
        """Return tau by the method of moments, hours weighted by their precision.

        With `cells` above one the mean of each hour's cell is taken off first.
        """
        left = self.residual - profile[(self.cell % len(profile)).astype(np.intp)]
        precision = self.variance**-2.0
        freedom = 1.0
        if cells > 1:
            place = (self.cell % cells).astype(np.intp)
            ones = np.bincount(place, minlength=cells)
            sums = np.bincount(place, left, minlength=cells)
            left = left - (sums / np.maximum(ones, 1))[place]
            freedom = 1 - float((ones > 0).sum()) / len(place)
        if freedom <= 0:
            return 0.0
        excess = (precision * (left**2 / freedom - self.variance)).sum() / precision.sum()
        return float(np.sqrt(max(excess, 0.0)))


def _slopes(series: SeriesCounts, profile: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return [stratum] the regression of its residual on the profile, shrunk towards 1, within 0 and 2."""
    of, w = series.stratum_of, series.weights
    hour = profile[cells_of(series, len(profile)).astype(np.intp)]
    n = series.counts.sum(axis=2)
    off = (series.counts @ series.values - n * mean[of]) * w
    each = np.eye(len(mean))[of]
    product, square = hour @ off @ each, hour**2 @ (n * w) @ each
    noise = variance * (hour**2 @ (n * w**2) @ each)
    # A slope's standard error is sqrt(noise) / square; the slopes' own spread around 1 is taken as _SLOPE_SD.
    trust = square**2 / np.maximum(noise / _SLOPE_SD**2 + square**2, 1e-300)
    own = product / np.maximum(square, 1e-300)
    slopes: Floats = np.clip(1 + trust * (own - 1), 0.0, 2.0)
    return slopes


def _shrunk(residual: Floats, noise: Floats, cell: Floats, cells: int) -> Floats:
    """Return the cells' effects by empirical Bayes (normal, moments); nothing if noise explains them all."""
    place = cell.astype(np.intp)
    precision = np.bincount(place, 1 / noise, minlength=cells)
    effect = np.bincount(place, residual / noise, minlength=cells) / np.maximum(precision, 1e-300)
    seen = precision > 0
    chi2, freedom = float((effect[seen] ** 2 * precision[seen]).sum()), float(seen.sum())
    if chi2 <= freedom + 3 * np.sqrt(2 * freedom):
        return np.zeros(cells)
    noise_of = 1 / np.maximum(precision, 1e-300)
    between = max(float((effect[seen] ** 2 - noise_of[seen]).mean()), 0.0)
    shrunk: Floats = np.where(seen, effect * between / (between + noise_of), 0.0)
    return shrunk


def _is_scored(series: SeriesCounts) -> bool:
    return bool(series.values.max() > 1)


def _strata(dimensions: Mapping[str, DimensionBaseline], dimension: str) -> Mapping[str, StratumBaseline]:
    known = dimensions.get(dimension)
    return known.strata if known else {}


def _change(
    dimension: str, stratum: str, old: StratumBaseline | None, new: StratumBaseline | None
) -> BaselineChange:
    z = None
    if old is not None and new is not None:
        z = (new.mean - old.mean) / max(float(np.hypot(old.se, new.se)), 1e-12)
    return BaselineChange(
        dimension=dimension,
        stratum=stratum,
        mean_before=old.mean if old else None,
        mean=new.mean if new else None,
        z=z,
    )
