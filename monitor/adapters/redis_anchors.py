"""Anchors' scores in Redis: a hash of pinned scores and one of last rounds for each judge, and a hash a day.

No step needs a function: a pin is set once by HSETNX, and everything else may be written again.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.judging.anchors import AnchorScore

KEEP_DAYS = 90
"""As long as the archive by default: a shift since a baseline needs the scores of that time. 300 scores a day take
4 MB in all."""
CLAIM_SECONDS = 86_400
_DAY = timedelta(days=1)


class RedisAnchors:
    """The port `AnchorStore`. Pinned scores do not expire: they are what a year's drift is held against."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._keys = keys

    async def claim(self, number: int, *, judge_version: str, rubric_version: str) -> bool:
        """Take a round; False if another worker has it, or had it within the last day."""
        with guarded("anchors"):
            key = self._key(judge_version, rubric_version, "round", number)
            return bool(await self._client.set(key, 1, nx=True, ex=CLAIM_SECONDS))

    async def add(self, score: AnchorScore, *, judge_version: str, rubric_version: str) -> bool:
        """Keep a score; return whether it is the anchor's first, and so its pinned one."""
        value = score.model_dump_json()
        pinned = self._key(judge_version, rubric_version, "pins")
        with guarded("anchors"):
            first = bool(await self._client.hsetnx(pinned, score.anchor, value))
            if not first:
                known = await self._client.hget(pinned, score.anchor)
                # The same score again, after its first was written and its answer lost.
                first = known is not None and AnchorScore.model_validate_json(known).round == score.round
            if not first:
                day = self._day(judge_version, rubric_version, score.at)
                await self._client.hset(day, f"{score.anchor}|{score.round}", value)
                await self._client.expire(day, KEEP_DAYS * 86_400)
            last = self._key(judge_version, rubric_version, "last")
            await self._client.hset(last, score.anchor, score.round)
        return first

    async def last_rounds(self, *, judge_version: str, rubric_version: str) -> Mapping[str, int]:
        """Return by anchor in which round it was last scored."""
        found = await self._hash(self._key(judge_version, rubric_version, "last"))
        return {anchor: int(number) for anchor, number in found.items()}

    async def pins(self, *, judge_version: str, rubric_version: str) -> Mapping[str, AnchorScore]:
        """Return the pinned scores by anchor."""
        found = await self._hash(self._key(judge_version, rubric_version, "pins"))
        return {anchor: AnchorScore.model_validate_json(raw) for anchor, raw in found.items()}

    async def repin(self, pins: Sequence[AnchorScore], *, judge_version: str, rubric_version: str) -> None:
        """Put these in the place of all pinned scores."""
        key = self._key(judge_version, rubric_version, "pins")
        with guarded("anchors"):
            for one in pins:
                await self._client.hset(key, one.anchor, one.model_dump_json())
        old = (await self._hash(key)).keys() - {one.anchor for one in pins}
        if old:
            with guarded("anchors"):
                await self._client.hdel(key, *old)

    async def scores(
        self, start: datetime, end: datetime, *, judge_version: str, rubric_version: str
    ) -> Sequence[AnchorScore]:
        """Return the scores of [start, end) that are not pinned, by time."""
        found: list[AnchorScore] = []
        day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        while day < end:
            kept = await self._hash(self._day(judge_version, rubric_version, day))
            found += map(AnchorScore.model_validate_json, kept.values())
            day += _DAY
        return sorted(
            (one for one in found if start <= one.at < end), key=lambda one: (one.at, one.round, one.anchor)
        )

    async def _hash(self, key: str) -> dict[str, bytes]:
        with guarded("anchors"):
            found = cast("dict[bytes, bytes]", await self._client.hgetall(key))
        return {name.decode(): value for name, value in found.items()}

    def _day(self, judge_version: str, rubric_version: str, moment: datetime) -> str:
        return self._key(judge_version, rubric_version, f"{moment.astimezone(UTC):%Y-%m-%d}")

    def _key(self, judge_version: str, rubric_version: str, *parts: object) -> str:
        return self._keys.plain("anchors", judge_version, rubric_version, *parts)
