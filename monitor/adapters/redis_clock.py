"""The stream's time in Redis: one hash a hop and partition, times only ever rise."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from monitor.adapters.redis_functions import Argument, Client, Functions, guarded
from monitor.adapters.redis_keys import Keys


class RedisClock:
    """The port `ClockStore`."""

    def __init__(self, client: Client, keys: Keys, *, partitions: int) -> None:
        """Take the number of partitions that the conversation topics have."""
        self._client = client
        self._keys = keys
        self._partitions = partitions
        self._functions = Functions(client, "cm_clock")

    async def start(self) -> None:
        """Load the server-side function."""
        await self._functions.load()

    async def advance(
        self, hop: str, partition: int, times: Mapping[str, datetime], *, idle: Collection[str] = ()
    ) -> dict[str, datetime]:
        """Raise the times of a partition's sources and leave out the idle ones; return all that are known."""
        arguments: list[Argument] = [len(idle), *idle]
        for source, moment in times.items():
            arguments += [source, moment.timestamp()]
        reply = await self._functions.call(
            "cm_clock_advance", [self._keys.plain("clock", hop, partition)], arguments
        )
        return _times(reply)

    async def read(self, hop: str) -> dict[int, datetime]:
        """Return the least time of each partition that has one."""
        with guarded("clock"):
            pipe = self._client.pipeline(transaction=False)
            for partition in range(self._partitions):
                pipe.execute_command("HGETALL", self._keys.plain("clock", hop, partition))
            replies = await pipe.execute()
        found = {}
        for partition, reply in enumerate(replies):
            pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
            times = _times([part for pair in pairs for part in pair])
            if times:
                found[partition] = min(times.values())
        return found


def _times(flat: list[bytes]) -> dict[str, datetime]:
    return {
        source.decode(): datetime.fromtimestamp(float(at), UTC)
        for source, at in zip(flat[::2], flat[1::2], strict=True)
    }
