"""Notifications as PagerDuty incidents: one a group, opened once, resolved once."""

from collections.abc import Mapping

from monitor.adapters.http_delivery import HttpDelivery
from monitor.alerting.links import Links
from monitor.alerting.notification import GroupNotification
from monitor.alerting.pagerduty import body
from monitor.alerting.receiver import Delivery, Pace
from monitor.detection.finding import Severity


class PagerDutyReceiver:
    """The port `Receiver` on the Events API v2."""

    # PagerDuty asks for minutes between tries.
    pace = Pace(first_seconds=30, most_seconds=600)

    def __init__(
        self,
        name: str,
        *,
        url: str,
        routing_key: str,
        severities: Mapping[Severity, str],
        timeout_seconds: float = 10,
        links: Links = Links(),
    ) -> None:
        """Take what config/routing.yaml says, with the routing key itself."""
        self._name = name
        self._url = url
        self._routing_key = routing_key
        self._severities = severities
        self._links = links
        self._http = HttpDelivery(name, timeout_seconds=timeout_seconds)

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Enqueue an event; the same group is the same incident, however often it is told."""
        content = body(
            notification,
            routing_key=self._routing_key,
            severities=self._severities,
            links=self._links,
        )
        return await self._http.post(self._url, content, {"Content-Type": "application/json"}, words=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
