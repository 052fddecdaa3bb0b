"""Change events and judge records in, what changed near an onset out: the first thing that people ask."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from monitor.intake.event import ChangeEvent, Environment, Moment, Value
from monitor.judging.judgment import Record
from monitor.windows.bucket import name_of
from monitor.windows.policy import ConfigurationKey

LOOK_BACK = timedelta(hours=48)
"""How long before an onset a change is still shown; a slow decline misses its gate a day after it began."""
EVENTS_SHOWN = 8
"""Change events shown, those nearest to the onset; it bounds an alert's size."""
SIGHTINGS_SHOWN = 8
"""First sightings shown; it bounds an alert's size."""


class Aspect(StrEnum):
    """What of a configuration may change."""

    PROMPT = "prompt_hash"
    INDEX = "retrieval_version"
    MODEL = "model_answered"
    TOOLS = "tool_schema_hash"
    ROUTING = "routing_hash"
    COMMIT = "git_commit"
    JUDGE = "judge"
    RUBRIC = "rubric"
    CONFIGURATION = "configuration"
    """A combination of the others, as the registry has it."""


class Sighting(Value):
    """One value of one aspect in judged traffic: when it was seen first and last, in event time."""

    assistant: str
    environment: Environment
    aspect: Aspect
    value: str
    first_at: Moment
    last_at: Moment


class Changes(Value):
    """What changed near an onset, in the order of time."""

    events: tuple[ChangeEvent, ...] = ()
    sightings: tuple[Sighting, ...] = ()


class ChangeLog(Protocol):
    """Whoever remembers changes. Every method is safe to repeat and raises StoreUnavailable if it cannot."""

    async def record(self, events: Sequence[ChangeEvent]) -> None:
        """Keep change events by their ids; one that comes again replaces itself."""
        ...

    async def sight(self, sightings: Sequence[Sighting]) -> None:
        """Widen what is known: the earliest first time and the latest last time stay, whatever the order."""
        ...

    async def events(self, start: datetime, end: datetime) -> tuple[ChangeEvent, ...]:
        """Return the change events in [start, end], oldest first."""
        ...

    async def sightings(self, assistant: str, environment: Environment) -> tuple[Sighting, ...]:
        """Return all that was seen of one assistant, in the order of first times."""
        ...


def sightings_of(
    records: Sequence[Record], combination: Sequence[ConfigurationKey] = ()
) -> tuple[Sighting, ...]:
    """Return what records show of the configurations behind them, each value once; and their combinations."""
    found: dict[tuple[str, Environment, Aspect, str], tuple[datetime, datetime]] = {}
    for record in records:
        attributes, at = record.attributes, record.observed_at
        for aspect, value in _values(record, combination):
            key = (attributes.assistant, attributes.environment, aspect, value)
            first, last = found.get(key, (at, at))
            found[key] = (min(first, at), max(last, at))
    return tuple(
        Sighting(
            assistant=assistant,
            environment=environment,
            aspect=aspect,
            value=value,
            first_at=first,
            last_at=last,
        )
        for (assistant, environment, aspect, value), (first, last) in found.items()
    )


async def changes_near(
    log: ChangeLog, *, assistant: str, environment: Environment, onset: datetime, until: datetime
) -> Changes:
    """Return what changed for an assistant from two days before the onset up to `until`."""
    start = onset - LOOK_BACK
    events = [
        event
        for event in await log.events(start, until)
        if event.assistant in {None, assistant} and event.environment == environment
    ]
    nearest = sorted(events, key=lambda event: (abs(event.occurred_at - onset), event.event_id))
    seen = [
        one for one in _news(await log.sightings(assistant, environment)) if start <= one.first_at <= until
    ]
    return Changes(
        events=tuple(sorted(nearest[:EVENTS_SHOWN], key=lambda event: (event.occurred_at, event.event_id))),
        sightings=tuple(
            sorted(
                sorted(seen, key=lambda one: abs(one.first_at - onset))[:SIGHTINGS_SHOWN],
                key=lambda one: (one.first_at, list(Aspect).index(one.aspect), one.value),
            )
        ),
    )


def _news(sightings: Sequence[Sighting]) -> Iterator[Sighting]:
    """Leave out the first value of each aspect: where nothing was known before, nothing changed.

    Of a new combination its parts are told.
    """
    known: set[Aspect] = set()
    for one in sightings:
        if one.aspect in known and one.aspect is not Aspect.CONFIGURATION:
            yield one
        known.add(one.aspect)


def combined(served: Mapping[str, str], combination: Sequence[ConfigurationKey]) -> str:
    """Return the name of a combination among the sightings; bounded, since each value is."""
    return " ".join(f"{key}={name_of(served.get(key))}" for key in combination)


def _values(record: Record, combination: Sequence[ConfigurationKey]) -> Iterator[tuple[Aspect, str]]:
    served = record.served_by
    for aspect in (
        Aspect.PROMPT,
        Aspect.INDEX,
        Aspect.MODEL,
        Aspect.TOOLS,
        Aspect.ROUTING,
        Aspect.COMMIT,
    ):
        value = getattr(served, aspect)
        if value:
            yield aspect, value
    if combination:
        yield Aspect.CONFIGURATION, combined(dict(served), combination)
    yield Aspect.JUDGE, f"{record.judge.model_asked} ({record.judge.version})"
    yield Aspect.RUBRIC, record.rubric_version
