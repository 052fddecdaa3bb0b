"""The twin of the signs of life: the same port in a dictionary."""

from collections.abc import Collection

from monitor.alerting.watchdog import Beat


class MemoryHeartbeats:
    """The port `Heartbeats` in memory."""

    def __init__(self) -> None:
        """Begin without a sign of life."""
        self._beats: dict[tuple[str, str], Beat] = {}

    async def beat(self, beats: Collection[Beat]) -> None:
        """Keep the newest sign of life of each."""
        self._beats |= {(one.stage, one.instance): one for one in beats}

    async def withdraw(self, stage: str, instance: str) -> None:
        """Forget one that has ended in order."""
        self._beats.pop((stage, instance), None)

    async def beats(self) -> tuple[Beat, ...]:
        """Return all that are kept."""
        return tuple(self._beats[key] for key in sorted(self._beats))
