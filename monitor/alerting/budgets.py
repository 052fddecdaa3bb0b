"""A scope's buckets in, the findings on its budgets of failures out; the buckets are read once."""

from datetime import datetime, timedelta

from monitor.detection.finding import Finding
from monitor.detection.gates import GatePolicy
from monitor.detection.slo import StatsOver, evaluate_slos
from monitor.windows.bucket import OVERALL, Scope
from monitor.windows.store import WindowStore
from monitor.windows.window import WindowStats, all_stats, no_stats, window


async def slo_findings(
    windows: WindowStore, policy: GatePolicy, scope: Scope, *, now: datetime
) -> tuple[Finding, ...]:
    """Return what the budgets of one scope say now; nothing, and nothing is read, where there are no objectives."""
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
