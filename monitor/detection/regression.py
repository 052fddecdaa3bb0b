"""Counts and a pinned baseline in, evidence of a sustained fall out: how sure, since when, how much.

The detector is a trimmed e-SR (Shin, Ramdas, Rinaldo, arXiv 2203.03532) of bets (Waudby-Smith and Ramdas,
2010.09686). A unit of stratum s with score x and weight w multiplies the wealth of a bet by

    1 + b w (m_s - eps_s - x),    0 <= b <= CAP / (w_max (best - m_s + eps_s)),

whose mean is at most 1 as long as the stratum's mean over all traffic is at least m_s - eps_s, whatever the
distribution and the mix. It keeps no running state: all is recomputed from the counts. Axes: [series, bucket,
bet]; scores in points, weights in conversations, evidence in nats.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from monitor.detection.baseline import DimensionBaseline, StratumBaseline
from monitor.detection.counts import Flags, Floats, Integers, SeriesCounts
from monitor.detection.multiplicity import CAP, log_sr, onset_between, paths, trimmed_of
from monitor.judging.rubric import SCORE_MAX
from monitor.windows.window import Z_95

_NEWEST_MAX = 192
"""Buckets that the newest stretch may reach back at most: two days of quarters."""
_SE_RESOLVE_MIN = 0.02
"""Points: the newest stretch need not be known better than this."""
Effects = tuple[Annotated[float, Field(gt=0, le=4)], ...]


class RegressionPolicy(BaseModel):
    """How sustained regressions are told from chance, mix and blips."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    effects_points: Annotated[Effects, Field(min_length=1)] = (0.12, 0.2, 0.35, 0.7)
    """The falls that bets are made for. More of them dilute each."""
    blip_minutes: Annotated[int, Field(ge=0, le=1440)] = 60
    """A fall of this length is forgiven. Longer: every real one is told later by as much."""
    trimmed_min_nats: Annotated[float, Field(ge=0)] = 3.0
    """Evidence that must be left of all traffic when the worst stretch of a blip's length is taken out."""
    trimmed_parts_min_nats: Annotated[float, Field(ge=0)] = 4.6
    """The same of a segment: they are many, and one of them is sooner unlucky beside a blip."""
    trimmed_min_share: Annotated[float, Field(ge=0, le=2)] = 0.25
    """The same as a share of what is taken out. A fall as deep all along must last so much longer than a blip."""
    page_points: Annotated[float, Field(ge=0, le=4)] = 0.35
    """The estimated fall that pages: half way between 0.2, a ticket, and 0.5, a page."""
    recent_minutes: Annotated[int, Field(ge=15, le=1440)] = 60
    """The newest stretch, which must be down too."""
    resolve_minutes: Annotated[int, Field(ge=15, le=1440)] = 120
    """The newest stretch that must be back before a firing series may resolve."""
    resolve_evaluations: Annotated[int, Field(ge=1, le=96)] = 3
    onset_nats: Annotated[float, Field(gt=0)] = 5.0
    """How much less likely than the best an onset may be and still lie in its interval."""


@dataclass(frozen=True)
class Payoffs:
    """What one unit adds to each running sum, for the columns of one series. Depends on no bucket."""

    rows: Floats
    """[cell of the profile, column * mark, bet + 5]: log wealth; then w, w (x-m), w^2 (x-m)^2, w^2 v and w eps."""
    se: Floats
    """[column] standard error of its stratum's baseline mean."""
    known: Flags
    """[column] whether the baseline knows its stratum; others neither help nor harm."""
    stratum_of: Integers
    """[column] the index of its stratum."""
    wander: float


@dataclass(frozen=True)
class Increments:
    """What each bucket adds, all series stacked."""

    wealth: Floats
    """[series, bucket, bet] log wealth."""
    weight: Floats
    """[series, bucket] sum of w."""
    residual: Floats
    """[series, bucket] sum of w (x - m): negative where quality fell."""
    squares: Floats
    """[series, bucket] sum of w^2 (x - m)^2."""
    variance: Floats
    """[series, bucket] sum of w^2 v: the sampling variance of `residual`."""
    tolerance: Floats
    """[series, bucket] sum of w eps."""
    se: Floats
    """[series] standard error of the baseline itself, at the mix of the whole span."""
    wander: Floats
    """[series] tau of the baseline's hours, in points."""
    bucket_minutes: int


@dataclass(frozen=True)
class Assessment:
    """What is known of every series at the end of its last bucket. Arrays over the series."""

    evidence: Floats
    """E: log of the e-SR mixture. Without a fall, P(E > h in n evaluations) <= n exp(-h)."""
    trimmed: Floats
    """T: the evidence left without its worst blip."""
    onset: Integers
    """Row of the first bucket of the fall."""
    onset_low: Integers
    onset_high: Integers
    effect: Floats
    """Weighted mean residual since the onset; negative is worse. nan where nothing was judged since."""
    se: Floats
    recent: Floats
    """Weighted mean residual of the newest stretch; nan without a unit in it."""
    sustained: Flags
    """Trimmed evidence is enough and the newest stretch is down: with E over its threshold, it fires."""
    pages: Flags
    """The fall is of the size that pages; otherwise it is a ticket."""
    recovered: Flags
    """A firing series resolves: back for long enough, several evaluations on end."""

    @property
    def low(self) -> Floats:
        """Return the lower end of the effect's 95 % interval."""
        return self.effect - Z_95 * self.se

    @property
    def high(self) -> Floats:
        """Return the upper end of the effect's 95 % interval."""
        return self.effect + Z_95 * self.se


def payoffs(
    series: SeriesCounts, baseline: DimensionBaseline, policy: RegressionPolicy, *, judge_shift: float = 0.0
) -> Payoffs:
    """Return what one unit of each column and score adds.

    `judge_shift` (points, negative for a judge that became harsher) moves what is normal: give the end of its
    interval that excuses most.
    """
    strata = [baseline.strata.get(stratum) for stratum, _ in series.columns]
    known = np.array([stratum is not None for stratum in strata], dtype=np.bool_)
    figures = np.array([_figures(stratum) for stratum in strata]).reshape(-1, 8)
    mean, variance, weight, squares, weight_max, tolerance, se, slope = figures.T
    w = series.weights * known
    # A rate that is lower than any before must not let a bet lose more than it has.
    weight_max = np.maximum(weight_max, series.heaviest * known)

    normal = mean + slope * np.array(baseline.profile)[:, None] + judge_shift
    lead = np.maximum(np.array(policy.effects_points)[:, None] - tolerance, 0.0)
    kelly = lead * weight / np.maximum(squares * (variance + lead**2), 1e-300)
    off = series.values - normal[:, :, None]  # [cell, column, mark]
    room = np.maximum(SCORE_MAX - normal + tolerance, 1e-9)
    bets = np.minimum(kelly, CAP / (np.maximum(weight_max, 1e-300) * room)[:, None])  # [cell, bet, column]
    gain = 1 - (bets * w)[..., None] * (off + tolerance[:, None])[:, None]
    rows = np.empty((*off.shape, len(policy.effects_points) + 5))
    rows[..., :-5] = np.moveaxis(np.log(np.where(known[:, None], gain, 1.0)), 1, -1)
    rows[..., -5] = w[:, None]
    rows[..., -4] = w[:, None] * off
    rows[..., -3] = (w[:, None] * off) ** 2
    rows[..., -2] = (w**2 * variance)[:, None]
    rows[..., -1] = (w * tolerance)[:, None]
    return Payoffs(
        rows=rows.reshape(len(normal), off.shape[1] * off.shape[2], -1),
        se=se,
        known=known,
        stratum_of=series.stratum_of,
        wander=baseline.wander,
    )


def increments(pairs: Sequence[tuple[SeriesCounts, Payoffs]]) -> Increments:
    """Return what each bucket adds, for series over the same buckets."""
    # Series by series, the plain sum before the product: so the counts come from memory once, and fast.
    found = [(_baseline_se(series, paid), _sums(series, paid)) for series, paid in pairs]
    sums = np.stack([each for _, each in found])
    return Increments(
        wealth=sums[..., :-5],
        weight=sums[..., -5],
        residual=sums[..., -4],
        squares=sums[..., -3],
        variance=sums[..., -2],
        tolerance=sums[..., -1],
        se=np.array([se for se, _ in found]),
        wander=np.array([paid.wander for _, paid in pairs]),
        bucket_minutes=pairs[0][0].bucket_minutes,
    )


def assess(
    found: Increments,
    policy: RegressionPolicy,
    *,
    since: Integers | None = None,
    parts: Flags | None = None,
    doubt: Floats | None = None,
) -> Assessment:
    """Return what is known of every series at the end of the last bucket.

    `since` [series] is the row from which evidence counts: the last resolve, or 0. `parts` [series] tells the segments
    from all traffic. `doubt` [series] is how many points lower the judge's shift was taken than it likely is: what
    excuses a fall is no reason to call it over.
    """
    n, buckets, _ = found.wealth.shape
    start = np.zeros(n, dtype=np.intp) if since is None else since
    wealth = paths(found.wealth, start)
    evidence = log_sr(wealth)
    lowest, trimmed, best = trimmed_of(
        wealth, policy.blip_minutes // found.bucket_minutes + 1, share=policy.trimmed_min_share
    )
    place = np.arange(buckets)
    rough, _ = _effect(found, place >= lowest[np.arange(n), best][:, None])
    onset, low, high = _onset(found, start, rough, policy.onset_nats)
    effect, se = _effect(found, place >= onset[:, None])
    recent, tolerance = _newest(found, least=policy.recent_minutes // found.bucket_minutes)
    of_parts = np.zeros(n, dtype=np.bool_) if parts is None else parts
    left = np.where(of_parts, policy.trimmed_parts_min_nats, policy.trimmed_min_nats)
    return Assessment(
        evidence=evidence,
        trimmed=trimmed,
        onset=onset,
        onset_low=low,
        onset_high=high,
        effect=effect,
        se=se,
        recent=recent,
        sustained=(trimmed > left) & (recent <= -tolerance),
        pages=effect <= -policy.page_points,
        recovered=_recovered(found, policy, effect, onset, np.zeros(n) if doubt is None else doubt),
    )


def whole(found: Increments) -> tuple[Floats, Floats]:
    """Return [series] the weighted mean residual over all buckets and its standard error; nan without a unit."""
    return _effect(found, np.ones(found.weight.shape, dtype=np.bool_))


def _figures(stratum: StratumBaseline | None) -> tuple[float, ...]:
    if stratum is None:
        return (0.0,) * 8
    s = stratum
    return s.mean, s.variance, s.weight, s.weight_squares, s.weight_max, s.tolerance, s.se, s.slope


def _sums(series: SeriesCounts, paid: Payoffs) -> Floats:
    """Return [bucket, bet + 5] what one series adds."""
    counts = series.counts.reshape(len(series.counts), -1)
    cells, buckets = len(paid.rows), len(counts)
    if cells == 1:
        only: Floats = counts @ paid.rows[0]
        return only
    per_hour = 60 // series.bucket_minutes
    minute = series.start.weekday() * 1440 + series.start.hour * 60 + series.start.minute
    sums = np.empty((buckets, paid.rows.shape[2]))
    first = 0
    while first < buckets:
        cell, late = divmod((minute // series.bucket_minutes + first) % (cells * per_hour), per_hour)
        # What is left of an hour, or whole hours within one cycle of the profile: then no counts are copied.
        hours = 1 if late else max(min((buckets - first) // per_hour, cells - cell), 1)
        last = min(first + hours * per_hour - late, buckets)
        by_hour = counts[first:last].reshape(hours, -1, counts.shape[1])
        sums[first:last] = (by_hour @ paid.rows[cell : cell + hours]).reshape(last - first, -1)
        first = last
    return sums


def _onset(
    found: Increments, start: Integers, effect: Floats, nats: float
) -> tuple[Integers, Integers, Integers]:
    """Return the likeliest onset of a fall by `effect` [series], with the first and last one nearly as likely.

    The log likelihood ratio of a bucket is that of its mean, normal with the known variance; the bets that found
    the fall are made to find, and lean to late onsets where they ask for more than there is.
    """
    n, buckets = found.weight.shape
    fall = np.minimum(np.nan_to_num(effect), 0.0)[:, None]
    precision = found.weight.sum(axis=1) / np.maximum(found.variance.sum(axis=1), 1e-300)
    gain = precision[:, None] * (fall * found.residual - fall**2 * found.weight / 2)
    path = np.concatenate([np.zeros((n, 1)), gain.cumsum(axis=1)], axis=1)
    path[np.arange(buckets + 1)[None, :] < start[:, None]] = np.inf
    onset = buckets - path[:, ::-1].argmin(axis=1)
    return onset, *onset_between(path, onset, start, nats)


def _effect(found: Increments, rows: Flags) -> tuple[Floats, Floats]:
    weight = (found.weight * rows).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = (found.residual * rows).sum(axis=1) / weight
        sampling = (found.variance * rows).sum(axis=1) / weight**2
    # The wander of an hour averages out over hours; what is left of it counts as error.
    hours = np.maximum(rows.sum(axis=1) * found.bucket_minutes / 60, 1e-9)
    se = np.sqrt(sampling + found.se**2 + found.wander**2 * np.minimum(1.0, 6 / hours))
    return effect, se


def _newest(
    found: Increments, *, least: int, ago: int = 0, se_max: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return residual and eps of the newest stretch that ended `ago` buckets before the last.

    It has `least` buckets, or as many more as it takes to know the residual to `se_max`.
    """
    end = found.weight.shape[1] - ago
    rows = slice(max(end - _NEWEST_MAX, 0), end)
    weight = found.weight[:, rows][:, ::-1].cumsum(axis=1)
    series = np.arange(len(weight))
    length = np.full(len(weight), min(least, weight.shape[1]) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if se_max is not None:
            se = np.sqrt(found.variance[:, rows][:, ::-1].cumsum(axis=1)) / weight
            enough = se <= se_max[:, None]
            reached = np.where(enough.any(axis=1), enough.argmax(axis=1), weight.shape[1] - 1)
            length = np.maximum(length, reached)
        residual = found.residual[:, rows][:, ::-1].cumsum(axis=1)[series, length] / weight[series, length]
        tolerance = found.tolerance[:, rows][:, ::-1].cumsum(axis=1)[series, length] / weight[series, length]
    return residual, tolerance


def _recovered(
    found: Increments, policy: RegressionPolicy, effect: Floats, onset: Integers, doubt: Floats
) -> Flags:
    """Tell where the newest stretch was back at each of the last evaluations.

    The stretch is long enough to tell the fall from its absence: a quiet series is not back by luck. Bad answers
    differ more than those of the baseline, and a few good ones among them are soon met with.
    """
    least = policy.resolve_minutes // found.bucket_minutes
    since = np.arange(found.weight.shape[1]) >= onset[:, None]
    squares, variance = (found.squares * since).sum(axis=1), (found.variance * since).sum(axis=1)
    spread = np.maximum(squares / np.maximum(variance, 1e-300), 1.0)
    # Where no fall is seen any more, the least one that bets are made for.
    fall = np.where(np.isnan(effect), min(policy.effects_points), np.abs(effect))
    se_max = np.maximum(np.minimum(fall / 4, fall / 2 / np.sqrt(spread)), _SE_RESOLVE_MIN)
    back = np.ones(len(effect), dtype=np.bool_)
    for ago in range(min(policy.resolve_evaluations, found.weight.shape[1])):
        residual, tolerance = _newest(found, least=least, ago=ago, se_max=se_max)
        with np.errstate(invalid="ignore"):
            back &= residual + doubt > -tolerance
    return back


def _baseline_se(series: SeriesCounts, paid: Payoffs) -> float:
    """Return the standard error of the baseline's mean at the series' mix of strata."""
    weight = series.by_column * series.weights * paid.known
    if not weight.sum():
        return 0.0
    by_stratum = np.bincount(paid.stratum_of, weight * paid.se)
    return float(np.sqrt((by_stratum**2).sum()) / weight.sum())
