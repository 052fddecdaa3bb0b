"""Kept conversations in Redis: one record and one hash of texts each, in the shard of the conversation."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from monitor.adapters.redis_functions import Call, Client, Functions, guarded
from monitor.adapters.redis_keys import Keys
from monitor.conversations.assembly import Outcome, Stored, Taken
from monitor.conversations.conversation import EndReason
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, Explained, TakenIn, Taking
from monitor.judging.judgment import JUDGMENT_RECORD, JudgeFailure, Judgment
from monitor.judging.shadow import counted_as

_SEPARATOR = "\x1f"


class RedisConversations:
    """The port `ConversationStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys, policy: ConversationPolicy) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._keys = keys
        self._policy = policy
        self._functions = Functions(client, "cm_conversations")

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    def _keys_of(self, conversation_id: str, partition: int = 0) -> list[str]:
        shard = self._keys.shard_of(conversation_id)
        return [
            self._keys.conversation(conversation_id),
            self._keys.conversation(conversation_id, "texts"),
            self._keys.sharded(shard, "due", partition),
            self._keys.sharded(shard, "funnel"),
        ]

    async def take(self, takings: Sequence[Taking], *, ahead: bool = False) -> list[TakenIn]:
        """Take events in, in their order."""
        policy = self._policy
        calls: list[Call] = []
        for taken, partition, moment in takings:
            soon = 0 if taken.kind == "conversation" else policy.end_grace_seconds
            calls.append(
                (
                    self._keys_of(taken.conversation_id, partition),
                    [
                        taken.event_id,
                        taken.source,
                        taken.outcome,
                        taken.kind,
                        taken.model_dump_json(),
                        taken.conversation_id,
                        moment.timestamp(),
                        policy.idle_seconds,
                        soon,
                        policy.max_age_seconds,
                        policy.keep_texts_hours * 3600,
                        policy.keep_records_days * 86_400,
                        int(ahead),
                        policy.max_turns,
                    ],
                )
            )
        answers = await self._functions.call_many("cm_conversation_take", calls)
        return [
            TakenIn(
                Arrival(arrival.decode()),
                int(revision),
                datetime.fromtimestamp(float(due[0]), UTC) if due else None,
            )
            for arrival, revision, *due in answers
        ]

    async def load(self, conversation_ids: Sequence[str]) -> dict[str, Stored]:
        """Return the conversations that are known."""
        replies = await self._pipelined(
            [
                ("HGETALL", key)
                for conversation_id in conversation_ids
                for key in self._keys_of(conversation_id)[:2]
            ]
        )
        found = {}
        for index, conversation_id in enumerate(conversation_ids):
            stored = _stored(conversation_id, replies[2 * index], replies[2 * index + 1])
            if stored is not None:
                found[conversation_id] = stored
        return found

    async def queued(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Move events, by conversation, from waiting to queued."""
        await self._functions.call_many(
            "cm_conversation_queued",
            [(self._keys_of(conversation_id), list(events)) for conversation_id, events in asked if events],
        )

    async def due(self, partition: int, *, now: datetime, limit: int) -> list[str]:
        """Return conversations of a partition that are over."""
        replies = await self._pipelined(
            [
                (
                    "ZRANGEBYSCORE",
                    self._keys.sharded(shard, "due", partition),
                    "-inf",
                    f"{now.timestamp():.3f}",
                    "WITHSCORES",
                    "LIMIT",
                    0,
                    limit,
                )
                for shard in range(self._keys.shards)
            ]
        )
        # Each shard gives its own in order; together the longest due come first all the same.
        found = [(float(at), one.decode()) for reply in replies for one, at in _scored(reply)]
        return [conversation_id for _, conversation_id in sorted(found)[:limit]]

    async def close(self, stored: Stored, partition: int, reason: EndReason) -> bool:
        """Close the revision, unless something came since it was loaded."""
        done = await self._functions.call(
            "cm_conversation_close",
            self._keys_of(stored.id, partition),
            [stored.id, stored.revision, len(stored.taken), reason],
        )
        return bool(done)

    async def drop_due(self, conversation_id: str, partition: int) -> None:
        """Take a conversation off the due list of which nothing is remembered any more."""
        await self._pipelined([("ZREM", self._keys_of(conversation_id, partition)[2], conversation_id)])

    async def reject(self, conversation_id: str, source: str) -> None:
        """Count a kept message that is no valid event, once."""
        await self._functions.call(
            "cm_conversation_reject",
            self._keys_of(conversation_id),
            [source, self._policy.keep_records_days * 86_400],
        )

    async def settle(self, records: Sequence[Judgment | JudgeFailure]) -> None:
        """Give the judged events their outcome."""
        await self._functions.call_many(
            "cm_conversation_settle",
            [
                (
                    self._keys_of(record.target.conversation_id),
                    [
                        record.judgment_id,
                        record.outcome,
                        counted_as(record),
                        record.model_dump_json(),
                        self._policy.keep_records_days * 86_400,
                        *record.event_ids,
                    ],
                )
                for record in records
            ],
        )

    async def funnel(self) -> dict[str, int]:
        """Return counts by `kind|outcome`, the shards added up."""
        replies = await self._pipelined(
            [("HGETALL", self._keys.sharded(shard, "funnel")) for shard in range(self._keys.shards)]
        )
        total: dict[str, int] = {}
        for reply in replies:
            for name, count in _pairs(reply).items():
                total[name.decode()] = total.get(name.decode(), 0) + int(count)
        return {name: count for name, count in sorted(total.items()) if count}

    async def explain(self, conversation_id: str) -> Explained[Judgment | JudgeFailure]:
        """Return all that is known of one conversation."""
        record_key, texts_key, *_ = self._keys_of(conversation_id)
        replies = await self._pipelined([("HGETALL", record_key), ("HGETALL", texts_key)])
        record = _pairs(replies[0])
        outcomes, duplicates, judged = {}, {}, []
        for name, value in record.items():
            prefix, _, rest = name.decode().partition(":")
            if prefix == "e":
                source, outcome, *_ = value.decode().split(_SEPARATOR)
                outcomes[rest] = (source, Outcome(outcome))
            elif prefix == "d":
                duplicates[rest] = value.decode()
            elif prefix == "j":
                judged.append(JUDGMENT_RECORD.validate_json(value.split(_SEPARATOR.encode(), 2)[2]))
        reason = record.get(b"reason")
        return Explained(
            stored=_stored(conversation_id, replies[0], replies[1]),
            outcomes=outcomes,
            duplicates=duplicates,
            due=await self._due_of(conversation_id),
            end_reason=EndReason(reason.decode()) if reason else None,
            records=sorted(judged, key=lambda one: (one.observed_at, one.judgment_id)),
        )

    async def _due_of(self, conversation_id: str) -> datetime | None:
        shard = self._keys.shard_of(conversation_id)
        with guarded("conversations"):
            async for key in self._client.scan_iter(match=self._keys.sharded(shard, "due", "*"), count=1000):
                score = await self._client.zscore(key, conversation_id)
                if score is not None:
                    return datetime.fromtimestamp(float(score), UTC)
        return None

    async def forget(self, conversation_id: str) -> int:
        """Erase texts and the judge's words about them; outcomes and scores stay."""
        record_key, texts_key, *_ = self._keys_of(conversation_id)
        explained = await self.explain(conversation_id)
        commands: list[tuple[Any, ...]] = [("DEL", texts_key)]
        for record in explained.records:
            field = f"j:{record.judgment_id}"
            silent = _SEPARATOR.join((record.outcome, counted_as(record), without_words(record)))
            commands.append(("HSET", record_key, field, silent))
        await self._pipelined(commands)
        return len(explained.stored.taken) if explained.stored else 0

    async def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not commands:
            return []
        with guarded("conversations"):
            pipe = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            return list(await pipe.execute())


def without_words(record: Judgment | JudgeFailure) -> str:
    """Return a record as JSON with its figures and without a word of the conversation."""
    if isinstance(record, Judgment):
        scores = tuple(
            score.model_copy(update={"reason": "[forgotten]", "quotes": ()}) for score in record.scores
        )
        return record.model_copy(update={"scores": scores}).model_dump_json()
    return record.model_copy(update={"reason": "[forgotten]"}).model_dump_json()


def _scored(reply: Any) -> list[tuple[bytes, Any]]:
    # A pipeline on a cluster hands out the flat list.
    if reply and isinstance(reply[0], bytes):
        return list(zip(reply[::2], reply[1::2], strict=True))
    return [(one[0], one[1]) for one in reply]


def _pairs(reply: Any) -> Mapping[bytes, bytes]:
    if isinstance(reply, dict):
        return reply
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _stored(conversation_id: str, record_reply: Any, texts_reply: Any) -> Stored | None:
    record = _pairs(record_reply)
    if b"rev" not in record:
        return None
    events = {
        name[2:].decode(): value.decode().split(_SEPARATOR)
        for name, value in record.items()
        if name.startswith(b"e:")
    }
    return Stored(
        id=conversation_id,
        revision=int(record[b"rev"]),
        closed_revision=int(record.get(b"closed", 0)),
        first_activity=datetime.fromtimestamp(float(record[b"first"]), UTC),
        taken=tuple(Taken.model_validate_json(text) for text in _pairs(texts_reply).values()),
        revisions={event: int(revision) for event, (_, _, revision, _) in events.items()},
        waiting=frozenset(
            event for event, (_, outcome, _, _) in events.items() if outcome == Outcome.WAITING
        ),
    )
