"""Pairs of scores in, agreement out: plain shares, kappa and Gwet's AC, with design weights and 95 % intervals.

Every figure is a function of one table of weighted counts, 5 by 5. A case may bring several pairs (one judge
beside three raters); they share the case's weight, and intervals treat the case as the unit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.intake.event import Value
from monitor.judging.calibration import AGREEMENT_MIN, Answer, Share
from monitor.judging.rubric import CRITICAL_MAX, PASS_MIN, SCORE_MAX, SCORE_MIN
from monitor.windows.window import Z_95

LEVELS = SCORE_MAX - SCORE_MIN + 1
NEEDED_MAX = 100_000
"""Cases beyond which nobody labels; where more would be needed, no number is named."""
Table = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """The pairs of one labelled case, (first, second), and how many cases it stands for."""

    pairs: tuple[tuple[int, int], ...]
    weight: float = 1.0


class Coefficient(Value):
    """A coefficient with its 95 % interval; None where it is not defined (all cases at one level)."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def words(self) -> str:
        """Return it as people read it, `0.62 (0.51-0.73)`."""
        if self.value is None:
            return "-"
        return f"{self.value:.2f}" + ("" if self.low is None else f" ({self.low:.2f}-{self.high:.2f})")


class Agreement(Value):
    """How far two sides agree on one dimension. `first` is the judge, or a rater; `second` is a rater."""

    n: int
    exact: Share = Share()
    within_one: Share = Share()
    pass_at_4: Share = Share()
    critical_recall: Share = Share()
    critical_precision: Share = Share()
    kappa: Coefficient = Coefficient()
    kappa_linear: Coefficient = Coefficient()
    kappa_quadratic: Coefficient = Coefficient()
    ac1: Coefficient = Coefficient()
    ac2: Coefficient = Coefficient()
    confusion: tuple[tuple[float, ...], ...] = ()
    """Weighted counts, a row for each level of the first side, a column for each of the second, 1 to 5."""


def agreement(cases: Sequence[Case]) -> Agreement:
    """Return every figure of agreement; a case without a pair counts nowhere."""
    cases = [case for case in cases if case.pairs]
    if not cases:
        return Agreement(n=0)
    tables = [_table(case) for case in cases]
    whole = np.sum(tables, axis=0)
    return Agreement(
        n=len(cases),
        exact=_share(cases, lambda first, second: first == second),
        within_one=_share(cases, lambda first, second: abs(first - second) <= 1),
        pass_at_4=_share(cases, lambda first, second: (first >= PASS_MIN) == (second >= PASS_MIN)),
        critical_recall=_share(
            cases,
            lambda first, _: first <= CRITICAL_MAX,
            among=lambda _, second: second <= CRITICAL_MAX,
        ),
        critical_precision=_share(
            cases,
            lambda _, second: second <= CRITICAL_MAX,
            among=lambda first, _: first <= CRITICAL_MAX,
        ),
        kappa=_coefficient(tables, lambda table: cohens_kappa(table, IDENTITY)),
        kappa_linear=_coefficient(tables, lambda table: cohens_kappa(table, LINEAR)),
        kappa_quadratic=_coefficient(tables, lambda table: cohens_kappa(table, QUADRATIC)),
        ac1=_coefficient(tables, lambda table: gwets_ac(table, IDENTITY)),
        ac2=_coefficient(tables, lambda table: gwets_ac(table, QUADRATIC)),
        confusion=tuple(tuple(float(cell) for cell in row) for row in whole),
    )


def answer(share: Share, *, wanted: float = AGREEMENT_MIN) -> tuple[Answer, int | None]:
    """Return whether an agreement is shown, and if that is open, how many cases would decide it."""
    if share.value is None or share.low is None or share.high is None:
        return Answer.TOO_FEW, needed(1.0, wanted)
    if share.low >= wanted:
        return Answer.SHOWN, None
    if share.high < wanted:
        return Answer.NOT_SHOWN, None
    found = needed(share.value, wanted)
    # Weights make a case count for less than one; the need grows by as much.
    return Answer.TOO_FEW, None if found is None else max(found, share.n + 1)


def needed(value: float, wanted: float) -> int | None:
    """Return the cases at which an interval around `value` no longer holds `wanted`; None beyond NEEDED_MAX."""
    low, high = 1, NEEDED_MAX
    if not _decides(value, wanted, high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _decides(value, wanted, middle) else (middle + 1, high)
    return low


def wilson(value: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share; 43 of 50 is 74 to 93 %."""
    z2 = Z_95**2
    middle = (value + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 * math.sqrt(value * (1 - value) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


_STEPS = np.abs(np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS))) / (LEVELS - 1)
IDENTITY: Table = np.eye(LEVELS)
LINEAR: Table = 1.0 - _STEPS
QUADRATIC: Table = 1.0 - _STEPS**2
"""What a pair is worth by how far its scores lie apart."""


def cohens_kappa(table: Table, worth: Table) -> float | None:
    """Return Cohen's weighted kappa of a table of counts; None where chance alone would agree always."""
    shares = table / table.sum()
    by_chance = float((worth * np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())
    return _beyond_chance(float((worth * shares).sum()), by_chance)


def gwets_ac(table: Table, worth: Table) -> float | None:
    """Return Gwet's AC1 (worth: identity) or AC2, which do not collapse where nearly all cases are alike."""
    shares = table / table.sum()
    share = (shares.sum(axis=1) + shares.sum(axis=0)) / 2
    by_chance = float(worth.sum() / (LEVELS * (LEVELS - 1)) * (share * (1 - share)).sum())
    return _beyond_chance(float((worth * shares).sum()), by_chance)


def _beyond_chance(seen: float, by_chance: float) -> float | None:
    return None if by_chance > 1 - 1e-12 else (seen - by_chance) / (1 - by_chance)


def _decides(value: float, wanted: float, n: int) -> bool:
    low, high = wilson(value, n)
    return low >= wanted or high < wanted


def _table(case: Case) -> Table:
    table = np.zeros((LEVELS, LEVELS))
    for first, second in case.pairs:
        table[first - SCORE_MIN, second - SCORE_MIN] += case.weight / len(case.pairs)
    return table


def _share(
    cases: Sequence[Case],
    agrees: Callable[[int, int], bool],
    *,
    among: Callable[[int, int], bool] = lambda _, __: True,
) -> Share:
    """Return the share of the pairs that agree, with an interval for as many cases as the weights leave."""
    total = squares = hits = 0.0
    n = 0
    for case in cases:
        chosen = [pair for pair in case.pairs if among(*pair)]
        if not chosen:
            continue
        weight = case.weight * len(chosen) / len(case.pairs)
        total += weight
        squares += weight * weight
        hits += weight * sum(agrees(*pair) for pair in chosen) / len(chosen)
        n += 1
    if not total:
        return Share()
    value = min(1.0, hits / total)
    low, high = wilson(value, total * total / squares)
    return Share(value=value, low=low, high=high, n=n)


def _coefficient(tables: Sequence[Table], figure: Callable[[Table], float | None]) -> Coefficient:
    """Return a coefficient with its interval by leaving out one case at a time."""
    whole = np.sum(tables, axis=0)
    value = figure(whole)
    n = len(tables)
    if value is None or n < 3:  # noqa: PLR2004 - without one of two cases nothing is left to vary
        return Coefficient(value=value)
    known: dict[bytes, float | None] = {}
    without: list[float] = []
    for table in tables:
        key = table.tobytes()
        if key not in known:
            known[key] = figure(whole - table)
        left = known[key]
        if left is None:
            return Coefficient(value=value)
        without.append(left)
    spread = float(np.sqrt((n - 1) / n * np.square(np.subtract(without, np.mean(without))).sum()))
    return Coefficient(
        value=value, low=max(-1.0, value - Z_95 * spread), high=min(1.0, value + Z_95 * spread)
    )
