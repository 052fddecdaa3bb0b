"""Notifications on the terminal of the notifying process."""

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from monitor.alerting.notification import Status
from monitor.alerting.receiver import Delivered, Notification
from monitor.alerting.render import as_text


class ConsoleReceiver:
    """The port `Receiver` on a terminal."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        """Take the console, standard output without one."""
        self._name = name
        self._console = console or Console()

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: Notification) -> Delivered:
        """Print a notification; a conversation's words are never read as markup."""
        colour = "green" if notification.status is Status.RESOLVED else "red"
        self._console.print(Panel(Text(as_text(notification)), border_style=colour))
        return Delivered(receiver=self._name)

    async def close(self) -> None:
        """Have nothing to let go of."""
