"""Baselines in Redis: a list for each scope, the current one at its head, and the set of scopes that have one."""

from functools import lru_cache
from typing import cast

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.detection.pinning import Pinned

KEPT_MAX = 20
"""Baselines kept of a scope, the newest; some 10 kB each."""


class RedisBaselines:
    """The port `BaselineStore`. They do not expire: people vouched for them."""

    def __init__(self, client: Client, keys: Keys, *, kept_max: int = KEPT_MAX) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._keys = keys
        self._kept_max = kept_max
        self._scopes = keys.plain("baselines")

    async def pin(self, pinned: Pinned) -> None:
        """Make this the baseline of its scope."""
        known = await self.current(pinned.scope.id)
        if known is not None and known.baseline == pinned.baseline:
            return
        key = self._key(pinned.scope.id)
        with guarded("baselines"):
            # The scope is listed first: a list that is not there yet is an empty one.
            await self._client.sadd(self._scopes, pinned.scope.id)
            await self._client.lpush(key, pinned.model_dump_json())
            await self._client.ltrim(key, 0, self._kept_max - 1)

    async def current(self, scope_id: str) -> Pinned | None:
        """Return the baseline of a scope."""
        with guarded("baselines"):
            raw = await self._client.lindex(self._key(scope_id), 0)
        return _pinned(cast("bytes", raw)) if raw else None

    async def all(self) -> tuple[Pinned, ...]:
        """Return all that are kept, the current one of each scope first."""
        found: list[Pinned] = []
        with guarded("baselines"):
            scopes = cast("set[bytes]", await self._client.smembers(self._scopes))
            for scope_id in sorted(scopes):
                kept = cast("list[bytes]", await self._client.lrange(self._key(scope_id.decode()), 0, -1))
                found += map(_pinned, kept)
        return tuple(found)

    def _key(self, scope_id: str) -> str:
        return self._keys.plain("baselines", scope_id)


@lru_cache(maxsize=256)
def _pinned(raw: bytes) -> Pinned:
    # Each evaluation asks for it, and it changes once in weeks.
    return Pinned.model_validate_json(raw)
