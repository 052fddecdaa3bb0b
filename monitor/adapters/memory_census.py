"""The twin of the census, for those who read it."""

from collections.abc import Mapping
from datetime import datetime

from monitor.sampling.census import CensusCounts


class MemoryCensus:
    """The port `Census` in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self.buckets: dict[datetime, dict[tuple[str, str], int]] = {}

    async def read(self, start: datetime, end: datetime) -> Mapping[datetime, CensusCounts]:
        """Return the buckets that begin in [start, end)."""
        return {
            begin: dict(counts) for begin, counts in self.buckets.items() if start <= begin < end and counts
        }
