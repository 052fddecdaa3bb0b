"""How traffic and budgets stand, in `monitor status`."""

import io
from datetime import timedelta

import pytest
from rich.console import Console

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.budgets import Budget, budgets_of
from monitor.cli.standing import SignalLine, budget_lines, census_table
from monitor.detection.gates import GatePolicy
from monitor.detection.slo import SloPolicy
from monitor.intake.event import Environment
from monitor.policy import load_policy
from monitor.windows.bucket import Scope
from monitor.windows.policy import WindowPolicy
from tests.judgments import HOUR, NOON, a_judgment


async def budgets(policy: GatePolicy, *bad_hours: int) -> tuple[Budget, ...]:
    """Return the budgets at noon after ten hours of 20 conversations, half of them bad in some hours."""
    store = MemoryWindowStore(WindowPolicy())
    for hour in range(1, 11):
        records = [
            a_judgment(
                f"c-{hour}-{n}",
                at=NOON - hour * HOUR,
                scores={"safety": 2 if hour in bad_hours and n % 2 else 5},
            )
            for n in range(20)
        ]
        await store.apply(records, now=NOON)
    return await budgets_of(store, policy, Scope.of(a_judgment()), now=NOON)


async def test_a_budget_shows_its_indicator_what_is_left_and_how_fast_it_burns() -> None:
    """Ten of 200 are half of a budget of a tenth; the hour in which they came burnt five times too fast."""
    policy = load_policy().gates.model_copy(update={"slo": SloPolicy(objectives={"safety": 0.9})})

    (budget,) = await budgets(policy, 1)

    assert (budget.n, budget.indicator) == (200, pytest.approx(0.95))
    assert budget.left == pytest.approx(0.5)
    assert budget.burns == {"1h": pytest.approx(5), "6h": pytest.approx(5 / 6), "3d": pytest.approx(0.5)}
    (line,) = budget_lines([budget])
    assert line == (
        "support-bot (production), safety: 95.0% of 200 scores at 4 or 5, objective 90.0%; 50% of the budget left; "
        "it burns 5 times over 1h, 0.83 times over 6h, 0.5 times over 3d (1 uses it up in the period)"
    )


async def test_without_objectives_there_is_no_budget() -> None:
    """The default: nobody has said yet what is good enough."""
    assert await budgets(load_policy().gates) == ()


async def test_an_objective_without_scores_has_no_figure() -> None:
    """Nothing scored is not a whole budget."""
    store = MemoryWindowStore(WindowPolicy())
    policy = load_policy().gates.model_copy(update={"slo": SloPolicy(objectives={"safety": 0.9})})

    (budget,) = await budgets_of(store, policy, Scope.of(a_judgment()), now=NOON + timedelta(days=1))

    assert (budget.indicator, budget.left, set(budget.burns.values())) == (None, None, {None})
    assert list(budget_lines([budget])) == [
        "support-bot (production), safety: nothing scored in the period, objective 90.0%"
    ]


def test_an_hour_without_answers_is_no_bar() -> None:
    """No data is not zero, and the highest hour reaches the top whatever the share."""
    line = SignalLine(
        assistant="shop[1]",
        environment=Environment.PRODUCTION,
        signal="escalated",
        share=0.0123,
        answers=4000,
        course=(None, 0.0, 0.01, 0.02),
    )
    out = io.StringIO()

    Console(file=out, width=120).print(census_table([line]))

    assert "shop[1] (production) escalated 1.23%" in " ".join(out.getvalue().split())
    assert "·▁▅█" in out.getvalue()
