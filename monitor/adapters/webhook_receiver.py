"""Notifications posted to a URL, in Alertmanager's shape, signed."""

from collections.abc import Callable
from datetime import UTC, datetime

from monitor.adapters.http_delivery import HttpDelivery
from monitor.alerting.links import Links
from monitor.alerting.notification import GroupNotification
from monitor.alerting.receiver import Delivery, Pace
from monitor.alerting.webhook import body, headers


def _wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a receiver checks the signature's age against its own wall clock


class WebhookReceiver:
    """The port `Receiver` on HTTP."""

    pace = Pace()

    def __init__(
        self,
        name: str,
        *,
        url: str,
        secret: bytes | None = None,
        timeout_seconds: float = 10,
        links: Links = Links(),
        clock: Callable[[], datetime] = _wall_clock,
    ) -> None:
        """Take what config/routing.yaml says, with the values of the variables that it names."""
        self._name = name
        self._url = url
        self._secret = secret
        self._links = links
        self._clock = clock
        self._http = HttpDelivery(name, timeout_seconds=timeout_seconds)

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Post a notification, signed at this moment."""
        content = body(notification, links=self._links)
        fields = headers(content, notification, secret=self._secret, now=self._clock())
        return await self._http.post(self._url, content, fields)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
