"""A judge on trial: beside the live one, on a cohort of the sample, in series of its own.

Its version is the one that it would have as the live judge, so that its series go on if it becomes that.
"""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.judging.judgment import JudgeRequest, Phase, Place, Record
from monitor.judging.rubric import TargetKind
from monitor.sampling.decision import position, salt
from monitor.sampling.policy import STRATUM_ATTRIBUTES

SHADOW = "shadow"
"""The stage that its records, its process and its budget are named by."""


class ShadowCohort(BaseModel):
    """Which part of the judged sample it sees."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")] = SHADOW
    share: Annotated[float, Field(gt=0, le=1)] = 0.1
    match: dict[str, tuple[str, ...]] = {}
    targets: Annotated[tuple[TargetKind, ...], Field(min_length=1)] = (TargetKind.CONVERSATION,)

    @model_validator(mode="after")
    def _attributes_are_known(self) -> Self:
        unknown = sorted(set(self.match) - set(STRATUM_ATTRIBUTES))
        if unknown:
            raise ValueError(
                f"match: unknown attribute {unknown[0]!r}; it may name {', '.join(STRATUM_ATTRIBUTES)}"
            )
        return self

    def has(self, request: JudgeRequest) -> bool:
        """Tell whether a request belongs to the cohort; all targets of a conversation share its draw."""
        attributes = request.conversation.attributes
        return (
            request.phase is None
            and request.target.kind in self.targets
            and all(str(getattr(attributes, name)) in wanted for name, wanted in self.match.items())
            and position(request.target.conversation_id, salt(self.name)) < self.share
        )


def shadow_request(request: JudgeRequest, cohort: ShadowCohort) -> JudgeRequest:
    """Return what the shadow is asked: it decides no event's outcome, and stands for what its draw left out."""
    rate = None if request.rate is None else request.rate * cohort.share
    return request.model_copy(update={"event_ids": (), "rate": rate})


def shadowed(record: Record) -> Record:
    """Return a record as the shadow's, so that nothing takes it for the live judge's."""
    judge = record.judge.model_copy(update={"stage": SHADOW})
    return record.model_copy(update={"judge": judge, "phase": Phase(place=Place.SHADOW)})


def on_trial(record: Record) -> bool:
    """Tell whether a record is a shadow's."""
    return record.phase is not None and record.phase.place is Place.SHADOW


def counted_as(record: Record) -> str:
    """Return the kind that a record is counted under where judgments are counted: a shadow's apart."""
    kind = record.target.kind
    return f"{SHADOW} {kind}" if on_trial(record) else kind
