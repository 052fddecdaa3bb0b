"""How windows are cut: the length of a bucket, what splits a series, how long anything is kept."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

StratumKey = Literal["intent", "channel", "language", "tenant"]
"""Attributes that exist before any answer. Outcomes (a thumb, an escalation) never are strata."""
ConfigurationKey = Literal[
    "git_commit",
    "model_asked",
    "model_answered",
    "prompt_hash",
    "retrieval_version",
    "tool_schema_hash",
    "routing_hash",
]
SegmentKey = StratumKey | ConfigurationKey


class WindowPolicy(BaseModel):
    """The part of config/monitor.yaml that is about windows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bucket_minutes: Annotated[int, Field(ge=1, le=60)] = 15
    """The smallest time slice. Shorter ones cost memory and reading time."""
    shards: Annotated[int, Field(ge=1, le=1024)] = 1
    """Parts that a series is written in: 1 on a single server, 16 on a cluster; readers add them."""
    segments: tuple[SegmentKey, ...] = ("intent", "prompt_hash")
    """What has a series of its own beside the overall one. Each key writes a judgment once more."""
    strata: tuple[StratumKey, ...] = ("intent", "channel", "language", "tenant")
    """What a change of traffic is told apart by. Their product is the number of cells of a series."""
    segment_values_max: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Values of one segment key that get a series in a day, first come first kept; the rest are `key=*other`."""
    strata_max: Annotated[int, Field(ge=1, le=10_000)] = 300
    """Strata that are told apart in a day, first come first kept; the rest are one more, `*other`."""
    retention_days: Annotated[int, Field(ge=1, le=90)] = 9
    """How long buckets, contributions and cases are kept; older arrivals are late and stay out."""
    hourly_days: Annotated[int, Field(ge=1, le=730)] = 90
    """How long hours are kept, into which the buckets go when they leave."""
    daily_days: Annotated[int, Field(ge=1, le=3650)] = 730
    """How long days are kept, into which the hours go when they leave."""
    cases_per_bucket: Annotated[int, Field(ge=1, le=50)] = 5
    """Worst cases kept per bucket, series and dimension; they are texts and cost the most memory."""

    @field_validator("bucket_minutes")
    @classmethod
    def _divides_the_hour(cls, minutes: int) -> int:
        if 60 % minutes:
            raise ValueError("bucket_minutes must divide 60, so that buckets begin at full hours")
        return minutes

    @model_validator(mode="after")
    def _is_kept_longer_the_coarser_it_is(self) -> Self:
        if not self.retention_days <= self.hourly_days <= self.daily_days:
            raise ValueError(
                "retention_days may not exceed hourly_days, nor hourly_days daily_days: "
                "buckets go into hours when they leave, and hours into days"
            )
        return self

    @property
    def retention(self) -> timedelta:
        """Return how long a bucket is kept."""
        return timedelta(days=self.retention_days)

    @property
    def ledger_days(self) -> int:
        """Return the days whose contributions are remembered, and forgotten, together."""
        return -(-self.retention_days // 3)
