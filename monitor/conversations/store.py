"""The port of what is remembered of kept conversations: their events, their outcomes, and when they are due."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from monitor.conversations.assembly import Outcome, Stored, Taken
from monitor.conversations.conversation import EndReason


class Arrival(StrEnum):
    """How an event came."""

    NEW = "new"
    AGAIN = "again"
    """The same message once more, after a restart: its effects are repeated, nothing is counted."""
    DUPLICATE = "duplicate"
    """The producer sent the event twice: counted, without effect."""
    OVERDUE = "overdue"
    """The conversation was over before this event: close it first, then take the event again."""


class Taking(NamedTuple):
    """One event to take in, and where its conversation is looked after."""

    taken: Taken
    partition: int
    at: datetime
    """When it came, on the deployment's clock: idleness and age count from here."""


class TakenIn(NamedTuple):
    """What the store says of one event."""

    arrival: Arrival
    revision: int
    due: datetime | None = None
    """When an overdue conversation was over."""


class Recorded(Protocol):
    """What the store needs of a judge's record; what else is in it belongs to a later room."""

    @property
    def judgment_id(self) -> str:
        """Return the id under which there is one record."""
        ...

    @property
    def outcome(self) -> str:
        """Return what it means for its events: judged, failed, expired or thinned."""
        ...

    @property
    def event_ids(self) -> tuple[str, ...]:
        """Return the events whose outcome it decides."""
        ...


R = TypeVar("R", bound=Recorded)


class Explained(NamedTuple, Generic[R]):
    """Everything that is known of one conversation."""

    stored: Stored | None
    outcomes: Mapping[str, tuple[str, Outcome]]
    """Source position and outcome by event id."""
    duplicates: Mapping[str, str]
    """Event id by source position, of what came twice."""
    due: datetime | None
    end_reason: EndReason | None
    records: Sequence[R]


class ConversationStore(Protocol[R]):
    """Where assembly remembers. Every call is safe to repeat."""

    async def take(self, takings: Sequence[Taking], *, ahead: bool = False) -> list[TakenIn]:
        """Take events in, in their order; a closed conversation that gets a new turn opens its next revision.

        `ahead` says that events may come before the close of what was over before them, as in a replay: these
        are not taken, but answered with OVERDUE.
        """
        ...

    async def load(self, conversation_ids: Sequence[str]) -> dict[str, Stored]:
        """Return the conversations that are known, with their texts while these are kept."""
        ...

    async def queued(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Move events, by conversation, from waiting to queued: their judgment has been asked for."""
        ...

    async def due(self, partition: int, *, now: datetime, limit: int) -> list[str]:
        """Return conversations of a partition that are over, those due longest first."""
        ...

    async def close(self, stored: Stored, partition: int, reason: EndReason) -> bool:
        """Close the revision, unless something came since it was loaded."""
        ...

    async def drop_due(self, conversation_id: str, partition: int) -> None:
        """Take a conversation off the due list of which nothing is remembered any more."""
        ...

    async def reject(self, conversation_id: str, source: str) -> None:
        """Count a kept message that is no valid event; once, however often it is read."""
        ...

    async def settle(self, records: Sequence[R]) -> None:
        """Give the judged events their outcome; a failure may later turn into a judgment, never the reverse."""
        ...

    async def funnel(self) -> dict[str, int]:
        """Return counts by `kind|outcome`."""
        ...

    async def explain(self, conversation_id: str) -> Explained[R]:
        """Return all that is known of one conversation."""
        ...

    async def forget(self, conversation_id: str) -> int:
        """Erase the texts of a conversation; figures stay. Return how many texts went."""
        ...
