"""Wealth of bets in, evidence out; evidence of many series in, those that may speak out, one incident per cause.

e-d-BH (Dandapanthula and Ramdas, arXiv 2501.04130): with the evidence of N series sorted, the k largest speak
for the largest k with E_(k) >= ln(N exp(h0) / k). It holds under any dependence between the series.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.detection.counts import Floats, Integers, SeriesKey
from monitor.windows.bucket import OVERALL

CAP = 0.9
"""The most of its wealth that a bet may lose on one unit."""


@dataclass(frozen=True)
class Incident:
    """One series that speaks, with those that it speaks for."""

    series: SeriesKey
    evidence: float
    explained_by: tuple[SeriesKey, ...] = ()
    """Other series of its dimension that would speak, the strongest first."""


def paths(gained: Floats, start: Integers) -> Floats:
    """Return [series, bet, bucket + 1] log wealth, of what each bucket [series, bucket, bet] adds to it.

    Rows before the start [series] hold infinity. Buckets come last: all that follows runs along them.
    """
    n, buckets, bets = gained.shape
    wealth = np.zeros((n, bets, buckets + 1))
    gained.swapaxes(1, 2).cumsum(axis=2, out=wealth[..., 1:])
    before = np.arange(buckets + 1) < start[:, None]
    np.copyto(wealth, np.inf, where=before[:, None])
    return wealth


def onset_between(path: Floats, onset: Integers, start: Integers, nats: float) -> tuple[Integers, Integers]:
    """Return the first and last row [series] that are likely onsets too, of log likelihood paths [series, bucket + 1].

    They lie within so many nats of the onset's row, which is a lowest one.
    """
    near = path <= path[np.arange(len(path)), onset][:, None] + nats
    # A row's gain may stem from a change within the bucket before it.
    low = np.maximum(near.argmax(axis=1) - 1, start)
    return low, path.shape[1] - 1 - near[:, ::-1].argmax(axis=1)


def log_sr(wealth: Floats) -> Floats:
    """Return the e-SR evidence E [series] of `paths`.

    It is log of the mean over bets of the sum over starts k < t of exp(A_t - A_k); without a change P(E > h in n
    evaluations) <= n exp(-h) (Shin, Ramdas, Rinaldo, arXiv 2203.03532).
    """
    gained = wealth[..., -1:] - wealth[..., :-1]
    top = gained.max(axis=(1, 2), initial=-700.0)
    total: Floats = np.exp(gained - top[:, None, None]).sum(axis=(1, 2)) / wealth.shape[1]
    with np.errstate(divide="ignore"):
        logs: Floats = top + np.log(total)
    return logs


def trimmed_of(wealth: Floats, blip: int, *, share: float = 0.0) -> tuple[Integers, Floats, Integers]:
    """Return k^ [series, bet], T [series] and the bet with the most evidence [series], of `paths`.

    k^ is the last lowest row of a path; T is what was gained since, without the best `blip` buckets of it. Where
    that is less than a `share` of what those buckets gained, it is chance beside a blip, and counts as nothing.
    """
    last = wealth.shape[2] - 1
    lowest = last - wealth[..., ::-1].argmin(axis=2)
    gained = wealth[..., -1] - wealth.min(axis=2)
    if blip > last:
        return lowest, np.zeros(len(wealth)), gained.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        stretch = wealth[..., blip:] - wealth[..., :-blip]
    inside = np.arange(stretch.shape[2]) >= lowest[..., None]
    worst = stretch.max(axis=2, where=inside, initial=-np.inf)
    # Shorter than a blip: nothing is left.
    longer = np.isfinite(worst)
    taken = np.where(longer, worst, 0.0)
    left = np.where(longer & (gained - taken > share * taken), gained - taken, 0.0)
    return lowest, left.max(axis=1), gained.argmax(axis=1)


def patience(*, evaluations_per_month: float, false_per_month: float) -> float:
    """Return h0 of one series, in nats: ln(evaluations a month / false findings a month that are bearable)."""
    return math.log(evaluations_per_month / false_per_month)


def threshold(series: int, h0: float, rank: int = 1) -> float:
    """Return the evidence that the series of this rank needs among so many."""
    return h0 + math.log(series / rank)


def half_for_all(series: Collection[SeriesKey]) -> dict[SeriesKey, float]:
    """Return the log of the weights by which half of a budget is for all traffic, and half for its segments.

    With weights whose mean is 1 the bound is the same (weighted e-BH: Wang and Ramdas, arXiv 2009.02824).
    """
    whole = sum(segment == OVERALL for _, segment in series)
    parts = len(series) - whole
    if not whole or not parts:
        return dict.fromkeys(series, 0.0)
    return {key: math.log(len(series) / 2 / (whole if key[1] == OVERALL else parts)) for key in series}


def speaking(evidence: Mapping[SeriesKey, float], h0: float) -> frozenset[SeriesKey]:
    """Return the series whose evidence, with its weight, is enough among all live ones, which must all be given."""
    ranked = sorted(evidence, key=lambda key: (-evidence[key], key))
    enough = [rank for rank, key in enumerate(ranked, 1) if evidence[key] >= threshold(len(ranked), h0, rank)]
    return frozenset(ranked[: enough[-1]] if enough else ())


def incidents(fired: Collection[SeriesKey], evidence: Mapping[SeriesKey, float]) -> tuple[Incident, ...]:
    """Return one incident per cause, the strongest first.

    Where the overall series of a dimension fires, its segments are its explanation. Where it does not, the
    segment with the most evidence leads; other values of the same key (another intent) are incidents of their
    own, and values of other keys (the prompt that this intent was answered with) explain the leader.
    """
    found: list[Incident] = []
    for dimension in sorted({name for name, _ in fired}):
        mine = sorted((key for key in fired if key[0] == dimension), key=lambda key: (-evidence[key], key))
        leader = (dimension, OVERALL) if (dimension, OVERALL) in mine else mine[0]
        beside = [key for key in mine if key != leader and leader[1] != OVERALL and _key(key) == _key(leader)]
        explained = tuple(key for key in mine if key != leader and key not in beside)
        found.append(Incident(leader, evidence[leader], explained))
        found += [Incident(key, evidence[key]) for key in beside]
    return tuple(sorted(found, key=lambda incident: (-incident.evidence, incident.series)))


def _key(series: SeriesKey) -> str:
    return series[1].partition("=")[0]
