"""The twin of what the sampler remembers: the same port in plain dictionaries, for tests."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime

from monitor.sampling.census import CensusCounts
from monitor.sampling.decision import Kept
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Remembered, Sighting, Source


class MemorySampling:
    """The port `SamplingStore` in memory."""

    def __init__(self, *, remember_hours: int) -> None:
        """Begin empty."""
        self._remember_hours = remember_hours
        self._kept: defaultdict[Source, defaultdict[int, dict[str, Kept]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._next: dict[Source, int] = {}
        self._counts: Counter[str] = Counter()
        self._census: Counter[tuple[int, str, str]] = Counter()
        self._prompts: dict[tuple[str, str, str], datetime] = {}

    def remembered(self, source: Source, *, now: datetime) -> Remembered:
        """Return what is known of a partition."""
        this_hour = _hour(now)
        kept: dict[str, Kept] = {}
        for hour in range(this_hour - self._remember_hours, this_hour + 1):
            kept.update(self._kept[source].get(hour, {}))
        return Remembered(kept, self._next.get(source))

    def record(self, source: Source, tally: PartitionTally, *, now: datetime) -> bool:
        """Store a batch's counts with its next offset in one step."""
        counted = self._next.get(source, 0)
        fresh = tally.first_offset >= counted and tally.next_offset > counted
        if fresh:
            self._counts.update(tally.dropped)
            for bucket, cells in tally.census.items():
                self._census.update({(bucket, *cell): count for cell, count in cells.items()})
            self._next[source] = tally.next_offset
        self._kept[source][_hour(now)].update(tally.remember)
        return fresh

    def share(self, sightings: Mapping[tuple[str, str, str], datetime]) -> list[Sighting]:
        """Store first sightings of prompts; return all that are known."""
        for names, seen in sightings.items():
            self._prompts[names] = min(seen, self._prompts.get(names, seen))
        return sorted(Sighting(*names, seen) for names, seen in self._prompts.items())

    def funnel(self) -> dict[str, int]:
        """Return counts by outcome over all source partitions."""
        return dict(sorted(self._counts.items()))

    def census(self) -> dict[tuple[int, str, str], int]:
        """Return the census by (bucket start, stratum, signal)."""
        return dict(self._census)


class MemoryCensus:
    """The port `CensusStore` on the twin of what the sampler remembers."""

    def __init__(self, sampling: MemorySampling) -> None:
        """Take the twin that the sampler writes."""
        self._sampling = sampling

    async def counts(self, start: datetime, end: datetime) -> CensusCounts:
        """Return the buckets that begin in [start, end)."""
        found: defaultdict[datetime, dict[tuple[str, str], int]] = defaultdict(dict)
        for (bucket, stratum, signal), count in sorted(self._sampling.census().items()):
            at = datetime.fromtimestamp(bucket, UTC)
            if start <= at < end:
                found[at][stratum, signal] = count
        return dict(found)


def _hour(moment: datetime) -> int:
    return int(moment.timestamp()) // 3600
