"""Scores of a cheap judge over all and of an expensive one over some in, one mean with its interval out.

The two-phase difference estimate: the cheap judge's mean over all, plus the weighted mean of (expensive - cheap)
over those that both judged. The cheap part counts by `power`, chosen so that the variance is least: a cheap judge
that knows nothing gets 0, and what is left is the expensive judge alone.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.intake.event import Value
from monitor.judging.rubric import SCORE_MAX, SCORE_MIN
from monitor.windows.bucket import PAIR, BucketCounts
from monitor.windows.window import Z_95

BOTH_MIN = 30
"""Units that both judged below which no interval is to be trusted, and none is given."""
_Array = NDArray[np.float64]


class Cheap(NamedTuple):
    """What the cheap judge said of some units of one sampling rate."""

    score: float
    rate: float


class Both(NamedTuple):
    """What both said; `probability` is that with which the expensive judge was asked."""

    cheap: float
    expensive: float
    rate: float
    probability: float


class TwoPhase(Value):
    """The mean that the expensive judge would give over all, with its 95 % interval."""

    dimension: str
    n: int
    """Units that the cheap judge scored."""
    n_both: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    power: float | None = None
    """How much the cheap judge counts: 1 is the plain difference estimate, 0 the expensive judge alone."""
    cheap_mean: float | None = None
    expensive_alone: float | None = None
    """The weighted mean of the expensive judge over what it saw."""
    standard_error: float | None = None
    standard_error_alone: float | None = None


def two_phase(dimension: str, cheap: Mapping[Cheap, int], both: Mapping[Both, int]) -> TwoPhase:
    """Estimate from counted units; `cheap` counts all of them, those that both judged among them."""
    n, n_both = sum(cheap.values()), sum(both.values())
    if not n or not n_both:
        return TwoPhase(dimension=dimension, n=n, n_both=n_both)
    units = _units(cheap, both)
    power = float(np.clip(_power(units), 0.0, 1.0))
    mean = power * units.cheap_mean + units.expensive_mean - power * units.cheap_mean_both
    error = _error(units, power)
    enough = n_both >= BOTH_MIN
    return TwoPhase(
        dimension=dimension,
        n=n,
        n_both=n_both,
        mean=min(max(mean, SCORE_MIN), SCORE_MAX),
        low=max(mean - Z_95 * error, SCORE_MIN) if enough else None,
        high=min(mean + Z_95 * error, SCORE_MAX) if enough else None,
        power=power,
        cheap_mean=units.cheap_mean,
        expensive_alone=units.expensive_mean,
        standard_error=error,
        standard_error_alone=_error(units, 0.0),
    )


def two_phase_of(first: BucketCounts, second: BucketCounts, dimension: str, segment: str) -> TwoPhase:
    """Estimate from merged buckets: the first stage's scope, and the second's, which knows the pairs."""
    cheap: dict[Cheap, int] = defaultdict(int)
    for cell, count in first.items():
        if cell.dimension == dimension and cell.segment == segment and cell.mark.isdigit():
            cheap[Cheap(float(cell.mark), float(cell.rate))] += count
    both: dict[Both, int] = defaultdict(int)
    for cell, count in second.items():
        if cell.dimension == PAIR + dimension and cell.segment == segment:
            said, _, probability = cell.mark.partition("@")
            low, _, high = said.partition(">")
            both[Both(float(low), float(high), float(cell.rate), float(probability))] += count
    return two_phase(dimension, cheap, both)


class _Units(NamedTuple):
    """Units in groups of equals. `asked` is the inverse probability, 0 for those that only one judged."""

    cheap: _Array
    expensive: _Array
    weight: _Array
    asked: _Array
    times: _Array
    cheap_mean: float
    cheap_mean_both: float
    expensive_mean: float


def _units(cheap: Mapping[Cheap, int], both: Mapping[Both, int]) -> _Units:
    left: dict[Cheap, int] = dict(cheap)
    rows = []
    for pair, count in both.items():
        rows.append((pair.cheap, pair.expensive, 1 / pair.rate, 1 / pair.probability, count))
        alone = Cheap(pair.cheap, pair.rate)
        # Late buckets may know a pair before its first half; it counts as a unit all the same.
        left[alone] = max(0, left.get(alone, 0) - count)
    rows += [(one.score, 0.0, 1 / one.rate, 0.0, count) for one, count in left.items() if count]
    x, y, weight, asked, times = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    all_of_them, seen = weight * times, weight * asked * times
    return _Units(
        cheap=x,
        expensive=y,
        weight=weight,
        asked=asked,
        times=times,
        cheap_mean=float((all_of_them * x).sum() / all_of_them.sum()),
        cheap_mean_both=float((seen * x).sum() / seen.sum()),
        expensive_mean=float((seen * y).sum() / seen.sum()),
    )


def _influences(units: _Units) -> tuple[_Array, _Array]:
    """Return what each unit does to the expensive mean, and to the cheap correction of it."""
    own = units.weight * units.asked * (units.expensive - units.expensive_mean)
    correction = units.weight * (
        (units.cheap - units.cheap_mean) - units.asked * (units.cheap - units.cheap_mean_both)
    )
    return own, correction


def _power(units: _Units) -> float:
    own, correction = _influences(units)
    spread = float((units.times * correction**2).sum())
    return -float((units.times * own * correction).sum()) / spread if spread else 0.0


def _error(units: _Units, power: float) -> float:
    own, correction = _influences(units)
    total = float((units.weight * units.times).sum())
    n_both = float(units.times[units.asked > 0].sum())
    squares = float((units.times * (own + power * correction) ** 2).sum())
    # Two means and the power were taken from the units that both judged.
    freedom = n_both / (n_both - 3) if n_both > 3 else n_both  # noqa: PLR2004 - three figures
    return math.sqrt(squares * freedom) / total
