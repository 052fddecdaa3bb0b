"""Splices in Redis: one hash, a field for each pair of judges."""

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.review.migration import Splice


class RedisSplices:
    """The port `Splices`. They do not expire: a baseline that was carried over rests on one."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._key = keys.plain("splices")

    async def get(self, *, old_judge: str, new_judge: str) -> Splice | None:
        """Return the newest splice, None where nobody migrated."""
        with guarded("splices"):
            raw = await self._client.hget(self._key, f"{old_judge}/{new_judge}")
        return Splice.model_validate_json(raw) if raw else None

    async def put(self, splice: Splice) -> None:
        """Keep a splice in the place of an older one."""
        with guarded("splices"):
            await self._client.hset(
                self._key, f"{splice.old_judge}/{splice.new_judge}", splice.model_dump_json()
            )
