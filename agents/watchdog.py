"""The timer of the watchdog: the alert that always fires, for as long as every process gives signs of life."""

from collections.abc import Mapping
from typing import Any

import structlog

from agents.inbound import PASSING
from monitor.alerting.receiver import Receiver, Undelivered
from monitor.alerting.watchdog import Heartbeats, WatchdogPolicy, watch, watchdog_notification
from monitor.hops.inbound import Now
from monitor.metrics import Metrics

log = structlog.get_logger()


def attach(
    app: Any,
    policy: WatchdogPolicy,
    receivers: Mapping[str, Receiver],
    heartbeats: Heartbeats,
    *,
    metrics: Metrics,
    now: Now,
) -> None:
    """Attach the timer to the app of the notifier. It goes past the outbox: a sign of life must not wait."""

    async def bark() -> None:
        await once(policy, receivers, heartbeats, metrics=metrics, now=now)

    app.timer(policy.every_seconds, name="watchdog", on_leader=True)(bark)


async def once(
    policy: WatchdogPolicy,
    receivers: Mapping[str, Receiver],
    heartbeats: Heartbeats,
    *,
    metrics: Metrics,
    now: Now,
) -> bool:
    """Tell the receiver that all is well, if it is; return whether it heard it."""
    try:
        watched = watch(await heartbeats.beats(), policy, now=now())
    except PASSING as error:
        log.warning("watchdog_silent", reason=str(error)[:300])
        metrics.gauge("monitor_watchdog", 0)
        return False
    if not watched.alive:
        log.error("watchdog_silent", reason=watched.reason)
        metrics.gauge("monitor_watchdog", 0)
        return False
    delivery = await receivers[policy.receiver].deliver(watchdog_notification(policy, watched, now=now()))
    heard = not isinstance(delivery, Undelivered)
    if isinstance(delivery, Undelivered):
        log.error("watchdog_unheard", receiver=policy.receiver, reason=delivery.reason)
    metrics.gauge("monitor_watchdog", float(heard))
    return heard
