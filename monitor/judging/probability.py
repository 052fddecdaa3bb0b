"""Probabilities of Yes by level in, a score out: for small models, whose written scores mean little.

A small model says Yes to nearly everything, and still knows better from worse: the threshold that tells the two
apart belongs to the judge and is calibrated on people's labels (`monitor calibrate`).
"""

from collections.abc import Mapping

from monitor.judging.judgment import DimensionScore
from monitor.judging.rubric import SCORE_MAX, SCORE_MIN

LEVELS = tuple(range(SCORE_MIN + 1, SCORE_MAX + 1))
"""Each asks whether at least this level is reached; the lowest is reached anyway."""


def score_of(probabilities: Mapping[int, float], *, threshold: float) -> int:
    """Return the highest level up to which every question is answered with Yes."""
    reached = SCORE_MIN
    for level in LEVELS:
        if probabilities[level] < threshold:
            break
        reached = level
    return reached


def scored(dimension: str, probabilities: Mapping[int, float], *, threshold: float) -> DimensionScore:
    """Return the score with the probabilities that it comes from, for calibration."""
    told = ", ".join(f"{level}: {probabilities[level]:.2f}" for level in LEVELS)
    return DimensionScore(
        dimension=dimension,
        score=score_of(probabilities, threshold=threshold),
        reason=f"Probability that at least this level is reached: {told}; threshold {threshold:g}.",
        probabilities=tuple(round(probabilities[level], 4) for level in LEVELS),
    )
