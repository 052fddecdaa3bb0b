"""Alerts kept alive in Alertmanager: told with an end in the near future, and again before it comes."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from monitor.adapters.http_delivery import HttpDelivery
from monitor.alerting.labels import FAILURES
from monitor.alerting.links import Links
from monitor.alerting.notification import GroupAlert, GroupNotification, Status
from monitor.alerting.receiver import Delivered, Delivery, Pace, Undelivered
from monitor.alerting.webhook import annotations
from monitor.alerting.wording import stamp

ALIVE_FOR = 4
"""Refreshes that an alert outlives, as with Prometheus: three may fail before Alertmanager believes it over."""


def _wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - Alertmanager compares the end with its own wall clock


class AlertmanagerReceiver:
    """The port `Receiver`, and `Refreshed`, on one or several Alertmanagers of a cluster.

    Each member is told, as Alertmanager asks of its clients; that one has it is enough, since they gossip.
    """

    pace = Pace(first_seconds=2, most_seconds=60)

    def __init__(
        self,
        name: str,
        *,
        urls: Sequence[str],
        headers: Mapping[str, str] | None = None,
        resend_seconds: float = 60,
        timeout_seconds: float = 10,
        links: Links = Links(),
        clock: Any = _wall_clock,
    ) -> None:
        """Take what config/routing.yaml says; `headers` bring the credentials."""
        self._name = name
        self._urls = [f"{url.rstrip('/')}/api/v2/alerts" for url in urls]
        self._headers = {"Content-Type": "application/json"} | dict(headers or {})
        self._resend = timedelta(seconds=resend_seconds)
        self._links = links
        self._clock = clock
        self._http = HttpDelivery(name, timeout_seconds=timeout_seconds)

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    @property
    def refresh_every(self) -> timedelta:
        """Return how often firing alerts are told again."""
        return self._resend

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Tell the alerts of a group, the resolved ones with their end."""
        return await self._tell(notification.alerts)

    async def refresh(self, firing: Sequence[GroupAlert], now: datetime) -> Delivery:
        """Tell again of alerts that fire on."""
        del now
        return await self._tell(firing)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def _tell(self, alerts: Sequence[GroupAlert]) -> Delivery:
        content = json.dumps([self._alert(one) for one in alerts], ensure_ascii=False).encode()
        answers = await asyncio.gather(
            *(self._http.post(url, content, self._headers, words=True) for url in self._urls)
        )
        refused = [one for one in answers if isinstance(one, Undelivered)]
        if len(refused) < len(answers):
            return Delivered(receiver=self._name)
        # One that may take it later is reason enough to come again.
        return next((one for one in refused if one.retry), refused[0])

    def _alert(self, one: GroupAlert) -> dict[str, Any]:
        alert, now = one.alert, self._clock()
        over = one.status is Status.RESOLVED
        # An end in the future would keep a resolved alert alive, and the clocks of machines differ.
        end = min(alert.resolved_at or now, now) if over else now + ALIVE_FOR * self._resend
        start = min(alert.since, end)
        return {
            # There labels are the identity, and one that changes would make another alert of it.
            "labels": {name: value for name, value in one.labels.items() if value and name != FAILURES},
            "annotations": annotations(one, self._links),
            "startsAt": stamp(start),
            "endsAt": stamp(end),
            "generatorURL": self._links.external_url,
        }


def basic(username: str, password: str) -> dict[str, str]:
    """Return the header of a name and a password."""
    token = base64.b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}
