"""The deployment's clock: the wall's, or the stream's own, carried by markers from hop to hop.

In a replay the time is that of the events. Each hop passes a marker on when everything before it is done, so
what a later hop concludes at a time is the same however fast the machine was.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from monitor.intake.event import Moment, Value

MARKER_HEADER = "marker"


class ClockKind(StrEnum):
    """On which clock a deployment runs: all of it, alerts included."""

    WALL = "wall"
    STREAM = "stream"


class ClockPolicy(BaseModel):
    """What `config/monitor.yaml` says of time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ClockKind = ClockKind.WALL
    tick_seconds: Annotated[float, Field(gt=0, le=60)] = 1.0
    settle_minutes: Annotated[int, Field(ge=0, le=24 * 60)] = 15
    partition_idle_seconds: Annotated[int, Field(ge=1)] = 30


class Watermark(Value):
    """Nothing older than these times is missing, by source partition."""

    type: Literal["clock"] = "clock"
    times: dict[str, Moment]
    idle: tuple[str, ...] = ()
    """Sources that have been silent for a while and hold the time back no longer."""


class ClockStore(Protocol):
    """Where hops remember how far the stream's time has come, so that a restart does not jump."""

    async def advance(
        self, hop: str, partition: int, times: Mapping[str, datetime], *, idle: Collection[str] = ()
    ) -> dict[str, datetime]:
        """Raise the times of a partition's sources, never lower them; return all that are known.

        Sources that are idle are left out from now on, until they have a time again; the last one stays.
        """
        ...

    async def read(self, hop: str) -> dict[int, datetime]:
        """Return the time of each partition of a hop."""
        ...
