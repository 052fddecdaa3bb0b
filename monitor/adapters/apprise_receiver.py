"""Notifications through apprise: mail, chats and a hundred services more, each by its URL."""

import asyncio
from typing import Any, Literal, assert_never

from monitor.alerting.links import Links
from monitor.alerting.message import Message, message_of
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.receiver import Delivered, Delivery, Pace, Undelivered
from monitor.alerting.render_html import as_html
from monitor.alerting.render_markdown import as_markdown
from monitor.alerting.render_text import as_text

Format = Literal["text", "markdown", "html"]


class AppriseReceiver:
    """The port `Receiver` on one apprise URL; apprise tells only whether it went well, so every failure is retried."""

    pace = Pace(first_seconds=15, most_seconds=600)

    def __init__(
        self,
        name: str,
        *,
        url: str,
        format: Format = "text",  # noqa: A002 - the word of config/routing.yaml
        timeout_seconds: float = 30,
        links: Links = Links(),
    ) -> None:
        """Take the URL; raises ValueError where apprise knows no such service, without a word of the URL."""
        # It brings a hundred services, and most deployments need none of them.
        import apprise  # noqa: PLC0415

        self._name = name
        self._format: Format = format
        self._timeout = timeout_seconds
        self._links = links
        self._apprise: Any = apprise.Apprise()
        if not self._apprise.add(url):
            raise ValueError("apprise knows no service for this URL")

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Send a message; long ones are cut or parted as the service asks."""
        message = message_of(notification, links=self._links)
        try:
            async with asyncio.timeout(self._timeout):
                sent = await self._apprise.async_notify(
                    body=_rendered(message, self._format),
                    title=message.title,
                    notify_type="success" if message.status is Status.RESOLVED else "failure",
                    body_format=self._format,
                )
        except TimeoutError:
            return Undelivered(receiver=self._name, reason="timeout", retry=True)
        except Exception as error:  # noqa: BLE001 - a hundred services, each with exceptions of its own
            return Undelivered(receiver=self._name, reason=type(error).__name__, retry=True)
        if sent:
            return Delivered(receiver=self._name)
        return Undelivered(receiver=self._name, reason="apprise could not deliver it", retry=True)

    async def close(self) -> None:
        """Have nothing to let go of."""


def _rendered(message: Message, form: Format) -> str:
    match form:
        case "text":
            return as_text(message)
        case "markdown":
            return as_markdown(message)
        case "html":
            return as_html(message)
        case _:
            assert_never(form)
