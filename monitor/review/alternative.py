"""Scores of three or more raters and a judge in, the alternative-annotator test out (Calderon et al. 2025).

For each rater in turn: does the judge agree with the others at least as well as this rater does, give or take what
a person's work is worth more (`epsilon`)? The judge may stand in for a rater if it wins against half of them.
"""

import math
from collections.abc import Mapping, Sequence

from monitor.intake.event import Value

EPSILON = 0.15
"""What a rater costs more than a judge, as a share of cases: .2 for experts, .15 for trained, .1 for crowds."""
FALSE_RATE = 0.05
"""False discovery rate over the raters (Benjamini and Yekutieli: raters share their cases)."""
CASES_MIN = 30
"""Cases of one rater below which the t statistic is not to be trusted."""
RATERS_MIN = 3
WINNING_RATE = 0.5
_STEPS = 2000


class Rival(Value):
    """The judge against one rater."""

    rater: str
    n: int
    judge_wins: float
    """Share of the cases on which the judge is as near to the other raters, or nearer."""
    rater_wins: float
    p_value: float
    beaten: bool


class Alternative(Value):
    """The answer of the test, `passed` None where it could not be held."""

    passed: bool | None
    reason: str
    winning_rate: float | None = None
    advantage: float | None = None
    """Chance that the judge does as well as a rater drawn at random."""
    rivals: tuple[Rival, ...] = ()


Scores = Mapping[str, int]
"""By rater."""


def alternative_test(
    judge: Mapping[str, int], people: Mapping[str, Scores], *, epsilon: float = EPSILON
) -> Alternative:
    """Test one dimension: the judge's score and the raters' scores, by case."""
    raters = sorted({rater for scores in people.values() for rater in scores})
    if len(raters) < RATERS_MIN:
        return Alternative(passed=None, reason=f"{len(raters)} raters of the {RATERS_MIN} it needs")
    told = []
    for rater in raters:
        margins = [
            _margins(judge[case], scores, rater)
            for case, scores in sorted(people.items())
            if case in judge and rater in scores and len(scores) > 1
        ]
        if len(margins) < CASES_MIN:
            return Alternative(
                passed=None, reason=f"rater {rater} shares {len(margins)} cases of the {CASES_MIN} it needs"
            )
        told.append((rater, margins))
    return _decided(told, epsilon)


def _margins(judged: int, scores: Scores, rater: str) -> tuple[bool, bool]:
    others = [score for name, score in scores.items() if name != rater]
    judge_off = _distance(judged, others)
    rater_off = _distance(scores[rater], others)
    return judge_off <= rater_off, rater_off <= judge_off


def _distance(score: int, others: Sequence[int]) -> float:
    return math.sqrt(sum((score - other) ** 2 for other in others) / len(others))


def _decided(told: Sequence[tuple[str, list[tuple[bool, bool]]]], epsilon: float) -> Alternative:
    p_values = [_p_value([rater - judge for judge, rater in margins], epsilon) for _, margins in told]
    beaten = _discoveries(p_values, FALSE_RATE)
    rivals = tuple(
        Rival(
            rater=rater,
            n=len(margins),
            judge_wins=sum(judge for judge, _ in margins) / len(margins),
            rater_wins=sum(own for _, own in margins) / len(margins),
            p_value=p_value,
            beaten=won,
        )
        for (rater, margins), p_value, won in zip(told, p_values, beaten, strict=True)
    )
    rate = sum(beaten) / len(beaten)
    passed = rate >= WINNING_RATE
    word = "may" if passed else "may not"
    return Alternative(
        passed=passed,
        reason=f"beats {sum(beaten)} of {len(beaten)} raters at epsilon {epsilon:g}: it {word} stand in for one",
        winning_rate=rate,
        advantage=sum(rival.judge_wins for rival in rivals) / len(rivals),
        rivals=rivals,
    )


def _p_value(margins: Sequence[int], epsilon: float) -> float:
    """Return the chance of so small a mean if the rater were better by `epsilon` (one-sided t test)."""
    n = len(margins)
    mean = sum(margins) / n
    spread = math.sqrt(sum((margin - mean) ** 2 for margin in margins) / (n - 1))
    if not spread:
        return 0.0 if mean < epsilon else 1.0
    return student_t((mean - epsilon) / (spread / math.sqrt(n)), n - 1)


def _discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    count = len(p_values)
    harmonic = sum(1 / place for place in range(1, count + 1))
    ordered = sorted(p_values)
    limit = max(
        (p for place, p in enumerate(ordered, start=1) if p <= place * rate / (count * harmonic)),
        default=-1.0,
    )
    return [p <= limit for p in p_values]


def student_t(value: float, freedom: int) -> float:
    """Return P(T <= value) of Student's t, by Simpson's rule on its density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(freedom * math.pi)
    width = abs(value) / _STEPS
    weights = (1 if step in (0, _STEPS) else 4 if step % 2 else 2 for step in range(_STEPS + 1))
    area = math.fsum(
        weight * (1 + (step * width) ** 2 / freedom) ** (-(freedom + 1) / 2)
        for step, weight in enumerate(weights)
    )
    half = min(0.5, scale * area * width / 3)
    return 0.5 + half if value > 0 else 0.5 - half
