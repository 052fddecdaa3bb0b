"""The twin of the groups: the same port in plain dictionaries, for tests and scenarios."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from monitor.alerting.forgetting import group_without_words_of
from monitor.alerting.group import Group, GroupChange
from monitor.alerting.notification import WaitingNotification
from monitor.alerting.silence import Silence

_KEPT = timedelta(days=30)


class MemoryGroupStore:
    """The port `GroupStore` in memory."""

    def __init__(self, *, silences_max: int = 1000) -> None:
        """Begin empty."""
        self._silences_max = silences_max
        self._groups: dict[str, Group] = {}
        self._waiting: dict[str, WaitingNotification] = {}
        self._silences: dict[str, Silence] = {}

    async def groups(self) -> tuple[Group, ...]:
        """Return all groups, ordered by id."""
        return tuple(self._groups[group_id] for group_id in sorted(self._groups))

    async def commit_group(self, change: GroupChange) -> bool:
        """Write a group's next state and its notification, if the version before it is still stored."""
        group, notification = change.group, change.notification
        stored = self._groups.get(group.id)
        if (stored.version if stored else 0) != group.version - 1:
            return False
        if change.forget:
            self._groups.pop(group.id, None)
        else:
            self._groups[group.id] = group
        if notification is not None:
            self._waiting[notification.id] = WaitingNotification(
                notification=notification, due_at=notification.at
            )
        return True

    async def waiting(self, now: datetime, limit: int) -> tuple[WaitingNotification, ...]:
        """Return the notifications that are due, the longest due first."""
        due = [one for one in self._waiting.values() if one.due_at <= now]
        return tuple(sorted(due, key=lambda one: (one.due_at, one.id))[:limit])

    async def waiting_count(self) -> int:
        """Return how many notifications wait, due or not."""
        return len(self._waiting)

    async def postpone(self, waiting: WaitingNotification) -> None:
        """Write what became of an attempt and when the next one is due."""
        if waiting.id in self._waiting:
            # The words are those that are kept, which may have been erased since they were read.
            kept = self._waiting[waiting.id].notification
            self._waiting[waiting.id] = waiting.model_copy(update={"notification": kept})

    async def finish_notifications(self, ids: Sequence[str]) -> None:
        """Take notifications out of the outbox."""
        for one in ids:
            self._waiting.pop(one, None)

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits; return how many messages held any."""
        erased = 0
        for name, waiting in self._waiting.items():
            after = group_without_words_of(waiting.notification, conversation_id)
            if after is not None:
                self._waiting[name] = waiting.model_copy(update={"notification": after})
                erased += 1
        return erased

    async def silences(self) -> tuple[Silence, ...]:
        """Return the silences that are kept, ordered by their end and id."""
        return tuple(sorted(self._silences.values(), key=lambda one: (one.ends_at, one.id)))

    async def put_silence(self, silence: Silence) -> None:
        """Write a silence, or its earlier end."""
        self._silences[silence.id] = silence
        oldest = silence.starts_at - _KEPT
        kept = [one for one in await self.silences() if one.ends_at >= oldest]
        self._silences = {one.id: one for one in kept[max(0, len(kept) - self._silences_max) :]}
