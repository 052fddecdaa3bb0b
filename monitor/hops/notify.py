"""The outbox in; the alerts topic and people's receivers out, at least once, with one id a notification."""

from collections.abc import Mapping

from monitor.alerting.delivery import deliver_outbox
from monitor.alerting.receiver import Delivered, Receiver, Undelivered
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.store import AlertStore
from monitor.publishing import Outgoing, Publisher
from monitor.topics import ALERTS

TOPIC = "alerts-topic"
"""The name under which the outbox remembers that the topic has an entry."""
ROUND = 100
"""Notifications told in one go."""


class Notify:
    """The hop from alerts to people."""

    def __init__(
        self,
        *,
        alerts: AlertStore,
        receivers: Mapping[str, Receiver],
        routing: RoutingPolicy,
        publisher: Publisher,
        prefix: str,
    ) -> None:
        """Take the receivers by their names in the routing."""
        self._alerts = alerts
        self._receivers = receivers
        self._routing = routing
        self._publisher = publisher
        self._topic = prefix + ALERTS

    async def __call__(self) -> tuple[Delivered | Undelivered, ...]:
        """Tell what waits, the topic first: what people were told must be on record."""
        for entry in await self._alerts.outbox(ROUND):
            if TOPIC not in entry.delivered_to:
                key = entry.notification.alert.fingerprint.encode()
                value = entry.notification.model_dump_json().encode()
                await self._publisher.publish([Outgoing(self._topic, key, value)])
                await self._alerts.delivered(entry.id, TOPIC)
        return await deliver_outbox(self._alerts, self._receivers, self._routing, limit=ROUND, after=TOPIC)
