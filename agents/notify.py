"""The timer of the hop NOTIFY: the outbox is emptied by one worker, at least once."""

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from agents.inbound import PASSING
from monitor.alerting.receiver import Undelivered
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline

EVERY_SECONDS = 1.0

log = structlog.get_logger()


def attach(
    app: Any,
    pipeline: Pipeline,
    *,
    metrics: Metrics,
    waiting: Callable[[], Awaitable[int]],
    ticked: Callable[[], None] | None = None,
) -> None:
    """Attach the timer to an app; `ticked` hears of each one that did its work."""

    async def notify() -> None:
        try:
            attempts = await pipeline.notify()
            metrics.gauge("monitor_outbox_size", await waiting())
            if ticked is not None:
                ticked()
        except PASSING as error:
            metrics.count("monitor_hop_failures_total", stage="notify")
            log.warning("tick_failed", stage="notify", reason=str(error)[:300])
            return
        for one in attempts:
            receiver = one.waiting.notification.receiver
            if isinstance(one.delivery, Undelivered):
                metrics.count("monitor_undelivered_total", receiver=receiver)
                log.error(
                    "undelivered",
                    receiver=receiver,
                    notification=one.waiting.id,
                    reason=one.delivery.reason,
                    attempts=one.waiting.attempts,
                    given_up=one.given_up,
                )
            else:
                log.info("delivered", receiver=receiver, notification=one.waiting.id)

    app.timer(EVERY_SECONDS, name="notify", on_leader=True)(notify)
