"""Groups, silences and what waits to be sent, in Redis: a group's state and its notification are one step."""

import json
from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from monitor.adapters.redis_functions import Client, Functions, StoreUnavailable, guarded
from monitor.adapters.redis_keys import Keys
from monitor.alerting.forgetting import group_without_words_of
from monitor.alerting.group import Group, GroupChange
from monitor.alerting.notification import GroupNotification, WaitingNotification
from monitor.alerting.silence import Silence

ATTEMPTS = 5
"""Tries to win a compare-and-set against another who forgets."""
SILENCES_MAX = 1000
"""Silences kept; those that end first leave first."""
SILENCES_KEPT_DAYS = 30
"""Days for which people can see a silence that is over."""


class RedisGroups:
    """The port `GroupStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys, *, silences_max: int = SILENCES_MAX) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._functions = Functions(client, "cm_groups")
        self._silences_max = silences_max
        self._groups = keys.alerts("groups")
        self._waiting = keys.alerts("waiting")
        self._due = keys.alerts("waiting", "due")
        self._attempts = keys.alerts("waiting", "attempts")
        self._silences = keys.alerts("silences")
        self._ends = keys.alerts("silences", "ends")

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    async def groups(self) -> tuple[Group, ...]:
        """Return all groups, ordered by id."""
        texts = await _answered(self._client.hvals(self._groups))
        return tuple(sorted(map(_group, texts), key=lambda group: group.id))

    async def commit_group(self, change: GroupChange) -> bool:
        """Write a group's next state and its notification, if the version before it is still stored."""
        group, notification = change.group, change.notification
        done = await self._functions.call(
            "cm_groups_commit",
            [self._groups, self._waiting, self._due],
            [
                group.id,
                group.version - 1,
                "" if change.forget else group.model_dump_json(),
                notification.id if notification else "",
                notification.model_dump_json() if notification else "",
                notification.at.timestamp() if notification else 0,
            ],
        )
        return bool(done)

    async def waiting(self, now: datetime, limit: int) -> tuple[WaitingNotification, ...]:
        """Return the notifications that are due, the longest due first."""
        reply = await self._functions.call(
            "cm_groups_waiting", [self._waiting, self._due, self._attempts], [now.timestamp(), limit]
        )
        return tuple(map(_waiting, reply[::2], reply[1::2]))

    async def waiting_count(self) -> int:
        """Return how many notifications wait, due or not."""
        return int(await _answered(self._client.zcard(self._due)))

    async def postpone(self, waiting: WaitingNotification) -> None:
        """Write what became of an attempt and when the next one is due."""
        await self._functions.call(
            "cm_groups_postpone",
            [self._waiting, self._due, self._attempts],
            [waiting.id, waiting.model_dump_json(exclude={"notification"}), waiting.due_at.timestamp()],
        )

    async def finish_notifications(self, ids: Sequence[str]) -> None:
        """Take notifications out of the outbox."""
        if ids:
            keys = [self._waiting, self._due, self._attempts]
            await self._functions.call("cm_groups_finish", keys, list(ids))

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits; return how many messages held any."""
        erased = 0
        for name in await _answered(self._client.hkeys(self._waiting)):
            for _ in range(ATTEMPTS):
                text = await _answered(self._client.hget(self._waiting, name))
                told = GroupNotification.model_validate_json(text) if text else None
                after = told and group_without_words_of(told, conversation_id)
                if after is None:
                    break
                arguments = [name, text, after.model_dump_json()]
                if await self._functions.call("cm_groups_rewrite", [self._waiting], arguments):
                    erased += 1
                    break
            else:
                raise StoreUnavailable("groups: others keep changing what waits; try again")
        return erased

    async def silences(self) -> tuple[Silence, ...]:
        """Return the silences that are kept, ordered by their end and id."""
        texts = await _answered(self._client.hvals(self._silences))
        return tuple(sorted(map(_silence, texts), key=lambda one: (one.ends_at, one.id)))

    async def put_silence(self, silence: Silence) -> None:
        """Write a silence, or its earlier end."""
        oldest = silence.starts_at - timedelta(days=SILENCES_KEPT_DAYS)
        await self._functions.call(
            "cm_groups_silence",
            [self._silences, self._ends],
            [
                silence.id,
                silence.model_dump_json(),
                silence.ends_at.timestamp(),
                oldest.timestamp(),
                self._silences_max,
            ],
        )


@lru_cache(maxsize=1024)
def _group(text: bytes) -> Group:
    # The notifier reads all groups at each tick, and few of them changed since the last one.
    _, _, group = text.partition(b" ")
    return Group.model_validate_json(group)


def _waiting(text: bytes, attempts: bytes) -> WaitingNotification:
    notification = GroupNotification.model_validate_json(text)
    if not attempts:
        return WaitingNotification(notification=notification, due_at=notification.at)
    return WaitingNotification.model_validate({"notification": notification} | json.loads(attempts))


@lru_cache(maxsize=1024)
def _silence(text: bytes) -> Silence:
    return Silence.model_validate_json(text)


async def _answered(answer: Awaitable[Any]) -> Any:
    with guarded("groups"):
        return await answer
