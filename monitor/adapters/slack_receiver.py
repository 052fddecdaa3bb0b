"""Notifications in a Slack channel, one message a second at most."""

import asyncio
import json
import time

from monitor.adapters.http_delivery import HttpDelivery
from monitor.alerting.links import Links
from monitor.alerting.message import message_of
from monitor.alerting.notification import GroupNotification
from monitor.alerting.receiver import Delivery, Pace
from monitor.alerting.render_slack import as_slack

INTERVAL_SECONDS = 1.0
"""Slack takes one message a second and channel; bursts may pass, and may not."""


class SlackReceiver:
    """The port `Receiver` on an incoming webhook, which cannot edit: a double is a second message of the same id."""

    pace = Pace()

    def __init__(
        self,
        name: str,
        *,
        url: str,
        timeout_seconds: float = 10,
        links: Links = Links(),
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        """Take what config/routing.yaml says, with the address itself."""
        self._name = name
        self._url = url
        self._links = links
        self._interval = interval_seconds
        self._next_at = 0.0
        self._http = HttpDelivery(name, timeout_seconds=timeout_seconds)

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Post a message when its turn has come."""
        message = as_slack(message_of(notification, links=self._links))
        content = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
        delivery = await self._http.post(
            self._url, content, {"Content-Type": "application/json; charset=utf-8"}, words=True
        )
        self._next_at = time.monotonic() + self._interval
        return delivery

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
