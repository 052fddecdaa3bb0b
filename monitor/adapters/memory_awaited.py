"""The twin of what the judge was asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.detection.settling import Awaited, Group


class MemoryAwaited:
    """The port `AwaitedStore` in memory."""

    def __init__(self) -> None:
        """Begin with nothing asked."""
        self._asked: dict[datetime, dict[str, Group]] = {}

    async def ask(self, units: Sequence[Awaited]) -> None:
        """Note units before they are asked for."""
        for unit in units:
            self._asked.setdefault(unit.bucket, {})[unit.id] = unit.group

    async def answer(self, units: Sequence[tuple[datetime, str]]) -> None:
        """Forget units once their outcome is in the windows."""
        for bucket, unit_id in units:
            self._asked.get(bucket, {}).pop(unit_id, None)

    async def waiting(self, begins: Sequence[datetime]) -> Mapping[datetime, Mapping[Group, int]]:
        """Return how many wait in these buckets, by group."""
        return {begin: Counter(self._asked[begin].values()) for begin in begins if self._asked.get(begin)}
