"""The port of whoever is told, what it is told, and what it answers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.notification import GroupAlert, GroupNotification, Status
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
    retry_after_seconds: float | None = None
    """What the receiver itself asked for."""


Delivery = Delivered | Undelivered


class Pace(Value):
    """How long a receiver is left alone after it failed: doubling from the first to the longest pause."""

    first_seconds: float = 5.0
    most_seconds: float = 300.0
    retry_after_max_seconds: float = 3600.0
    """The longest pause that a receiver may ask for; more would be a wrong clock or a joke."""


class Receiver(Protocol):
    """Whoever is told. An expected failure is a value; it raises only for bugs."""

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        ...

    @property
    def pace(self) -> Pace:
        """Return its own rules for trying again."""
        ...

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Try once, bounded in time; the same id twice is the receiver's to recognise."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class Refreshed(Protocol):
    """A receiver whose alerts end by themselves unless they are told again and again."""

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        ...

    @property
    def refresh_every(self) -> timedelta:
        """Return how often it must be told."""
        ...

    async def refresh(self, firing: Sequence[GroupAlert], now: datetime) -> Delivery:
        """Tell it that these fire on; a failure is made good by the next time."""
        ...
