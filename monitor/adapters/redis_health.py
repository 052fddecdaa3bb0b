"""A judge's counters in Redis: a hash an hour, and the set of the records that are in it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from monitor.adapters.redis_functions import Call, Client, Functions, guarded
from monitor.adapters.redis_keys import Keys
from monitor.judging.health import HOUR, counted, hour_of, name_of
from monitor.judging.judgment import Record

KEEP_DAYS = 9
FIELDS_MAX = 2_000
"""Counters of one hour; prompt hashes beyond them are counted as `other`. It bounds the memory that they take."""
_PART = "\x1e"


class RedisHealth:
    """The port `HealthStore`."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes; `start()` loads the function."""
        self._client = client
        self._keys = keys
        self._functions = Functions(client, "cm_health")

    async def start(self) -> None:
        """Load the server-side function."""
        await self._functions.load()

    async def add(self, entries: Sequence[tuple[datetime, Record]]) -> None:
        """Count records, each in the hour of its time, in one round trip."""
        await self._functions.call_many("cm_health_add", [self._call(*entry) for entry in entries])

    def _call(self, moment: datetime, record: Record) -> Call:
        arguments: list[str | int] = [
            KEEP_DAYS * 86_400,
            FIELDS_MAX,
            f"{record.judgment_id}/{record.outcome}",
            name_of(record),
        ]
        for field, increment in counted(record).items():
            arguments += [field, int(increment)]
        return (self._key(moment, "seen"), self._key(moment, "counters")), arguments

    async def read(self, start: datetime, end: datetime) -> Mapping[str, Mapping[str, int]]:
        """Return the sums of the counters in [start, end)."""
        sums: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        hour = hour_of(start)
        while hour < end:
            with guarded("health"):
                found = cast("dict[bytes, bytes]", await self._client.hgetall(self._key(hour, "counters")))
            for raw, count in found.items():
                name, _, field = raw.decode().partition(_PART)
                sums[name][field] += int(count)
            hour += HOUR
        return {name: dict(fields) for name, fields in sorted(sums.items())}

    def _key(self, hour: datetime, part: str) -> str:
        # Both keys of an hour lie in one slot, so that a record and its counts are one step.
        return self._keys.plain(f"{{health/{hour_of(hour):%Y-%m-%dT%H}}}", part)
