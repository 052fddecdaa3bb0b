"""Notifications on the terminal of the notifying process."""

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from monitor.alerting.links import Links
from monitor.alerting.message import message_of
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.receiver import Delivered, Pace
from monitor.alerting.render_text import as_text


class ConsoleReceiver:
    """The port `Receiver` on a terminal."""

    pace = Pace()

    def __init__(self, name: str, console: Console | None = None, *, links: Links = Links()) -> None:
        """Take the console, standard output without one."""
        self._name = name
        self._console = console or Console()
        self._links = links

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivered:
        """Print a notification; a conversation's words are never read as markup."""
        colour = "green" if notification.status is Status.RESOLVED else "red"
        text = as_text(message_of(notification, links=self._links))
        self._console.print(Panel(Text(text), border_style=colour))
        return Delivered(receiver=self._name)

    async def close(self) -> None:
        """Have nothing to let go of."""
