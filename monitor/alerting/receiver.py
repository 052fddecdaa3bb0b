"""The port of whoever is told, what it is told, and what it answers."""

from typing import Literal, Protocol

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.notification import Status
from monitor.intake.event import Moment, Value


class Notification(Value):
    """One transition as it is told. The id stays the same however often it is sent."""

    id: str
    alert: Alert
    reason: str
    at: Moment

    @property
    def status(self) -> Status:
        """Return whether the alert fires or is over."""
        return Status.RESOLVED if self.alert.state is AlertState.RESOLVED else Status.FIRING


class Delivered(Value):
    """The receiver has it."""

    outcome: Literal["delivered"] = "delivered"
    receiver: str


class Undelivered(Value):
    """The receiver does not have it, why, and whether asking again may help."""

    outcome: Literal["undelivered"] = "undelivered"
    receiver: str
    reason: str
    retry: bool


Delivery = Delivered | Undelivered


class Receiver(Protocol):
    """Whoever is told. An expected failure is a value; it raises only for bugs."""

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        ...

    async def deliver(self, notification: Notification) -> Delivery:
        """Tell it; bounded in time and attempts; the same id twice is the receiver's to recognise."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
