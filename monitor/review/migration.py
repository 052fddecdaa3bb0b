"""Judgments of an old and a new judge in, the offset between their series out, and which alerts would differ.

A splice carries what was pinned under the old judge over to the new one, so that a new rubric, prompt or model does
not blind the monitor until there is a week of new scores.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

from monitor.detection.baseline import Baseline, BaselinePolicy, StratumBaseline
from monitor.detection.census import CENSUS
from monitor.intake.event import Moment, Value
from monitor.judging.drift import Difference, difference
from monitor.judging.judgment import Judgment
from monitor.judging.rubric import PASS_MIN, SCORE_MAX, SCORE_MIN
from monitor.review.compare import Pair, scores_of

PER_STRATUM_MIN = 2
"""Conversations drawn of each stratum that has as many: rare intents shift too."""


class Offset(Value):
    """What to add to a figure of the old judge to get that of the new one, with its uncertainty."""

    points: Difference
    """Of a mean score."""
    pass_at_4: Difference
    """Of the share that passes."""


class Splice(Value):
    """How the series of an old judge go on under a new one. Only sums and figures, no words.

    For each dimension mean_new = mean_old + points.mean and se_new^2 = se_old^2 + points.se^2; an offset is one for
    all strata, and `carried_over` takes a baseline along. A dimension that is not named was scored by one of the
    judges only: its baseline has to be pinned anew.
    """

    old_judge: str
    old_rubric: str
    new_judge: str
    new_rubric: str
    at: Moment
    pairs: int
    rejudged: int
    """Of the pairs, those whose conversation was judged again for this; the others were judged by both as they came."""
    offsets: dict[str, Offset]


class Splices(Protocol):
    """Where splices are kept, one for each pair of judges; putting one twice changes nothing."""

    async def get(self, *, old_judge: str, new_judge: str) -> Splice | None:
        """Return the newest splice, None where nobody migrated."""
        ...

    async def put(self, splice: Splice) -> None:
        """Keep a splice in the place of an older one."""
        ...


def carried_over(baseline: Baseline, splice: Splice, *, scope_id: str, policy: BaselinePolicy) -> Baseline:
    """Return a baseline of the old judge as one for the new judge's scope.

    Each stratum's mean moves by the dimension's offset, within the scale, and its tolerance grows to `error_factor`
    standard errors of mean and offset together: what the offset is not sure of must not be told as a fall.
    Dimensions without an offset are left out, and so is the share of critical failures, of which a mean's offset says
    nothing. Shares over all traffic have no judge, and stay.
    """
    dimensions = {
        name: known.model_copy(
            update={"strata": {key: _carried(one, offset, policy) for key, one in known.strata.items()}}
        )
        for name, known in baseline.dimensions.items()
        if (offset := splice.offsets.get(name)) is not None
    }
    label = f"{baseline.label}, carried over from judge {splice.old_judge}"
    shares = {name: known for name, known in baseline.shares.items() if name in CENSUS}
    changed = {"scope_id": scope_id, "label": label, "dimensions": dimensions, "shares": shares}
    return baseline.model_copy(update=changed)


def _carried(stratum: StratumBaseline, offset: Offset, policy: BaselinePolicy) -> StratumBaseline:
    unsure = policy.error_factor * math.hypot(stratum.se, offset.points.se)
    return stratum.model_copy(
        update={
            "mean": min(max(stratum.mean + offset.points.mean, float(SCORE_MIN)), float(SCORE_MAX)),
            "tolerance": max(stratum.tolerance, unsure),
        }
    )


def drawn(judgments: Sequence[Judgment], *, strata: Sequence[str], count: int) -> list[Judgment]:
    """Return about `count` judgments, each stratum in proportion to the conversations that it stands for.

    Within a stratum the draw is a hash of the conversation's id, so that drawing again gives the same, and a
    larger count only adds.
    """
    groups: defaultdict[tuple[str, ...], list[Judgment]] = defaultdict(list)
    for one in judgments:
        groups[_stratum(one, strata)].append(one)
    total = sum(map(_weight, judgments))
    found: list[Judgment] = []
    for _, group in sorted(groups.items()):
        wanted = round(count * sum(map(_weight, group)) / total)
        ordered = sorted(group, key=lambda one: _place(one.target.conversation_id))
        found += ordered[: max(wanted, PER_STRATUM_MIN)]
    return found


def offsets(
    pairs: Sequence[Pair], archived: Sequence[Judgment], *, strata: Sequence[str]
) -> dict[str, Offset]:
    """Return the offset of each dimension that both judges scored, for the traffic that the archive stands for.

    Pair i of stratum s weighs w_i = (1/rate_i) N_s / sum_j (1/rate_j), where j runs over the pairs of s and N_s is
    what all archived judgments of s stand for. The offset is the ratio estimate sum(w d) / sum(w), its variance
    n/(n-1) sum (w (d - mean))^2 / (sum w)^2 (linearisation; Sarndal, Swensson and Wretman, Model Assisted Survey
    Sampling, ch. 5), which is a little too wide, since the strata's own means are not taken out. `archived` may
    be empty: then the pairs stand for themselves.
    """
    stands_for: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for one in archived:
        stands_for[_stratum(one, strata)] += _weight(one)
    names = sorted({score.dimension for pair in pairs for score in pair[0].scores})
    found = {}
    for name in names:
        told = [
            (pair[0], old, new)
            for pair, (old, new) in zip(pairs, scores_of(pairs, name), strict=True)
            if old is not None and new is not None and pair[0].rate
        ]
        if not told:
            continue
        weights = _weights([one for one, _, _ in told], stands_for, strata)
        found[name] = Offset(
            points=_weighted([new - old for _, old, new in told], weights),
            pass_at_4=_weighted([(new >= PASS_MIN) - (old >= PASS_MIN) for _, old, new in told], weights),
        )
    return found


def _weights(
    judgments: Sequence[Judgment], stands_for: Mapping[tuple[str, ...], float], strata: Sequence[str]
) -> list[float]:
    here: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for one in judgments:
        here[_stratum(one, strata)] += _weight(one)
    found = []
    for one in judgments:
        stratum = _stratum(one, strata)
        found.append(_weight(one) * stands_for.get(stratum, here[stratum]) / here[stratum])
    return found


def _weighted(values: Sequence[float], weights: Sequence[float]) -> Difference:
    """Return a weighted mean difference; its interval is that of `difference` at the variance of the weighted mean."""
    plain = difference(values)
    total = math.fsum(weights)
    mean = math.fsum(w * d for w, d in zip(weights, values, strict=True)) / total
    n = len(values)
    squares = math.fsum((w * (d - mean)) ** 2 for w, d in zip(weights, values, strict=True))
    spread = squares * n / (n - 1) / total**2 if n > 1 else math.inf
    # Unequal weights leave fewer pairs than were counted; and equal differences make no judge exact.
    floor = math.fsum(w * w for w in weights) / total**2 / n
    se = math.sqrt(max(spread, floor)) if n > 1 else plain.se
    half = (plain.high - plain.mean) * (se / plain.se)
    return Difference(mean=mean, low=mean - half, high=mean + half, n=n, se=se)


def _stratum(judgment: Judgment, strata: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(judgment.attributes, name)) for name in strata)


def _weight(judgment: Judgment) -> float:
    return 1 / judgment.rate if judgment.rate else 0.0


def _place(conversation_id: str) -> bytes:
    return hashlib.blake2b(f"migrate\x1f{conversation_id}".encode(), digest_size=8).digest()
