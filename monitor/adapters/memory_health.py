"""The twin of a judge's counters."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.judging.health import counted, hour_of, name_of, summed
from monitor.judging.judgment import Record


class MemoryHealth:
    """The port `HealthStore` in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self._seen: set[tuple[datetime, str, str]] = set()
        self._hours: defaultdict[datetime, defaultdict[str, list[dict[str, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )

    async def add(self, entries: Sequence[tuple[datetime, Record]]) -> None:
        """Count records, each in the hour of its time."""
        for moment, record in entries:
            hour = hour_of(moment)
            key = (hour, record.judgment_id, record.outcome)
            if key not in self._seen:
                self._seen.add(key)
                self._hours[hour][name_of(record)].append(counted(record))

    async def read(self, start: datetime, end: datetime) -> Mapping[str, Mapping[str, int]]:
        """Return the sums of the counters in [start, end)."""
        sums: defaultdict[str, list[dict[str, int]]] = defaultdict(list)
        for hour, judges in self._hours.items():
            if hour_of(start) <= hour < end:
                for name, counts in judges.items():
                    sums[name] += counts
        return {name: summed(counts) for name, counts in sorted(sums.items())}
