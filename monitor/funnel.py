"""Counts of outcomes in; one funnel out, in which every event has exactly one place."""

from collections import Counter
from collections.abc import Mapping

from pydantic import Field

from monitor.intake.event import EVENT_TYPES, Value

OPEN = ("waiting", "queued")
_JUDGMENT = "judgment:"
_CLOSED = "closed"


class Funnel(Value):
    """What became of everything that came in."""

    events: dict[str, int] = Field(default_factory=dict)
    """Events by outcome."""
    judgments: dict[str, int] = Field(default_factory=dict)
    """Judgments by target and outcome."""
    closed: dict[str, int] = Field(default_factory=dict)
    """Closed conversations (revisions) by the reason of their end."""

    @property
    def received(self) -> int:
        """Return how many events came in."""
        return sum(self.events.values())

    @property
    def open(self) -> int:
        """Return how many events wait for their outcome."""
        return sum(self.events.get(outcome, 0) for outcome in OPEN)

    @property
    def finished(self) -> int:
        """Return how many events have their final outcome."""
        return self.received - self.open

    @property
    def sampled(self) -> int:
        """Return how many events were kept by the sampler."""
        dropped = ("sampled_out:", "undecodable", "oversize", "invalid_at_door")
        return sum(count for name, count in self.events.items() if not name.startswith(dropped))


def funnel(sampler: Mapping[str, int], store: Mapping[str, int]) -> Funnel:
    """Put the sampler's counts and the conversations' counts together."""
    events: Counter[str] = Counter()
    judgments: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    for name, count in sampler.items():
        events["invalid_at_door" if name == "invalid" else name] += count
    for name, count in store.items():
        kind, _, outcome = name.partition("|")
        if kind.startswith(_JUDGMENT):
            judgments[f"{kind.removeprefix(_JUDGMENT)} {outcome}"] += count
        elif kind == _CLOSED:
            closed[outcome] += count
        elif kind in EVENT_TYPES or kind == "event":
            events[outcome] += count
    return Funnel(events=dict(events), judgments=dict(judgments), closed=dict(closed))


def difference(after: Funnel, before: Funnel) -> Funnel:
    """Return what came between two looks."""
    return Funnel(
        events=_less(after.events, before.events),
        judgments=_less(after.judgments, before.judgments),
        closed=_less(after.closed, before.closed),
    )


def _less(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    changed = {name: after.get(name, 0) - before.get(name, 0) for name in {**after, **before}}
    return {name: count for name, count in changed.items() if count}
