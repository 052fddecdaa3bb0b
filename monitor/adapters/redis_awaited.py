"""What the judge was asked, in Redis: a hash for each bucket, a field for each unit that waits."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.detection.settling import Awaited, Group

KEPT_SECONDS = 2 * 86_400
"""Garbage only: a bucket counts hours after its end whatever is missing."""


class RedisAwaited:
    """The port `AwaitedStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._keys = keys

    async def ask(self, units: Sequence[Awaited]) -> None:
        """Note units before they are asked for."""
        by_bucket: dict[datetime, dict[str, str]] = {}
        for unit in units:
            by_bucket.setdefault(unit.bucket, {})[unit.id] = json.dumps(unit.group)
        if not by_bucket:
            return
        with guarded("awaited"):
            pipe = self._client.pipeline(transaction=False)
            for bucket, fields in by_bucket.items():
                pipe.hset(self._key(bucket), mapping=cast("dict[Any, Any]", fields))
                pipe.expire(self._key(bucket), KEPT_SECONDS)
            await pipe.execute()

    async def answer(self, units: Sequence[tuple[datetime, str]]) -> None:
        """Forget units once their outcome is in the windows."""
        by_bucket: dict[datetime, list[str]] = {}
        for bucket, unit_id in units:
            by_bucket.setdefault(bucket, []).append(unit_id)
        if not by_bucket:
            return
        with guarded("awaited"):
            pipe = self._client.pipeline(transaction=False)
            for bucket, ids in by_bucket.items():
                pipe.hdel(self._key(bucket), *ids)
            await pipe.execute()

    async def waiting(self, begins: Sequence[datetime]) -> Mapping[datetime, Mapping[Group, int]]:
        """Return how many wait in these buckets, by group."""
        if not begins:
            return {}
        with guarded("awaited"):
            pipe = self._client.pipeline(transaction=False)
            for begin in begins:
                pipe.hvals(self._key(begin))
            found = cast("list[list[bytes]]", await pipe.execute())
        return {
            begin: Counter(Group(*json.loads(text)) for text in texts)
            for begin, texts in zip(begins, found, strict=True)
            if texts
        }

    def _key(self, bucket: datetime) -> str:
        return self._keys.plain("awaited", int(bucket.timestamp()) // 60)
