"""The outbox in, notifications at their receivers out; what failed stays for the next round."""

from collections.abc import Mapping

from monitor.alerting.receiver import Delivered, Receiver, Undelivered
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.store import AlertStore


async def deliver_outbox(
    alerts: AlertStore,
    receivers: Mapping[str, Receiver],
    routing: RoutingPolicy,
    *,
    limit: int = 100,
    after: str | None = None,
) -> tuple[Delivered | Undelivered, ...]:
    """Tell what waits, oldest first; an entry leaves when nobody is left who may still take it.

    With `after`, an entry that this one does not have yet waits for its turn.
    """
    deliveries: list[Delivered | Undelivered] = []
    down: set[str] = set()
    for entry in await alerts.outbox(limit):
        if after is not None and after not in entry.delivered_to:
            continue
        wanted = routing.receivers_of(entry.notification.alert.severity)
        left = [name for name in wanted if name not in entry.delivered_to]
        for name in tuple(left):
            # A receiver that is down is asked once a round: it must not hold up the others.
            if name in down:
                continue
            delivery = await receivers[name].deliver(entry.notification)
            deliveries.append(delivery)
            if isinstance(delivery, Undelivered) and delivery.retry:
                down.add(name)
                continue
            if isinstance(delivery, Delivered):
                await alerts.delivered(entry.id, name)
            left.remove(name)
        if not left:
            await alerts.finish([entry.id])
    return tuple(deliveries)
