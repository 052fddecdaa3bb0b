"""The port of the alerts: transitions go in by compare-and-set, each with its entry in the outbox."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.receiver import Notification
from monitor.detection.exception import GateException


def notification_of(transition: Transition) -> Notification | None:
    """Return what is on record of a transition: what people are told, and what they did; None for the rest."""
    if not transition.notify and transition.by is None:
        return None
    return Notification(id=transition.id, alert=transition.alert, reason=transition.reason, at=transition.at)


class AlertStore(Protocol):
    """Whoever keeps the alerts. Every method is safe to repeat and raises StoreUnavailable if it cannot."""

    async def get(self, fingerprint: str) -> Alert | None:
        """Return one alert, resolved ones too as long as they are kept."""
        ...

    async def all(self, states: Collection[AlertState] | None = None) -> tuple[Alert, ...]:
        """Return the alerts in these states, all of them without, ordered by fingerprint."""
        ...

    async def commit(self, transition: Transition) -> bool:
        """Write a transition and its outbox entry in one step; False if another version is stored by now."""
        ...

    async def outbox(self, limit: int) -> tuple[Notification, ...]:
        """Return the oldest notifications that are not finished."""
        ...

    async def finish(self, entry_ids: Sequence[str]) -> None:
        """Take notifications out of the outbox: they are on the topic."""
        ...

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits for the topic, not in the alerts; return in how many entries."""
        ...

    async def exceptions(self) -> tuple[GateException, ...]:
        """Return what people signed for on the command line, ordered by alert; those that are over, too."""
        ...

    async def put_exception(self, exception: GateException) -> None:
        """Write an exception; it replaces the one of the same alert."""
        ...

    async def evaluated_through(self) -> datetime | None:
        """Return the last boundary whose evaluation is done; None before the first."""
        ...

    async def claim_evaluation(self, boundary: datetime, expected: datetime | None) -> bool:
        """Move `evaluated_through` on, after the effects; False if another leader was there first."""
        ...
