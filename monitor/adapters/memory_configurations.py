"""The twin of the registry and of what served."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.detection.registry import NOTHING, VARIOUS, Registered, Served, Sight, Tally
from monitor.judging.health import hour_of


class MemoryConfigurations:
    """The port `ConfigurationStore` in memory."""

    def __init__(self, *, fields_max: int = 1000) -> None:
        """Begin empty."""
        self._fields_max = fields_max
        self._entries: dict[str, Registered] = {}
        self._seen: set[tuple[datetime, str]] = set()
        self._hours: dict[datetime, dict[tuple[Served, float], int]] = {}

    async def register(self, entries: Sequence[Registered]) -> None:
        """Write entries under their ids."""
        self._entries |= {entry.id: entry for entry in entries}

    async def remove(self, entry_id: str) -> bool:
        """Take an entry out; False if there was none."""
        return self._entries.pop(entry_id, None) is not None

    async def registered(self) -> tuple[Registered, ...]:
        """Return all entries, ordered by assistant and time."""
        return tuple(sorted(self._entries.values(), key=lambda one: (one.assistant, one.at, one.id)))

    async def count(self, sights: Sequence[Sight]) -> None:
        """Count conversations, each once an hour and configuration."""
        for one in sights:
            if (one.hour, one.unit) in self._seen:
                continue
            self._seen.add((one.hour, one.unit))
            counts = self._hours.setdefault(one.hour, {})
            key = (one.served, one.rate)
            if key not in counts and len(counts) >= self._fields_max:
                key = (one.served._replace(values=VARIOUS), one.rate)
            counts[key] = counts.get(key, 0) + 1

    async def served(self, start: datetime, end: datetime) -> Mapping[Served, Tally]:
        """Return what served in the hours that touch [start, end)."""
        found: dict[Served, Tally] = {}
        for hour, counts in self._hours.items():
            if hour_of(start) <= hour < end:
                for (served, rate), count in counts.items():
                    found[served] = found.get(served, NOTHING).plus(Tally(count, count / rate))
        return found
