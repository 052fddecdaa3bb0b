"""What the census counts of all traffic, and by what rule each signal is recognised."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from monitor.sampling.decision import UNKNOWN

ANSWERS = ("turn", "conversation")
"""The types of events that carry answers; shares are of these."""


class Signal(StrEnum):
    """What is counted beside the events themselves. A feedback event counts where its own time lies."""

    ESCALATED = "escalated"
    """`signals.escalated`: the user was handed to a person."""
    THUMB_DOWN = "thumb_down"
    """`signals.thumb` is `down`."""
    FALLBACK = "fallback"
    """`signals.fallback`, or another model answered than was asked for (`is_another_model`)."""
    REFUSED = "refused"
    """`signals.refused`: producers say so; texts are not read here."""
    LONG = "long"
    """The event has more bytes than `long_bytes`: its answer, the user's words and the tool steps as they were sent."""


CensusCounts = Mapping[datetime, Mapping[tuple[str, str], int]]
"""By the start of a bucket: counts by stratum and by a type of event or a signal."""


class CensusStore(Protocol):
    """Reads the census over all source partitions; raises StoreUnavailable if it cannot."""

    async def counts(self, start: datetime, end: datetime) -> CensusCounts:
        """Return the buckets that begin in [start, end), the empty ones left out; of time older than kept, none."""
        ...


def attributes_of(stratum: str, names: tuple[str, ...]) -> dict[str, str]:
    """Return the attributes that a stratum's key names, `unknown` for what an older policy did not count by."""
    values = stratum.split("|")
    keys = ("assistant", "environment", *names)
    return dict(zip(keys, values + [UNKNOWN] * len(keys), strict=False))
