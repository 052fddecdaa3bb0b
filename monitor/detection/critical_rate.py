"""Counts of something bad and its pinned share in, evidence that it became more frequent out.

A stratified likelihood-ratio e-detector. A unit with x in {0, 1} multiplies the wealth of a bet by

    1 + b (w / w_max) (x - p0),    p0 = max(tolerated factor * share, upper bound of the baseline's share),

which for equal weights and b = (p1 - p0) / (p0 (1 - p0)) is the likelihood ratio of p1 to p0, and for unequal
ones still has a mean of at most 1 as long as the stratum's share over all traffic is at most p0. One bet is an
odds ratio p1 : p0 held in all strata. The same detector serves any share of 0s and 1s: critical failures,
escalations, thumbs down, fallbacks, refusals. Evidence is in nats; arrays are [series, ...].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from monitor.detection.counts import Flags, Floats, Integers, SeriesCounts
from monitor.detection.multiplicity import CAP, log_sr, onset_between, paths, trimmed_of
from monitor.intake.event import Value
from monitor.windows.window import Z_95

_PRIOR_MAX = 10_000.0
"""Units that the common share counts for in each stratum, at most."""
Odds = tuple[Annotated[float, Field(gt=1)], ...]


class StratumShare(Value):
    """How often something happens in one stratum."""

    share: float
    """Posterior mean: the stratum's own weighted share, shrunk towards the common one."""
    high: float
    """Upper bound of the posterior, at 97.5 %."""
    n: int
    weight: float
    weight_max: float


class ShareBaseline(Value):
    """How often something happens: critical failures, escalations, refusals."""

    strata: dict[str, StratumShare]


class ShareRisePolicy(BaseModel):
    """How a rise of a share is told from chance."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    odds: Annotated[Odds, Field(min_length=1)] = (2, 4, 8)
    """The rises that bets are made for, as odds ratios. More of them dilute each."""
    tolerated_factor: Annotated[float, Field(ge=1)] = 1.3
    """The rise that is not worth a word."""
    blip_minutes: Annotated[int, Field(ge=0, le=1440)] = 0
    """A rise of this length is forgiven; 0 for critical failures, where none is."""
    trimmed_min_nats: Annotated[float, Field(ge=0)] = 0.0
    onset_nats: Annotated[float, Field(gt=0)] = 5.0
    """How much less likely than the best an onset may be and still lie in its interval."""
    resolve_minutes: Annotated[int, Field(ge=15, le=10_080)] = 360
    """The newest stretch that must hold no more than the tolerated share before a firing series may resolve."""


@dataclass(frozen=True)
class ShareIncrements:
    """What each bucket adds, all series stacked."""

    wealth: Floats
    """[series, bucket, bet] log wealth."""
    weight: Floats
    """[series, bucket] sum of w."""
    cases: Floats
    """[series, bucket] sum of w x."""
    expected: Floats
    """[series, bucket] sum of w times the baseline's share."""
    tolerated: Floats
    """[series, bucket] sum of w p0."""
    variance: Floats
    """[series, bucket] sum of w^2 (x - p0)^2."""
    bucket_minutes: int


@dataclass(frozen=True)
class ShareRise:
    """What is known of every series at the end of its last bucket. Arrays over the series."""

    evidence: Floats
    """E: log of the e-SR mixture. Without a rise, P(E > h in n evaluations) <= n exp(-h)."""
    sustained: Flags
    """The evidence outlives a forgiven blip: with E over its threshold, it fires."""
    onset: Integers
    """Row of the first bucket of the rise."""
    onset_low: Integers
    onset_high: Integers
    share: Floats
    """Weighted share since the onset; nan where nothing was judged since."""
    se: Floats
    normal: Floats
    """The baseline's share at the same mix."""
    recovered: Flags


def pin_share(series: SeriesCounts) -> ShareBaseline:
    """Return how often something happens in each stratum, by empirical Bayes (beta-binomial, moments).

    Units of unequal weight count as their effective number, (sum w)^2 / sum w^2.
    """
    strata, of, w = series.strata, series.stratum_of, series.weights
    totals = series.counts.sum(axis=0)
    each = np.eye(len(strata))[of].T
    units = totals.sum(axis=1)
    weight, squares = each @ (w * units), each @ (w**2 * units)
    own = each @ (w * totals[:, 1]) / np.maximum(weight, 1e-300)
    effective = weight**2 / np.maximum(squares, 1e-300)
    common = float(
        (weight @ own + 0.5 * weight.sum() / effective.sum()) / (weight.sum() * (1 + 1 / effective.sum()))
    )
    noise = common * (1 - common)
    between = float((effective * (own - common) ** 2 - noise).sum() / effective.sum())
    prior = min(_PRIOR_MAX, max(noise / max(between, 1e-12) - 1, 1.0))
    cases = prior * common + effective * own
    share = cases / (prior + effective)
    # Wilson and Hilferty's cube for the upper quantile of a gamma variable; close for rare events.
    high = share * (1 - 1 / (9 * cases) + Z_95 / (3 * np.sqrt(cases))) ** 3
    return ShareBaseline(
        strata={
            stratum: StratumShare(
                share=float(share[i]),
                high=float(min(high[i], 1.0)),
                n=round(float((each @ units)[i])),
                weight=float(weight[i]),
                weight_max=float(w[of == i].max()),
            )
            for i, stratum in enumerate(strata)
            if weight[i] > 0
        }
    )


def share_increments(
    pairs: Sequence[tuple[SeriesCounts, ShareBaseline]], policy: ShareRisePolicy
) -> ShareIncrements:
    """Return what each bucket adds, for series over the same buckets."""
    sums = np.stack([_sums(series, baseline, policy) for series, baseline in pairs])
    return ShareIncrements(
        wealth=sums[..., :-5],
        weight=sums[..., -5],
        cases=sums[..., -4],
        expected=sums[..., -3],
        tolerated=sums[..., -2],
        variance=sums[..., -1],
        bucket_minutes=pairs[0][0].bucket_minutes,
    )


def assess_shares(
    found: ShareIncrements, policy: ShareRisePolicy, *, since: Integers | None = None
) -> ShareRise:
    """Return what is known of every series; `since` [series] is the row from which evidence counts."""
    n, buckets, _ = found.wealth.shape
    start = np.zeros(n, dtype=np.intp) if since is None else since
    wealth = paths(found.wealth, start)
    lowest, trimmed, best = trimmed_of(wealth, policy.blip_minutes // found.bucket_minutes + 1)
    series = np.arange(n)
    onset = lowest[series, best]
    onset_low, onset_high = onset_between(wealth[series, best], onset, start, policy.onset_nats)
    since_onset = np.arange(buckets)[None, :] >= onset[:, None]
    newest = min(policy.resolve_minutes // found.bucket_minutes, buckets)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = (found.weight * since_onset).sum(axis=1)
        share = (found.cases * since_onset).sum(axis=1) / weight
        normal = (found.expected * since_onset).sum(axis=1) / weight
        se = np.sqrt((found.variance * since_onset).sum(axis=1)) / weight
    judged = found.weight[:, -newest:].sum(axis=1) > 0
    back = found.cases[:, -newest:].sum(axis=1) <= found.tolerated[:, -newest:].sum(axis=1)
    forgiving = policy.blip_minutes > 0
    return ShareRise(
        evidence=log_sr(wealth),
        sustained=(trimmed > policy.trimmed_min_nats) if forgiving else np.ones(n, dtype=np.bool_),
        onset=onset,
        onset_low=onset_low,
        onset_high=onset_high,
        share=share,
        se=se,
        normal=normal,
        # A stretch that reaches back before what fired would be back at once: most of it never was bad.
        recovered=judged & back & (start <= buckets - newest),
    )


def _sums(series: SeriesCounts, baseline: ShareBaseline, policy: ShareRisePolicy) -> Floats:
    """Return [bucket, bet + 5] what one series adds; strata that the baseline does not know add nothing."""
    strata = [baseline.strata.get(stratum) for stratum, _ in series.columns]
    known = np.array([stratum is not None for stratum in strata], dtype=np.bool_)
    share = np.array([stratum.share if stratum else 0.5 for stratum in strata])
    high = np.array([stratum.high if stratum else 0.5 for stratum in strata])
    p0 = np.clip(np.maximum(policy.tolerated_factor * share, high), 1e-9, 1 - 1e-9)
    w = series.weights * known
    weight_max = np.array([stratum.weight_max if stratum else 1.0 for stratum in strata])
    weight_max = np.maximum(weight_max, series.heaviest * known)
    odds = np.array(policy.odds)[:, None] * p0 / (1 - p0)
    p1 = odds / (1 + odds)
    bets = np.minimum((p1 - p0) / (p0 * (1 - p0)), CAP / p0) * w / weight_max  # [bet, column]
    rows = np.empty((len(series.columns), 2, len(policy.odds) + 5))
    for x in (0, 1):
        rows[:, x, :-5] = np.log1p(bets * (x - p0)).T
        rows[:, x, -5] = w
        rows[:, x, -4] = w * x
        rows[:, x, -3] = w * share
        rows[:, x, -2] = w * p0
        rows[:, x, -1] = w**2 * (x - p0) ** 2
    counts = series.counts.reshape(len(series.counts), -1)
    sums: Floats = counts @ rows.reshape(-1, rows.shape[2])
    return sums
