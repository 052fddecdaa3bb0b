"""The port of the groups: their state goes in by compare-and-set, each change with its entry in the outbox."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from monitor.alerting.group import Group, GroupChange
from monitor.alerting.notification import WaitingNotification
from monitor.alerting.silence import Silence


class GroupStore(Protocol):
    """Whoever keeps groups, silences and what waits to be sent. Safe to repeat; raises StoreUnavailable."""

    async def groups(self) -> tuple[Group, ...]:
        """Return all groups, ordered by id."""
        ...

    async def commit_group(self, change: GroupChange) -> bool:
        """Write a group's next state and its notification in one step; False if another was there first."""
        ...

    async def waiting(self, now: datetime, limit: int) -> tuple[WaitingNotification, ...]:
        """Return the notifications that are due, the longest due first."""
        ...

    async def waiting_count(self) -> int:
        """Return how many notifications wait, due or not."""
        ...

    async def postpone(self, waiting: WaitingNotification) -> None:
        """Write what became of an attempt and when the next one is due; one that is finished stays so.

        The message itself stays as it is kept, since words may have been erased while it was tried.
        """
        ...

    async def finish_notifications(self, ids: Sequence[str]) -> None:
        """Take notifications out of the outbox: their receivers have them, or never will."""
        ...

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits; return how many messages held any."""
        ...

    async def silences(self) -> tuple[Silence, ...]:
        """Return the silences that are kept, ordered by their end and id."""
        ...

    async def put_silence(self, silence: Silence) -> None:
        """Write a silence, or its earlier end."""
        ...
