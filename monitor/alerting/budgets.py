"""A scope's buckets in, its budgets of failures and the findings on them out; the buckets are read once."""

from datetime import datetime, timedelta

from monitor.detection.finding import Finding
from monitor.detection.gates import GatePolicy
from monitor.detection.slo import StatsOver, budget_left, burn_rate, evaluate_slos
from monitor.intake.event import Environment, Value
from monitor.windows.bucket import OVERALL, Scope
from monitor.windows.store import WindowStore
from monitor.windows.window import WindowStats, all_stats, no_stats, window


class Budget(Value):
    """How one objective stands: its indicator over the period, what is left of its budget, and how fast that burns."""

    assistant: str
    environment: Environment
    variant: str | None
    judge_version: str
    dimension: str
    objective: float
    indicator: float | None
    """The share of scores of 4 and 5 over the period; None where nothing was scored."""
    left: float | None
    """Share of the budget; negative if it is overdrawn."""
    burns: dict[str, float | None]
    """By the long window of each burn, such as `6h`: how many times faster than allowed."""
    n: int
    """Judgments of the period."""


async def budgets_of(
    windows: WindowStore, policy: GatePolicy, scope: Scope, *, now: datetime
) -> tuple[Budget, ...]:
    """Return how the objectives of one scope stand now; nothing, and nothing is read, where there are none."""
    if not policy.slo.objectives:
        return ()
    over = await stats_over(windows, policy, scope, now=now)
    found = []
    for dimension, objective in policy.slo.objectives.items():
        figures = over[dimension]
        period = figures(policy.slo.period)
        found.append(
            Budget(
                assistant=scope.assistant,
                environment=scope.environment,
                variant=scope.variant,
                judge_version=scope.judge_version,
                dimension=dimension,
                objective=objective,
                indicator=period.pass_at_4,
                left=budget_left(period, objective),
                burns={
                    burn.name: burn_rate(figures(timedelta(minutes=burn.long_minutes)), objective)
                    for burn in policy.slo.burns
                },
                n=period.n,
            )
        )
    return tuple(found)


async def slo_findings(
    windows: WindowStore, policy: GatePolicy, scope: Scope, *, now: datetime, hold: bool = True
) -> tuple[Finding, ...]:
    """Return what the budgets of one scope say now; nothing, and nothing is read, where there are no objectives.

    For `hold` see `evaluate_gates`.
    """
    if not policy.slo.objectives:
        return ()
    over = await stats_over(windows, policy, scope, now=now)
    return evaluate_slos(
        over,
        policy.slo,
        scope=scope,
        now=now,
        coverage_min=policy.coverage_min,
        exceptions=policy.exceptions,
        hold=hold,
    )


async def stats_over(
    windows: WindowStore, policy: GatePolicy, scope: Scope, *, now: datetime
) -> dict[str, StatsOver]:
    """Return, by dimension with an objective, what gives its figures over any time that ends now."""
    lengths = {policy.slo.period, *(timedelta(minutes=burn.long_minutes) for burn in policy.slo.burns)}
    buckets = await windows.buckets(scope, now - max(lengths), now)
    known: dict[timedelta, dict[tuple[str, str], WindowStats]] = {}

    def figures(dimension: str) -> StatsOver:
        def over(length: timedelta) -> WindowStats:
            if length not in known:
                known[length] = all_stats(window(buckets, now - length, now).counts)
            return known[length].get((dimension, OVERALL), no_stats(dimension, OVERALL))

        return over

    return {dimension: figures(dimension) for dimension in policy.slo.objectives}
