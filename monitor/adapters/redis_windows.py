"""Windows in Redis: slices as hashes of packed counts, a ledger of what went in, all of it by shard."""

from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from monitor.adapters.redis_functions import UNAVAILABLE, Client, Functions, StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows_batch import ANSWERS, Entered, conversation_mark, minute_of, packed
from monitor.adapters.redis_windows_reply import Names, pairs
from monitor.intake.moments import floor
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import (
    BucketCounts,
    Granularity,
    Scope,
    contribution,
    is_unit,
)
from monitor.windows.case import Case, worst_first
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied
from monitor.windows.window import merged

LAYOUT = "w2"
"""Part of every key. Another layout gets another name, so that neither is read as the other."""
CALL_MAX = 100
"""Records in one call; the server does nothing else meanwhile (about 40 microseconds each)."""
PIPELINE_MAX = 500
"""Commands in one round trip, which bounds what their answers take in memory."""
REMEMBERED_MAX = 4096
"""Parsed buckets that a reader remembers; 6 hours of 40 scopes are 960."""
READ_TRIES = 3
"""Readings of hours or days, of which slices may leave meanwhile; they do once an hour."""
_LEVELS = {Granularity.BUCKET: "b", Granularity.HOUR: "h", Granularity.DAY: "d"}
_DAY = 1440


class RedisWindows:
    """The port `WindowStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys, policy: WindowPolicy) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._keys = keys
        self._policy = policy
        self._functions = Functions(client, "cm_windows", "cm_windows_ledger", "cm_windows_apply")
        self._bases = [keys.sharded(shard, LAYOUT) for shard in range(keys.shards)]
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
        of_shard: dict[int, list[tuple[int, Entered]]] = defaultdict(list)
        for place, record in enumerate(records):
            added = contribution(record, self._policy)
            if added is not None:
                shard = self._keys.shard_of(record.target.conversation_id)
                of_shard[shard].append((place, (record, added)))
        batches = [
            (shard, entered[first : first + CALL_MAX])
            for shard, entered in of_shard.items()
            for first in range(0, len(entered), CALL_MAX)
        ]
        replies = await self._functions.call_many(
            "cm_windows_enter",
            [
                ([self._bases[shard]], packed([one for _, one in batch], self._policy, now))
                for shard, batch in batches
            ],
        )
        for (_, batch), reply in zip(batches, replies, strict=True):
            for (place, _), letter in zip(batch, reply, strict=True):
                answers[place] = ANSWERS[letter]
        return tuple(answers)

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end); only changed ones are read again."""
        minutes = _slices(start, end, self._policy.bucket_minutes)
        by_day = [(day, list(of_day)) for day, of_day in groupby(minutes, _day)]
        replies = await self._pipelined(
            [
                ("HMGET", f"{base}:n:{scope.id}:{day}", *(f"b{minute}" for minute in of_day))
                for base in self._bases
                for day, of_day in by_day
            ]
        )
        days = len(by_day)
        versions = [
            [version for reply in replies[first : first + days] for version in reply]
            for first in range(0, len(replies), days or 1)
        ]
        known = dict(zip(minutes, zip(*versions, strict=True), strict=True)) if minutes else {}
        return await self._read(scope, {minute: seen for minute, seen in known.items() if any(seen)})

    async def _read(
        self, scope: Scope, known: Mapping[int, tuple[bytes | None, ...]]
    ) -> dict[datetime, BucketCounts]:
        changed = [m for m, seen in known.items() if self._remembered.get((scope.id, m), ((),))[0] != seen]
        for (_, minute), counts in (await self._counts(scope, [("b", minute) for minute in changed])).items():
            self._remembered[scope.id, minute] = (known[minute], counts)
        found = {}
        for minute in known:
            self._remembered.move_to_end((scope.id, minute))
            found[_moment(minute)] = self._remembered[scope.id, minute][1]
        while len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return {begin: counts for begin, counts in found.items() if counts}

    async def _counts(
        self, scope: Scope, slices: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], BucketCounts]:
        """Read slices, each by its level and minute."""
        where = [(base, level, minute) for level, minute in slices for base in self._bases]
        days = sorted({(base, _day(minute)) for base, _, minute in where})
        # Names come after the counts, which then have none that is too new for them.
        replies = await self._pipelined(
            [("HGETALL", f"{base}:{level}:{scope.id}:{minute}") for base, level, minute in where]
            + [("HGETALL", f"{base}:n:{scope.id}:{day}") for base, day in days]
        )
        names = dict(zip(days, map(Names, replies[len(where) :]), strict=True))
        parts: dict[tuple[str, int], list[BucketCounts]] = defaultdict(list)
        for (base, level, minute), reply in zip(where, replies, strict=False):
            parts[level, minute].append(names[base, _day(minute)].counts(reply))
        return {one: found[0] if len(found) == 1 else merged(found) for one, found in parts.items()}

    async def slices(
        self, scope: Scope, start: datetime, end: datetime, granularity: Granularity
    ) -> Mapping[datetime, BucketCounts]:
        """Return hours or days, each with what of it still stands in finer slices."""
        if granularity is Granularity.BUCKET:
            return await self.buckets(scope, start, end)
        size = granularity.minutes(self._policy)
        wanted = _slices(start, end, size)
        if not wanted:
            return {}
        levels = [_LEVELS[one] for one in Granularity if one.minutes(self._policy) <= size]
        span = (wanted[0], wanted[-1] + size)
        there = await self._standing(scope, levels, *span)
        for _ in range(READ_TRIES):
            counted = await self._counts(scope, sorted({(level, minute) for _, level, minute in there}))
            before, there = there, await self._standing(scope, levels, *span)
            # What left meanwhile is missing in what was read, or in it twice.
            if before <= there:
                break
        parts: dict[int, list[BucketCounts]] = defaultdict(list)
        for (_, minute), counts in counted.items():
            parts[minute - minute % size].append(counts)
        whole = ((_moment(minute), merged(found)) for minute, found in sorted(parts.items()))
        return {begin: counts for begin, counts in whole if counts}

    async def _standing(
        self, scope: Scope, levels: Sequence[str], first: int, last: int
    ) -> set[tuple[str, str, int]]:
        """Return the slices of these levels that begin in [first, last), each by its shard, level and minute."""
        where = [(level, base) for level in levels for base in self._bases]
        replies = await self._pipelined(
            [("ZRANGEBYSCORE", f"{base}:q:{level}", first, f"({last}") for level, base in where]
        )
        return {
            (base, level, int(minute))
            for (level, base), reply in zip(where, replies, strict=True)
            for owner, _, minute in (member.decode().rpartition(":") for member in reply)
            if owner == scope.id
        }

    async def others(self, scope: Scope, start: datetime, end: datetime) -> Mapping[str, int]:
        """Count the values that became `*other`, by key, over the days that [start, end) touches."""
        days = _slices(floor(start, minutes=_DAY), end, _DAY)
        replies = await self._pipelined(
            [("SMEMBERS", f"{base}:o:{scope.id}:{day}") for base in self._bases for day in days]
        )
        counted: dict[str, int] = defaultdict(int)
        for member in {member for reply in replies for member in reply}:
            counted[member.decode().rpartition(":")[0]] += 1
        return dict(counted)

    async def late(self, start: datetime, end: datetime) -> int:
        """Count what came too late on the days that [start, end) touches; no entry is in two shards."""
        days = _slices(floor(start, minutes=_DAY), end, _DAY)
        replies = await self._pipelined(
            [("PFCOUNT", f"{base}:late:{day}") for base in self._bases for day in days]
        )
        return sum(map(int, replies))

    async def worst(
        self, scope: Scope, start: datetime, end: datetime, *, dimension: str | None = None
    ) -> tuple[Case, ...]:
        """Return the worst cases of the buckets in [start, end)."""
        begins = sorted(await self.buckets(scope, start, end))
        replies = await self._pipelined(
            [
                ("HGETALL", f"{base}:w:{scope.id}:{minute_of(begin)}")
                for begin in begins
                for base in self._bases
            ]
        )
        cases: list[Case] = []
        for place in range(len(begins)):
            kept: dict[str, list[tuple[bytes, bytes]]] = defaultdict(list)
            for reply in replies[place * len(self._bases) : (place + 1) * len(self._bases)]:
                for field, text in pairs(reply):
                    kept[field.decode().partition("|")[0]].append((field, text))
            for name, found in kept.items():
                if dimension in {None, name}:
                    worst = sorted(found)[: self._policy.cases_per_bucket]
                    cases += (Case.model_validate_json(text) for _, text in worst)
        return tuple(sorted(cases, key=worst_first))

    async def scopes(self, granularity: Granularity = Granularity.BUCKET) -> tuple[Scope, ...]:
        """Return every scope that has a slice of this length or a shorter one."""
        size = granularity.minutes(self._policy)
        levels = {_LEVELS[one] for one in Granularity if one.minutes(self._policy) <= size}
        opened = await self._pipelined([("HKEYS", f"{base}:open") for base in self._bases])
        known = await self._pipelined([("HGETALL", f"{base}:scopes") for base in self._bases])
        ids = {field[1:] for fields in opened for field in fields if chr(field[0]) in levels}
        texts = {text for reply in known for scope_id, text in pairs(reply) if scope_id in ids}
        return tuple(Scope.model_validate_json(text) for text in sorted(texts))

    async def begins(self) -> tuple[datetime, ...]:
        """Return the starts of all buckets that may hold anything."""
        replies = await self._pipelined([("ZRANGE", f"{base}:q:b", 0, -1) for base in self._bases])
        minutes = {int(member.rpartition(b":")[2]) for reply in replies for member in reply}
        return tuple(_moment(minute) for minute in sorted(minutes))

    async def forget(self, conversation_id: str) -> int:
        """Erase the cases of a conversation, looked for in all buckets of its shard: people ask for it rarely."""
        base = self._bases[self._keys.shard_of(conversation_id)]
        [slices] = await self._pipelined([("ZRANGE", f"{base}:q:b", 0, -1)])
        keys = [f"{base}:w:{one.decode()}" for one in slices]
        fields = await self._pipelined([("HKEYS", key) for key in keys])
        mark = f"|{conversation_mark(conversation_id)}".encode()
        deletions = [
            ("HDEL", key, field)
            for key, kept in zip(keys, fields, strict=True)
            for field in kept
            if field.endswith(mark)
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

    async def _pipelined(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        replies: list[Any] = []
        try:
            for first in range(0, len(commands), PIPELINE_MAX):
                pipe = self._client.pipeline(transaction=False)
                for command in commands[first : first + PIPELINE_MAX]:
                    pipe.execute_command(*command)
                replies += await pipe.execute()
        except UNAVAILABLE as error:
            raise StoreUnavailable(f"windows: {error}") from error
        return replies


def _slices(start: datetime, end: datetime, size: int) -> list[int]:
    """Return the minutes in [start, end) at which slices of this many minutes begin."""
    first = -int(-start.timestamp() // (60 * size)) * size
    return list(range(first, -int(-end.timestamp() // 60), size))


def _day(minute: int) -> int:
    return minute - minute % _DAY


def _moment(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)
