"""The census in Redis, read: a hash for each bucket and source partition, added up."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.sampling.census import CensusCounts
from monitor.sampling.sampler import BUCKET_SECONDS

SEPARATOR = "\x1f"
"""Between stratum and signal in a field."""
SOURCES = "census_sources"
"""The set of source partitions that have a census, so that no reader has to search for their keys."""
CHANGING = 96
"""The newest buckets, which are read each time; an event a day late is counted by the next process that starts."""


class RedisCensus:
    """The port `Census` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._keys = keys
        self._known: dict[datetime, CensusCounts] = {}

    async def read(self, start: datetime, end: datetime) -> Mapping[datetime, CensusCounts]:
        """Return the buckets that begin in [start, end); old ones are read once."""
        seconds = BUCKET_SECONDS
        first = -(-int(start.timestamp()) // seconds) * seconds
        begins = [datetime.fromtimestamp(at, UTC) for at in range(first, int(end.timestamp()), seconds)]
        changing = set(begins[-CHANGING:])
        wanted = [begin for begin in begins if begin in changing or begin not in self._known]
        fresh = await self._fetched(wanted)
        kept = {begin: counts for begin, counts in self._known.items() if start <= begin < end}
        # What did not change stays the same object, so that nobody need compare it.
        self._known = kept | {b: counts for b, counts in fresh.items() if kept.get(b) != counts}
        return {begin: self._known[begin] for begin in begins if self._known.get(begin)}

    async def _fetched(self, begins: Sequence[datetime]) -> dict[datetime, CensusCounts]:
        with guarded("census"):
            members = cast("set[bytes]", await self._client.smembers(self._keys.plain(SOURCES)))
            places = sorted(json.loads(member) for member in members)
            if not places or not begins:
                return {begin: {} for begin in begins}
            pipe = self._client.pipeline(transaction=False)
            for begin in begins:
                for cluster, topic, partition in places:
                    pipe.hgetall(
                        self._keys.source(cluster, topic, partition, "census", int(begin.timestamp()))
                    )
            replies = cast("list[Mapping[bytes, bytes]]", await pipe.execute())
        found: dict[datetime, CensusCounts] = {}
        for number, begin in enumerate(begins):
            total: dict[tuple[str, str], int] = {}
            for reply in replies[number * len(places) : (number + 1) * len(places)]:
                for field, count in reply.items():
                    stratum, _, signal = field.decode().rpartition(SEPARATOR)
                    total[stratum, signal] = total.get((stratum, signal), 0) + int(count)
            found[begin] = total
        return found
