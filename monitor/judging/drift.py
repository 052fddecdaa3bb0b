"""Anchors' scores in, a judge's shift out: by how much it scores differently from how it did when they were pinned.

The anchors are frozen, so a shift of theirs is the judge's alone. Whoever watches the assistant takes it off
(`monitor/detection/regression.py`, `judge_shift`).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import NormalDist, fmean

from monitor.intake.event import Value
from monitor.judging.anchors import AnchorScore

INTERVAL = 0.95
CERTAIN = 0.999
"""What a finding asks for: it looks every quarter of an hour, at every dimension, and one unlucky pin stays."""


class Difference(Value):
    """A mean of paired differences in points, with its interval; its ends are infinite for a single pair."""

    mean: float
    low: float
    high: float
    n: int
    se: float

    @property
    def words(self) -> str:
        """Return it as people read it, `-0.31 [-0.42, -0.20]`."""
        return f"{self.mean:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


class Shift(Difference):
    """By how many points a judge scores higher than when its anchors were pinned; below zero it is stricter.

    `n` counts the anchors with a pinned score and a newer one.
    """

    repeats: int
    """Newer scores, several of an anchor among them."""
    noise: float | None
    """Standard deviation of one anchor's scores within the window; None where none was judged twice."""


def difference(values: Sequence[float], *, confidence: float = INTERVAL) -> Difference:
    """Return the mean of paired differences with its interval by Student's t, n - 1 degrees of freedom.

    The paired t of Snedecor and Cochran, Statistical Methods, ch. 6: mean(d) and se = s_d / sqrt(n). s_d^2 is at
    least 1/n, as if one pair differed by a point: scores are whole, and n equal ones do not make a judge exact.
    """
    n = len(values)
    mean = fmean(values)
    spread = sum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else 1.0
    se = math.sqrt(max(spread, 1 / n) / n)
    half = student_t(confidence, n - 1) * se
    return Difference(mean=mean, low=mean - half, high=mean + half, n=n, se=se)


def anchor_shift(
    pins: Mapping[str, AnchorScore], scores: Iterable[AnchorScore], *, confidence: float = INTERVAL
) -> dict[str, Shift]:
    """Return the shift of each dimension that any anchor has both a pinned and a newer score of.

    Scores of a pinned round or before are left out; the formula is that of `shift_between`.
    """
    newer = [one for one in scores if one.anchor in pins and one.round > pins[one.anchor].round]
    return shift_between(pins.values(), newer, confidence=confidence)


def shift_between(
    before: Iterable[AnchorScore], after: Iterable[AnchorScore], *, confidence: float = INTERVAL
) -> dict[str, Shift]:
    """Return the shift of each dimension from one time to another, by the anchors that both have a score of.

    For anchor a with scores y_ai before and x_ak after, d_a = mean_k(x_ak) - mean_i(y_ai); the shift is that of
    `difference` over the anchors, which are the units, however often each was judged.
    The noise is the within-subject standard deviation, sqrt(sum_ak (x_ak - mean_k x_ak)^2 / sum_a (k_a - 1))
    (Bland and Altman, BMJ 313:744, 1996), of the scores after. All in points.
    """
    old, new = _values(before), _values(after)
    found = {}
    for dimension in sorted({name for _, name in old.keys() & new.keys()}):
        keys = [key for key in new if key[1] == dimension and key in old]
        moved = [fmean(new[key]) - fmean(old[key]) for key in keys]
        found[dimension] = Shift(
            **dict(difference(moved, confidence=confidence)),
            repeats=sum(len(new[key]) for key in keys),
            noise=_noise([new[key] for key in keys]),
        )
    return found


def since(pins: Mapping[str, AnchorScore], scores: Iterable[AnchorScore], dimension: str) -> datetime | None:
    """Return when a shift began: the time of the first score after the most likely change of the mean.

    The differences in the order of their times are cut where |S_k - (k/N) S_N| is greatest, S_k the sum of the
    first k (the CUSUM estimator of one change point; Hinkley, Biometrika 57, 1970). None without a score.
    """
    told = sorted(
        (score.at, value - (pins[score.anchor].scores[dimension] or 0))
        for score in scores
        if score.anchor in pins and score.round > pins[score.anchor].round
        if (value := score.scores.get(dimension)) is not None
        and pins[score.anchor].scores.get(dimension) is not None
    )
    if not told:
        return None
    mean = fmean(difference for _, difference in told)
    total, best, place = 0.0, 0.0, 0
    for number, (_, difference) in enumerate(told, start=1):
        total += difference - mean
        # Without any change the shift was there from the first on.
        if number < len(told) and abs(total) > best + 1e-9:
            best, place = abs(total), number
    return told[place][0]


def student_t(confidence: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t; infinite without a degree of freedom.

    The expansion in 1/freedom of Abramowitz and Stegun, 26.7.5; within 1 % from 5 degrees of freedom on.
    """
    if freedom < 1:
        return math.inf
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))


def _values(scores: Iterable[AnchorScore]) -> dict[tuple[str, str], list[int]]:
    """Return what was scored, abstentions left out, by (anchor, dimension)."""
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for score in scores:
        for dimension, value in score.scores.items():
            if value is not None:
                found[score.anchor, dimension].append(value)
    return found


def _noise(groups: Sequence[Sequence[int]]) -> float | None:
    freedom = sum(len(values) - 1 for values in groups)
    if not freedom:
        return None
    means = map(fmean, groups)
    squares = sum((value - mean) ** 2 for values, mean in zip(groups, means, strict=True) for value in values)
    return math.sqrt(squares / freedom)
