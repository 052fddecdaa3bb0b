"""Signs of life in Redis: one hash, a field a stage and instance."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.alerting.watchdog import Beat


class RedisHeartbeats:
    """The port `Heartbeats`."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client: Any = client
        self._key = keys.plain("heartbeats")

    async def beat(self, beats: Collection[Beat]) -> None:
        """Keep the newest sign of life of each."""
        if not beats:
            return
        with guarded("heartbeats"):
            await self._client.hset(self._key, mapping=_fields(beats))

    async def withdraw(self, stage: str, instance: str) -> None:
        """Forget one that has ended in order."""
        with guarded("heartbeats"):
            await self._client.hdel(self._key, _field(stage, instance))

    async def beats(self) -> tuple[Beat, ...]:
        """Return all that are kept."""
        with guarded("heartbeats"):
            found = await self._client.hgetall(self._key)
        beats = []
        for field, seconds in found.items():
            stage, _, instance = field.decode().partition("@")
            at = datetime.fromtimestamp(float(seconds), UTC)
            beats.append(Beat(stage=stage, instance=instance, at=at))
        return tuple(sorted(beats, key=lambda one: (one.stage, one.instance)))


class BlockingHeartbeats:
    """The two writes of the port for a process without a loop: the sampler."""

    def __init__(self, client: Any, keys: Keys) -> None:
        """Take a blocking client."""
        self._client = client
        self._key = keys.plain("heartbeats")

    def beat(self, beat: Beat) -> None:
        """Keep the newest sign of life."""
        with guarded("heartbeats"):
            self._client.hset(self._key, mapping=_fields([beat]))

    def withdraw(self, stage: str, instance: str) -> None:
        """Forget one that has ended in order."""
        with guarded("heartbeats"):
            self._client.hdel(self._key, _field(stage, instance))


def _fields(beats: Collection[Beat]) -> dict[str, float]:
    return {_field(one.stage, one.instance): one.at.timestamp() for one in beats}


def _field(stage: str, instance: str) -> str:
    return f"{stage}@{instance}"
