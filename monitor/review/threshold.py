"""Probabilities of a judge and people's yes or no in, the threshold out, with its agreement on cases it never saw."""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from monitor.intake.event import Value
from monitor.judging.calibration import Share
from monitor.review.agreement import wilson

HELD_OUT = 0.5
"""Share of the cases that the threshold is tried on and not fitted to."""
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


def fit_threshold(cases: Sequence[Probability], *, salt: str = "threshold") -> Threshold:
    """Fit on one half of the cases, by hash of their ids, and report on the other."""
    fit = [case for case in cases if _place(case.case, salt) >= HELD_OUT]
    held = [case for case in cases if _place(case.case, salt) < HELD_OUT]
    fewest = min(sum(c.yes is said for c in half) for half in (fit, held) for said in (True, False))
    if fewest < CASES_MIN:
        return Threshold(value=None, reason=f"{fewest} cases of one answer in one half; it needs {CASES_MIN}")
    value, reached = max(
        ((cut, _balanced(fit, cut)) for cut in _cuts(fit)), key=lambda one: (one[1], -abs(one[0] - 0.5))
    )
    return Threshold(
        value=value,
        reason=f"fitted to {len(fit)} cases, tried on {len(held)} others",
        fitted=len(fit),
        fitted_balanced=reached,
        held_out=_agreeing(held, value),
        held_out_balanced=_balanced(held, value),
        held_out_at_half=_agreeing(held, 0.5),
        auc=area_under_curve(held),
    )


def area_under_curve(cases: Sequence[Probability]) -> float | None:
    """Return the area under the ROC curve, ties at one half; None without both answers."""
    yes = [case.probability for case in cases if case.yes]
    no = [case.probability for case in cases if not case.yes]
    if not yes or not no:
        return None
    return sum((one > other) + 0.5 * (one == other) for one in yes for other in no) / (len(yes) * len(no))


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


def _place(case: str, salt: str) -> float:
    digest = hashlib.blake2b(f"{salt}\x1f{case}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
