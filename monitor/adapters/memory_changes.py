"""The twin of the change log: the same port in plain dictionaries, for tests and scenarios."""

from collections.abc import Sequence
from datetime import datetime

from monitor.alerting.changes import Aspect, Sighting
from monitor.intake.event import ChangeEvent, Environment


class MemoryChanges:
    """The port `ChangeLog` in memory."""

    def __init__(self, *, events_max: int = 5000, sightings_max: int = 2000) -> None:
        """Begin empty."""
        self._events_max = events_max
        self._sightings_max = sightings_max
        self._events: dict[str, ChangeEvent] = {}
        self._sightings: dict[tuple[str, Environment], dict[tuple[Aspect, str], Sighting]] = {}

    async def record(self, events: Sequence[ChangeEvent]) -> None:
        """Keep change events by their ids."""
        self._events |= {event.event_id: event for event in events}
        while len(self._events) > self._events_max:
            del self._events[min(self._events, key=lambda one: (self._events[one].occurred_at, one))]

    async def sight(self, sightings: Sequence[Sighting]) -> None:
        """Widen what is known."""
        for one in sightings:
            known = self._sightings.setdefault((one.assistant, one.environment), {})
            before = known.get((one.aspect, one.value), one)
            known[one.aspect, one.value] = Sighting.model_validate(
                dict(one)
                | {
                    "first_at": min(before.first_at, one.first_at),
                    "last_at": max(before.last_at, one.last_at),
                }
            )
        for known in self._sightings.values():
            while len(known) > self._sightings_max:
                del known[min(known, key=lambda key: (known[key].last_at, key))]

    async def events(self, start: datetime, end: datetime) -> tuple[ChangeEvent, ...]:
        """Return the change events in a stretch of time, oldest first."""
        found = (event for event in self._events.values() if start <= event.occurred_at <= end)
        return tuple(sorted(found, key=lambda event: (event.occurred_at, event.event_id)))

    async def sightings(self, assistant: str, environment: Environment) -> tuple[Sighting, ...]:
        """Return all that was seen of one assistant."""
        found = self._sightings.get((assistant, environment), {}).values()
        return tuple(sorted(found, key=lambda one: (one.first_at, one.aspect, one.value)))
