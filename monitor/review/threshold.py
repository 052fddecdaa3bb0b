"""Probabilities of a judge and people's yes or no in, the threshold out, with its agreement on cases it never saw."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeGuard

from monitor.intake.event import Value
from monitor.judging.calibration import Share
from monitor.judging.judgment import Judgment, Record
from monitor.judging.probability import LEVELS
from monitor.judging.rubric import PASS_MIN
from monitor.review.agreement import wilson
from monitor.review.calibrate import Labels

CASES_MIN = 10
"""Cases of either answer in either half below which no threshold is fitted."""


class Probability(NamedTuple):
    """How sure the judge was of yes, and whether people said so."""

    case: str
    probability: float
    yes: bool


class Threshold(Value):
    """From which probability on a yes is a yes; None with the reason where that cannot be told."""

    value: float | None
    reason: str
    needed: int | None = None
    """Labelled cases at which it could be told, where there were too few; None where nobody knows."""
    fitted: int = 0
    fitted_balanced: float | None = None
    held_out: Share = Share()
    """Agreement on the held-out cases at the threshold."""
    held_out_balanced: float | None = None
    """The same, with both answers counted alike: .5 is a coin."""
    held_out_at_half: Share = Share()
    """What .5 would have reached, to show what the fit is worth."""
    auc: float | None = None
    """Chance that a yes of people has a higher probability than a no; held-out cases."""


def fit_thresholds(labelled: Sequence[Labels], records: Mapping[str, Record]) -> dict[str, Threshold]:
    """Fit a threshold for each labelled dimension to who passes it by people's word; raters who split count nowhere."""
    names = sorted({name for one in labelled for scores in one.labels.values() for name in scores})
    return {name: fit_threshold(probabilities(name, labelled, records)) for name in names}


def probabilities(
    name: str, labelled: Sequence[Labels], records: Mapping[str, Record]
) -> tuple[Probability, ...]:
    """Return how sure the judge was of a pass, beside what most raters said of it."""
    found = []
    for one in labelled:
        record = records.get(one.case)
        score = next((s for s in record.scores if s.dimension == name), None) if _judged(record) else None
        said = [level >= PASS_MIN for given in one.labels.values() if (level := given.get(name)) is not None]
        if score is not None and score.probabilities and said and sum(said) * 2 != len(said):
            sure = score.probabilities[LEVELS.index(PASS_MIN)]
            found.append(Probability(one.case, sure, yes=sum(said) * 2 > len(said)))
    return tuple(found)


def fit_threshold(cases: Sequence[Probability], *, salt: str = "threshold") -> Threshold:
    """Fit on one half of the cases of each answer, drawn by a hash of their ids, and report on the other."""
    fit, held = _halves(cases, salt)
    fewest = min(sum(case.yes is said for case in held) for said in (True, False))
    if fewest < CASES_MIN:
        return _too_few(cases, fewest)
    value, reached = max(
        ((cut, _balanced(fit, cut)) for cut in _cuts(fit)), key=lambda one: (one[1], -abs(one[0] - 0.5))
    )
    held_balanced = _balanced(held, value)
    coin = held_balanced <= 0.5  # noqa: PLR2004 - both answers counted alike, a coin has a half
    return Threshold(
        value=None if coin else value,
        reason="no better than a coin on cases it was not fitted to"
        if coin
        else f"fitted to {len(fit)} cases, tried on {len(held)} others",
        fitted=len(fit),
        fitted_balanced=reached,
        held_out=_agreeing(held, value),
        held_out_balanced=held_balanced,
        held_out_at_half=_agreeing(held, 0.5),
        auc=area_under_curve(held),
    )


def _too_few(cases: Sequence[Probability], fewest: int) -> Threshold:
    rarer = min(sum(case.yes is said for case in cases) for said in (True, False))
    needed = math.ceil(2 * CASES_MIN * len(cases) / rarer) if rarer else None
    told = (
        f"about {needed} labelled cases"
        if needed
        else f"{2 * CASES_MIN} cases that pass and as many that fail"
    )
    left = f"{fewest} cases of one answer are left to try it on, and {CASES_MIN} are asked for"
    return Threshold(value=None, reason=f"too few ({told} needed): {left}", needed=needed)


def area_under_curve(cases: Sequence[Probability]) -> float | None:
    """Return the area under the ROC curve, ties at one half; None without both answers."""
    yes = [case.probability for case in cases if case.yes]
    no = [case.probability for case in cases if not case.yes]
    if not yes or not no:
        return None
    return sum((one > other) + 0.5 * (one == other) for one in yes for other in no) / (len(yes) * len(no))


def _judged(record: Record | None) -> TypeGuard[Judgment]:
    return isinstance(record, Judgment)


def _cuts(cases: Sequence[Probability]) -> list[float]:
    seen = sorted({case.probability for case in cases})
    return [(low + high) / 2 for low, high in pairwise(seen)] or seen


def _balanced(cases: Sequence[Probability], cut: float) -> float:
    yes = [case.probability >= cut for case in cases if case.yes]
    no = [case.probability < cut for case in cases if not case.yes]
    return (sum(yes) / len(yes) + sum(no) / len(no)) / 2


def _agreeing(cases: Sequence[Probability], cut: float) -> Share:
    hits = sum((case.probability >= cut) == case.yes for case in cases) / len(cases)
    low, high = wilson(hits, len(cases))
    return Share(value=hits, low=low, high=high, n=len(cases))


def _halves(cases: Sequence[Probability], salt: str) -> tuple[list[Probability], list[Probability]]:
    fit, held = list[Probability](), list[Probability]()
    for said in (True, False):
        group = sorted((case for case in cases if case.yes is said), key=lambda one: _place(one.case, salt))
        fit += group[::2]
        held += group[1::2]
    return fit, held


def _place(case: str, salt: str) -> bytes:
    return hashlib.blake2b(f"{salt}\x1f{case}".encode(), digest_size=8).digest()
