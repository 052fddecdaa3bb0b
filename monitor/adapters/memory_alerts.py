"""The twin of the alerts: the same port in plain dictionaries, for tests and scenarios."""

from collections.abc import Collection, Sequence
from datetime import datetime

from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.forgetting import told_without_words_of
from monitor.alerting.notification import GroupNotification
from monitor.alerting.receiver import Delivered, Delivery, Notification, Pace
from monitor.alerting.store import notification_of
from monitor.detection.exception import GateException


class MemoryAlertStore:
    """The port `AlertStore` in memory."""

    def __init__(self, *, resolved_max: int = 1000) -> None:
        """Begin empty."""
        self._resolved_max = resolved_max
        self._alerts: dict[str, Alert] = {}
        self._resolved: dict[str, float] = {}
        self._outbox: dict[str, Notification] = {}
        self._evaluated: datetime | None = None
        self._exceptions: dict[str, GateException] = {}

    async def get(self, fingerprint: str) -> Alert | None:
        """Return one alert."""
        return self._alerts.get(fingerprint)

    async def all(self, states: Collection[AlertState] | None = None) -> tuple[Alert, ...]:
        """Return the alerts in these states, ordered by fingerprint."""
        wanted = set(AlertState if states is None else states)
        alerts = (alert for alert in self._alerts.values() if alert.state in wanted)
        return tuple(sorted(alerts, key=lambda alert: alert.fingerprint))

    async def commit(self, transition: Transition) -> bool:
        """Write a transition and its outbox entry, if the version before it is still stored."""
        alert = transition.alert
        stored = self._alerts.get(alert.fingerprint)
        if (stored.version if stored else 0) != transition.expected_version:
            return False
        self._alerts[alert.fingerprint] = alert
        self._resolved.pop(alert.fingerprint, None)
        if alert.state is AlertState.RESOLVED:
            self._resolved[alert.fingerprint] = transition.at.timestamp()
        while len(self._resolved) > self._resolved_max:
            oldest = min(self._resolved, key=lambda fingerprint: (self._resolved[fingerprint], fingerprint))
            del self._resolved[oldest], self._alerts[oldest]
        notification = notification_of(transition)
        if notification is not None:
            self._outbox[notification.id] = notification
        return True

    async def outbox(self, limit: int) -> tuple[Notification, ...]:
        """Return the oldest unfinished notifications."""
        return tuple(self._outbox.values())[:limit]

    async def finish(self, entry_ids: Sequence[str]) -> None:
        """Take notifications out of the outbox."""
        for entry_id in entry_ids:
            self._outbox.pop(entry_id, None)

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits; return in how many entries."""
        erased = 0
        for name, entry in self._outbox.items():
            after = told_without_words_of(entry, conversation_id)
            if after is not None:
                self._outbox[name] = after
                erased += 1
        return erased

    async def exceptions(self) -> tuple[GateException, ...]:
        """Return what people signed for, ordered by alert."""
        return tuple(sorted(self._exceptions.values(), key=lambda one: one.alert or ""))

    async def put_exception(self, exception: GateException) -> None:
        """Write an exception; it replaces the one of the same alert."""
        self._exceptions[exception.alert or f"{exception.gate}/{exception.segment}"] = exception

    async def evaluated_through(self) -> datetime | None:
        """Return the last boundary whose evaluation is done."""
        return self._evaluated

    async def claim_evaluation(self, boundary: datetime, expected: datetime | None) -> bool:
        """Move the boundary on, if the expected one is still stored."""
        if self._evaluated != expected:
            return False
        self._evaluated = boundary
        return True


class MemoryReceiver:
    """The port `Receiver` in memory: it remembers what it was told, and answers what it is set to answer."""

    def __init__(self, name: str, *, pace: Pace | None = None) -> None:
        """Begin untold."""
        self._name = name
        self._pace = pace or Pace()
        self.told: list[GroupNotification] = []
        self.answer: Delivery = Delivered(receiver=name)

    @property
    def name(self) -> str:
        """Return its name in the routes."""
        return self._name

    @property
    def pace(self) -> Pace:
        """Return the rules for trying again."""
        return self._pace

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Remember what it was told."""
        self.told.append(notification)
        return self.answer

    async def close(self) -> None:
        """Have nothing to let go of."""
