"""The sampler's census in Redis, for readers on a loop: a hash for each source partition and bucket."""

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import cast

import msgspec

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import SEPARATOR
from monitor.sampling.census import CensusCounts
from monitor.sampling.sampler import BUCKET_SECONDS

AT_ONCE = 500
"""Hashes read in one round trip; it bounds the memory that an answer takes."""
_decode_place = msgspec.json.Decoder(tuple[str, str, int]).decode


class RedisCensus:
    """The port `CensusStore`."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._keys = keys

    async def counts(self, start: datetime, end: datetime) -> CensusCounts:
        """Return the buckets that begin in [start, end)."""
        first = -(-int(start.timestamp()) // BUCKET_SECONDS) * BUCKET_SECONDS
        buckets = range(first, int(end.timestamp()), BUCKET_SECONDS)
        with guarded("census"):
            places = [
                _decode_place(one)
                for one in cast("set[bytes]", await self._client.smembers(self._keys.plain("sources")))
            ]
        wanted = [
            (bucket, self._keys.source(*place, "census", bucket)) for place in places for bucket in buckets
        ]
        found: defaultdict[datetime, Counter[tuple[str, str]]] = defaultdict(Counter)
        for begin in range(0, len(wanted), AT_ONCE):
            part = wanted[begin : begin + AT_ONCE]
            for (bucket, _), cells in zip(part, await self._read([key for _, key in part]), strict=True):
                for field, count in cells.items():
                    stratum, _, signal = field.decode().rpartition(SEPARATOR)
                    found[datetime.fromtimestamp(bucket, UTC)][stratum, signal] += int(count)
        return dict(sorted(found.items()))

    async def _read(self, keys: list[str]) -> list[dict[bytes, bytes]]:
        with guarded("census"):
            pipe = self._client.pipeline(transaction=False)
            for key in keys:
                pipe.hgetall(key)
            return cast("list[dict[bytes, bytes]]", await pipe.execute())
