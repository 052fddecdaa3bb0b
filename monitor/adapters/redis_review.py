"""Review items in Redis: a hash of items and a set in the order of their times, both in one slot."""

from collections.abc import Sequence
from typing import cast

from monitor.adapters.redis_functions import Client, Functions, guarded
from monitor.adapters.redis_keys import Keys
from monitor.review.item import ReviewItem


class RedisReview:
    """The port `ReviewQueue`."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes; `start()` loads the function."""
        self._client = client
        self._keys = (keys.review("items"), keys.review("order"))
        self._functions = Functions(client, "cm_review")

    async def start(self) -> None:
        """Load the server-side function."""
        await self._functions.load()

    async def add(self, items: Sequence[ReviewItem]) -> int:
        """Add items; return how many were new."""
        if not items:
            return 0
        arguments: list[str | float] = []
        for item in items:
            arguments += [item.judgment_id, item.observed_at.timestamp(), item.model_dump_json()]
        return int(await self._functions.call("cm_review_add", self._keys, arguments))

    async def waiting(self, limit: int) -> list[ReviewItem]:
        """Return items, the oldest first."""
        with guarded("review"):
            ids = cast("list[bytes]", await self._client.zrange(self._keys[1], 0, limit - 1))
            raw = await self._client.hmget(self._keys[0], ids) if ids else []
        return [ReviewItem.model_validate_json(one) for one in raw if one]
