"""The port of every judge, and the reply that it gives."""

from typing import Annotated, Literal, Protocol

from pydantic import Field

from monitor.intake.event import Value
from monitor.judging.judgment import DimensionScore, FailureKind, JudgeIdentity, JudgeRequest, Trace, Usage


class Scored(Value):
    """A judge's answer: scores for the dimensions of the rubric, abstentions among them."""

    said: Literal["scored"] = "scored"
    scores: Annotated[tuple[DimensionScore, ...], Field(min_length=1)]
    model_answered: str | None = None
    usage: Usage = Usage()
    trace: Trace = Trace()


class NotScored(Value):
    """A judge that could not answer, and why."""

    said: Literal["not_scored"] = "not_scored"
    kind: FailureKind
    reason: str
    usage: Usage = Usage()
    trace: Trace = Trace()


JudgeReply = Scored | NotScored


class Judge(Protocol):
    """Whoever scores. An expected failure is a value; it raises only for bugs."""

    @property
    def identity(self) -> JudgeIdentity:
        """Return who judges, before any call."""
        ...

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Score one target on all its dimensions; safe to repeat."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
