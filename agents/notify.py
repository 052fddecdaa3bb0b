"""The timer of the hop NOTIFY: the outbox is emptied by one worker, at least once."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from agents.inbound import PASSING
from monitor.alerting.receiver import Undelivered
from monitor.alerting.store import OutboxEntry
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline

EVERY_SECONDS = 1.0
COUNT_MAX = 100
"""Waiting notifications that are counted; more of them are read for nothing."""

log = structlog.get_logger()


def attach(
    app: Any,
    pipeline: Pipeline,
    *,
    metrics: Metrics,
    outbox: Callable[[int], Awaitable[Sequence[OutboxEntry]]],
) -> None:
    """Attach the timer to an app."""

    async def notify() -> None:
        try:
            deliveries = await pipeline.notify()
            metrics.gauge("monitor_outbox_size", len(await outbox(COUNT_MAX)))
        except PASSING as error:
            metrics.count("monitor_hop_failures_total", stage="notify")
            log.warning("tick_failed", stage="notify", reason=str(error)[:300])
            return
        for one in deliveries:
            if isinstance(one, Undelivered):
                metrics.count("monitor_undelivered_total", receiver=one.receiver)
                log.error("undelivered", receiver=one.receiver, reason=one.reason, again=one.retry)
            else:
                log.info("delivered", receiver=one.receiver)

    app.timer(EVERY_SECONDS, name="notify", on_leader=True)(notify)
