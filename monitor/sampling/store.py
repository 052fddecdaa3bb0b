"""The port of what the sampler remembers: kept conversations, counts with their offset, the census, prompts."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from monitor.sampling.decision import Kept
from monitor.sampling.sampler import PartitionTally


class Source(NamedTuple):
    """One source partition; the topic's id outlives a topic made anew under its name."""

    cluster: str
    topic: str
    topic_id: str
    partition: int


class Remembered(NamedTuple):
    """What is known of a source partition when a sampler takes it over."""

    kept: Mapping[str, Kept]
    counted_through: int | None


class Sighting(NamedTuple):
    """The first time that a prompt hash was seen."""

    assistant: str
    environment: str
    prompt_hash: str
    first_seen: datetime


class SamplingStore(Protocol):
    """Blocking, as the sampler's loop is; every call is safe to repeat."""

    def remembered(self, source: Source, *, now: datetime) -> Remembered:
        """Return what is known of a partition."""
        ...

    def record(self, source: Source, tally: PartitionTally, *, now: datetime) -> bool:
        """Store a batch's counts with its next offset in one step; False if another worker has counted it."""
        ...

    def share(self, sightings: Mapping[tuple[str, str, str], datetime]) -> list[Sighting]:
        """Store first sightings of prompts, the earliest wins; return all that are known."""
        ...

    def funnel(self) -> dict[str, int]:
        """Return counts by outcome over all source partitions."""
        ...

    def census(self) -> dict[tuple[int, str, str], int]:
        """Return the census by (bucket start, stratum, signal)."""
        ...
