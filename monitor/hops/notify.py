"""Alerts in; the alerts topic, groups and people's receivers out, at least once, with one id a notification."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from monitor.alerting.announcing import announce
from monitor.alerting.delivery import Attempt, deliver_waiting
from monitor.alerting.group_store import GroupStore
from monitor.alerting.receiver import Receiver, Refreshed
from monitor.alerting.refreshing import refresh
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.store import AlertStore
from monitor.alerting.trouble import record_trouble
from monitor.hops.inbound import Now
from monitor.publishing import Outgoing, Publisher
from monitor.topics import ALERTS

ROUND = 100
"""Transitions put on the topic in one go."""


class Notify:
    """The hop from alerts to people."""

    def __init__(
        self,
        *,
        alerts: AlertStore,
        groups: GroupStore,
        receivers: Mapping[str, Receiver],
        routing: RoutingPolicy,
        publisher: Publisher,
        prefix: str,
        now: Now,
    ) -> None:
        """Take the receivers by their names in the routing."""
        self._alerts = alerts
        self._groups = groups
        self._receivers = receivers
        self._routing = routing
        self._publisher = publisher
        self._topic = prefix + ALERTS
        self._now = now
        self._refreshed: dict[str, datetime] = {}

    async def __call__(self) -> tuple[Attempt, ...]:
        """Tell what there is to tell, the topic first: what people are told must be on record."""
        await self._record()
        now = self._now()
        await announce(self._alerts, self._groups, self._routing.rules, labels=self._routing.labels, now=now)
        done = await deliver_waiting(
            self._groups,
            self._receivers,
            now=now,
            give_up_after=timedelta(hours=self._routing.delivery.give_up_hours),
        )
        await record_trouble(
            self._alerts,
            self._groups,
            done,
            now=now,
            alert_after=timedelta(minutes=self._routing.delivery.alert_after_minutes),
        )
        await self._refresh(now)
        return done.attempts + done.unknown

    async def _record(self) -> None:
        for entry in await self._alerts.outbox(ROUND):
            key = entry.alert.fingerprint.encode()
            value = entry.model_dump_json().encode()
            await self._publisher.publish([Outgoing(self._topic, key, value)])
            await self._alerts.finish([entry.id])

    async def _refresh(self, now: datetime) -> None:
        for name, receiver in self._receivers.items():
            if not isinstance(receiver, Refreshed):
                continue
            last = self._refreshed.get(name)
            if last is None or now - last >= receiver.refresh_every or now < last:
                await refresh(self._alerts, self._groups, self._routing.labels, receiver, now=now)
                self._refreshed[name] = now
