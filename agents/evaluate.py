"""The timer of the hop EVALUATE. It runs on the leader; leadership is not fenced, so every effect is."""

import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog

from agents.inbound import PASSING
from monitor.clock import ClockKind, ClockPolicy
from monitor.hops.inbound import Now
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline

log = structlog.get_logger()


def attach(
    app: Any,
    pipeline: Pipeline,
    clock: ClockPolicy,
    *,
    metrics: Metrics,
    evaluated_through: Callable[[], Awaitable[datetime | None]],
    now: Now,
    ticked: Callable[[], None] | None = None,
) -> None:
    """Attach the timer to an app; `ticked` hears of each one that did its work."""

    async def measure() -> None:
        # The stream's clock stands still between two replays, and that is no lag.
        through = await evaluated_through() if clock.kind is ClockKind.WALL else None
        if through is not None:
            metrics.gauge("monitor_evaluation_lag_seconds", (now() - through).total_seconds())

    async def evaluate() -> None:
        try:
            started = time.monotonic()
            transitions = await pipeline.evaluate()
            metrics.time("monitor_hop_seconds", time.monotonic() - started, stage="evaluate")
            await measure()
            if ticked is not None:
                ticked()
        except PASSING as error:
            metrics.count("monitor_hop_failures_total", stage="evaluate")
            log.warning("tick_failed", stage="evaluate", reason=str(error)[:300])
            return
        for one in transitions:
            log.info(
                "alert",
                fingerprint=one.alert.fingerprint,
                state=one.alert.state,
                at=one.at.isoformat(),
                kind=one.alert.kind,
                told=one.notify,
            )

    app.timer(clock.tick_seconds, name="evaluate", on_leader=True)(evaluate)
