"""Records in, what served by the hour out; and the registry of what was evaluated offline."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple, Protocol, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from monitor.detection.finding import Severity
from monitor.intake.event import Environment, Id, Moment, Value
from monitor.judging.health import hour_of
from monitor.judging.judgment import Record
from monitor.judging.rubric import TargetKind
from monitor.windows.policy import ConfigurationKey

MODELS: tuple[ConfigurationKey, ...] = ("model_asked", "model_answered")
"""Counted whatever the policy combines, to tell an answer from another model."""
Values = tuple[tuple[str, str], ...]
"""Keys and values of a configuration, in the order of the keys; an unknown value is empty."""
VARIOUS: Values = ()
"""Stands for configurations that are too many to be counted one by one."""


class ConfigurationPolicy(BaseModel):
    """From when on a configuration that nobody evaluated is worth a ticket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    combination: Annotated[tuple[ConfigurationKey, ...], Field(min_length=1)] = (
        "model_asked",
        "prompt_hash",
        "retrieval_version",
    )
    hours: Annotated[int, Field(ge=1, le=168)] = 6
    share_min: Annotated[float, Field(gt=0, le=1)] = 0.05
    min_count: Annotated[int, Field(ge=1)] = 20
    gone_hours: Annotated[int, Field(ge=1, le=168)] = 24
    severity: Severity = Severity.TICKET

    @field_validator("combination")
    @classmethod
    def _in_one_order(cls, keys: tuple[ConfigurationKey, ...]) -> tuple[ConfigurationKey, ...]:
        return tuple(key for key in get_args(ConfigurationKey) if key in keys)


class Registered(Value):
    """A configuration of one assistant that was evaluated offline."""

    assistant: Id
    values: dict[ConfigurationKey, str]
    by: Annotated[str, Field(min_length=1, max_length=128)]
    at: Moment
    evaluation: Annotated[str, Field(max_length=500)] = ""
    """Where the evaluation's result is: a link, or the id of its run."""

    @property
    def id(self) -> str:
        """Return the hash of what it is about, 12 hex digits: registered again, it replaces itself."""
        text = json.dumps([self.assistant, sorted(self.values.items())], ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class Served(NamedTuple):
    """Whose configuration answered, and which."""

    assistant: str
    environment: Environment
    values: Values


class Sight(NamedTuple):
    """One conversation that a configuration answered, to be counted once in its hour."""

    served: Served
    hour: datetime
    rate: float
    unit: str
    """Names conversation and configuration, 16 hex digits."""


class Tally(NamedTuple):
    """How many judged conversations there were, and how many of all traffic they stand for."""

    n: int = 0
    weight: float = 0.0

    def plus(self, other: "Tally") -> "Tally":
        """Return the sum."""
        return Tally(self.n + other.n, self.weight + other.weight)


NOTHING = Tally()


class ConfigurationStore(Protocol):
    """The registry, and what served by the hour. Every method is safe to repeat; raises StoreUnavailable."""

    async def register(self, entries: Sequence[Registered]) -> None:
        """Write entries under their ids."""
        ...

    async def remove(self, entry_id: str) -> bool:
        """Take an entry out; False if there was none."""
        ...

    async def registered(self) -> tuple[Registered, ...]:
        """Return all entries, ordered by assistant and time."""
        ...

    async def count(self, sights: Sequence[Sight]) -> None:
        """Count conversations, each once an hour and configuration."""
        ...

    async def served(self, start: datetime, end: datetime) -> Mapping[Served, Tally]:
        """Return what served in the hours that touch [start, end)."""
        ...


def sights_of(records: Iterable[Record], policy: ConfigurationPolicy) -> tuple[Sight, ...]:
    """Return which configurations answered the conversations of records; those that stand for nobody are left out."""
    keys = [key for key in get_args(ConfigurationKey) if key in {*policy.combination, *MODELS}]
    found = []
    for record in records:
        if record.target.kind is not TargetKind.CONVERSATION or not record.rate:
            continue
        values = tuple((key, getattr(record.served_by, key) or "") for key in keys)
        served = Served(record.attributes.assistant, record.attributes.environment, values)
        # Whoever judges it, and however often: it is one conversation.
        text = "\x1f".join((record.target.conversation_id, *served[:2], *(value for _, value in values)))
        unit = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        found.append(Sight(served, hour_of(record.observed_at), record.rate, unit))
    return tuple(found)


def is_registered(
    values: Mapping[str, str], registered: Iterable[Registered], policy: ConfigurationPolicy
) -> bool:
    """Tell whether a combination was evaluated: an entry has the same value for each of its keys."""
    return any(
        all(entry.values.get(key, "") == values.get(key, "") for key in policy.combination)
        for entry in registered
    )
