"""Windows in Redis: buckets as hashes of cells, a ledger per conversation, each in its shard."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from monitor.adapters.redis_functions import UNAVAILABLE, Client, Functions, StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import (
    BucketCounts,
    Cell,
    Contribution,
    Scope,
    bucket_start,
    contribution,
    entry_key,
    is_late,
    is_unit,
    rank,
)
from monitor.windows.case import Case, cases_of, worst_first
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied
from monitor.windows.window import merged

CALL_MAX = 100
"""Records in one call; the server does nothing else meanwhile (about 60 microseconds each)."""
REMEMBERED_MAX = 4096
"""Parsed buckets that a reader remembers; 6 hours of 40 scopes are 960."""
TTL_MARGIN_DAYS = 1
"""Life beyond the retention, so that the server's clock never removes what the deployment's clock keeps."""
_PART, _FIELD, _RECORD = "\x1d", "\x1e", "\x1f"


class RedisWindows:
    """The port `WindowStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys, policy: WindowPolicy) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._keys = keys
        self._policy = policy
        self._functions = Functions(client, "cm_windows")
        self._remembered: OrderedDict[tuple[str, int], tuple[tuple[bytes | None, ...], BucketCounts]] = (
            OrderedDict()
        )

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    async def apply(
        self, records: Sequence[Judgment | JudgeFailure], *, now: datetime
    ) -> tuple[Applied, ...]:
        """Enter records, one call for each shard and hundred."""
        answers: list[Applied] = [Applied.IGNORED] * len(records)
        shards: dict[int, list[tuple[int, Judgment | JudgeFailure, Contribution]]] = defaultdict(list)
        for place, record in enumerate(records):
            added = contribution(record, self._policy)
            if added is None:
                continue
            if is_late(added.bucket, now=now, policy=self._policy):
                answers[place] = Applied.LATE
                continue
            shard = self._keys.shard_of(record.target.conversation_id)
            shards[shard].append((place, record, added))
        batches = [
            (shard, entries[first : first + CALL_MAX])
            for shard, entries in shards.items()
            for first in range(0, len(entries), CALL_MAX)
        ]
        replies = await self._functions.call_many(
            "cm_windows_apply", [self._call(shard, batch, now) for shard, batch in batches]
        )
        for (_, batch), reply in zip(batches, replies, strict=True):
            for (place, _, _), answer in zip(batch, reply, strict=True):
                answers[place] = Applied(answer.decode())
        return tuple(answers)

    def _call(
        self, shard: int, batch: Sequence[tuple[int, Judgment | JudgeFailure, Contribution]], now: datetime
    ) -> tuple[list[str], list[str | int]]:
        policy = self._policy
        oldest = bucket_start(now - policy.retention, policy.bucket_minutes)
        keys = [self._base(shard)]
        arguments: list[str | int] = [
            _minute(oldest),
            (policy.retention_days + TTL_MARGIN_DAYS) * 86_400,
            policy.cases_per_bucket,
        ]
        for _, record, added in batch:
            keys.append(self._keys.conversation(record.target.conversation_id, "windows"))
            arguments += (
                _entry(record),
                rank(record),
                added.scope.id,
                added.scope.model_dump_json(),
                _minute(added.bucket),
                _packed(added),
                _packed_cases(record),
            )
        return keys, arguments

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end); only changed ones are read again."""
        step = self._policy.bucket_minutes
        first = _minute(bucket_start(start, step))
        first += 0 if _moment(first) >= start else step
        minutes = [minute for minute in range(first, _minute(end) + 1, step) if _moment(minute) < end]
        if not minutes:
            return {}
        versions = await self._pipelined(
            [("HMGET", f"{self._base(shard)}:i:{scope.id}", *minutes) for shard in range(self._keys.shards)]
        )
        known = dict(zip(minutes, zip(*versions, strict=True), strict=True))
        return await self._read(scope, {minute: seen for minute, seen in known.items() if any(seen)})

    async def _read(
        self, scope: Scope, known: Mapping[int, tuple[bytes | None, ...]]
    ) -> dict[datetime, BucketCounts]:
        changed = [m for m, seen in known.items() if self._remembered.get((scope.id, m), ((),))[0] != seen]
        shards = range(self._keys.shards)
        replies = await self._pipelined(
            [("HGETALL", f"{self._base(s)}:b:{scope.id}:{minute}") for minute in changed for s in shards]
        )
        for place, minute in enumerate(changed):
            parts = replies[place * len(shards) : (place + 1) * len(shards)]
            self._remembered[scope.id, minute] = (known[minute], merged(map(_parsed, parts)))
        found = {}
        for minute in known:
            self._remembered.move_to_end((scope.id, minute))
            found[_moment(minute)] = self._remembered[scope.id, minute][1]
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return {begin: counts for begin, counts in found.items() if counts}

    async def worst(
        self, scope: Scope, start: datetime, end: datetime, *, dimension: str | None = None
    ) -> tuple[Case, ...]:
        """Return the worst cases of the buckets in [start, end)."""
        begins = sorted(await self.buckets(scope, start, end))
        shards = range(self._keys.shards)
        replies = await self._pipelined(
            [
                ("HGETALL", f"{self._base(shard)}:w:{scope.id}:{_minute(begin)}")
                for begin in begins
                for shard in shards
            ]
        )
        cases: list[Case] = []
        for place in range(len(begins)):
            kept: dict[str, list[tuple[bytes, bytes]]] = defaultdict(list)
            for reply in replies[place * len(shards) : (place + 1) * len(shards)]:
                for field, text in _pairs(reply):
                    kept[field.decode().partition("|")[0]].append((field, text))
            for name, found in kept.items():
                if dimension in {None, name}:
                    worst = sorted(found)[: self._policy.cases_per_bucket]
                    cases += (Case.model_validate_json(text) for _, text in worst)
        return tuple(sorted(cases, key=worst_first))

    async def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that has a bucket."""
        replies = await self._pipelined(
            [("HVALS", f"{self._base(shard)}:scopes") for shard in range(self._keys.shards)]
        )
        texts = sorted({text for reply in replies for text in reply})
        return tuple(Scope.model_validate_json(text) for text in texts)

    async def begins(self) -> tuple[datetime, ...]:
        """Return the starts of all buckets that may hold anything."""
        scopes, shards = await self.scopes(), range(self._keys.shards)
        replies = await self._pipelined(
            [("HKEYS", f"{self._base(shard)}:i:{scope.id}") for scope in scopes for shard in shards]
        )
        return tuple(_moment(minute) for minute in sorted({int(one) for reply in replies for one in reply}))

    async def forget(self, conversation_id: str) -> int:
        """Erase the cases of a conversation, found by its ledger; a ledger that is gone outlived its cases."""
        base = self._base(self._keys.shard_of(conversation_id))
        [ledger] = await self._pipelined([("HGETALL", self._keys.conversation(conversation_id, "windows"))])
        entered = [(entry.decode(), *text.decode().split(_FIELD, 3)[1:3]) for entry, text in _pairs(ledger)]
        places = {entry: f"{base}:w:{scope_id}:{minute}" for entry, scope_id, minute in entered}
        fields = await self._pipelined([("HKEYS", key) for key in places.values()])
        deletions = [
            ("HDEL", key, field)
            for (entry, key), kept in zip(places.items(), fields, strict=True)
            for field in kept
            if field.decode().endswith(f"|{entry}")
        ]
        return sum(int(count) for count in await self._pipelined(deletions))

    async def units(self) -> int:
        """Count the units of all kept buckets; a check, not for each evaluation."""
        begins = await self.begins()
        if not begins:
            return 0
        end = begins[-1] + timedelta(minutes=self._policy.bucket_minutes)
        scopes = [scope for scope in await self.scopes() if scope.target is TargetKind.CONVERSATION]
        kept = [await self.buckets(scope, begins[0], end) for scope in scopes]
        return sum(
            n for one in kept for counts in one.values() for cell, n in counts.items() if is_unit(cell)
        )

    def _base(self, shard: int) -> str:
        return self._keys.sharded(shard, "w")

    async def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not commands:
            return []
        try:
            pipe = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            return list(await pipe.execute())
        except UNAVAILABLE as error:
            raise StoreUnavailable(f"windows: {error}") from error


def _minute(moment: datetime) -> int:
    return int(moment.timestamp()) // 60


def _moment(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)


def _entry(record: Judgment | JudgeFailure) -> str:
    return entry_key(record.target, rubric_version=record.rubric_version, judge_version=record.judge.version)


def _packed(added: Contribution) -> str:
    marks = (f"{dimension}|{mark}" for dimension, mark in added.marks)
    return _RECORD.join((added.stratum, added.rate, _PART.join(added.segments), _PART.join(marks)))


def _packed_cases(record: Judgment | JudgeFailure) -> str:
    if not isinstance(record, Judgment):
        return ""
    entry = _entry(record)
    packed = (
        f"{case.dimension}|{case.score}|{entry}{_RECORD}{case.model_dump_json()}" for case in cases_of(record)
    )
    return "\x1e".join(packed)


def _parsed(reply: Mapping[bytes, bytes] | Sequence[bytes]) -> BucketCounts:
    return {Cell.parse(field.decode()): int(count) for field, count in _pairs(reply)}


def _pairs(reply: Mapping[bytes, bytes] | Sequence[bytes]) -> Iterable[tuple[bytes, bytes]]:
    # RESP3 answers with a map, RESP2 with a list.
    return reply.items() if isinstance(reply, Mapping) else zip(reply[::2], reply[1::2], strict=True)
