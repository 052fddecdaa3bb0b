"""The registry in Redis, a hash; and what served, a hash an hour with the set of the conversations that are in it."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import cast

from monitor.adapters.redis_functions import Argument, Client, Functions, guarded
from monitor.adapters.redis_keys import Keys
from monitor.detection.registry import NOTHING, VARIOUS, Registered, Served, Sight, Tally
from monitor.intake.event import Environment
from monitor.judging.health import HOUR, hour_of

KEEP_DAYS = 9
FIELDS_MAX = 1000
"""Configurations counted one by one in an hour; it bounds the memory that a changing hash takes."""


class RedisConfigurations:
    """The port `ConfigurationStore`."""

    def __init__(self, client: Client, keys: Keys, *, fields_max: int = FIELDS_MAX) -> None:
        """Take a client that answers in bytes; `start()` loads the function."""
        self._client = client
        self._keys = keys
        self._fields_max = fields_max
        self._functions = Functions(client, "cm_configurations")

    async def start(self) -> None:
        """Load the server-side function."""
        await self._functions.load()

    async def register(self, entries: Sequence[Registered]) -> None:
        """Write entries under their ids."""
        if entries:
            fields = [text for entry in entries for text in (entry.id, entry.model_dump_json())]
            with guarded("configurations"):
                await self._client.hset(self._registry, items=fields)

    async def remove(self, entry_id: str) -> bool:
        """Take an entry out; False if there was none."""
        with guarded("configurations"):
            return bool(await self._client.hdel(self._registry, entry_id))

    async def registered(self) -> tuple[Registered, ...]:
        """Return all entries, ordered by assistant and time."""
        with guarded("configurations"):
            texts = await self._client.hvals(self._registry)
        entries = map(Registered.model_validate_json, texts)
        return tuple(sorted(entries, key=lambda one: (one.assistant, one.at, one.id)))

    async def count(self, sights: Sequence[Sight]) -> None:
        """Count conversations, each once an hour and configuration, in one round trip."""
        by_hour: defaultdict[datetime, list[Argument]] = defaultdict(
            lambda: [KEEP_DAYS * 86_400, self._fields_max]
        )
        for one in sights:
            rest = one.served._replace(values=VARIOUS)
            by_hour[one.hour] += [one.unit, _field(one.served, one.rate), _field(rest, one.rate)]
        await self._functions.call_many(
            "cm_configurations_count",
            [
                ((self._key(hour, "seen"), self._key(hour, "served")), arguments)
                for hour, arguments in by_hour.items()
            ],
        )

    async def served(self, start: datetime, end: datetime) -> Mapping[Served, Tally]:
        """Return what served in the hours that touch [start, end)."""
        found: dict[Served, Tally] = {}
        hour = hour_of(start)
        while hour < end:
            with guarded("configurations"):
                counts = cast("dict[bytes, bytes]", await self._client.hgetall(self._key(hour, "served")))
            for field, count in counts.items():
                served, rate = _read(field)
                tally = Tally(int(count), int(count) / rate)
                found[served] = found.get(served, NOTHING).plus(tally)
            hour += HOUR
        return found

    @property
    def _registry(self) -> str:
        return self._keys.plain("configurations")

    def _key(self, hour: datetime, part: str) -> str:
        # Both keys of an hour lie in one slot, so that a conversation and its count are one step.
        return self._keys.plain(f"{{configurations/{hour:%Y-%m-%dT%H}}}", part)


@lru_cache(maxsize=4096)
def _field(served: Served, rate: float) -> str:
    # The rate is the weight class, so that counts stay whole numbers.
    return json.dumps([*served, rate], ensure_ascii=False)


def _read(field: bytes) -> tuple[Served, float]:
    assistant, environment, values, rate = json.loads(field)
    return Served(assistant, Environment(environment), tuple((key, value) for key, value in values)), rate
