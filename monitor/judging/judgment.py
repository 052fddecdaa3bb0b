"""The record of a judge: what was judged, under which versions, with which scores, or why there are none."""

import hashlib
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from monitor.conversations.conversation import Attributes, Conversation, Turn
from monitor.intake.event import Moment, ServedBy, Value
from monitor.judging.rubric import CRITICAL_MAX, SCORE_MAX, SCORE_MIN, TargetKind


class Target(Value):
    """What one judgment is about."""

    kind: TargetKind
    conversation_id: str
    revision: int = 1
    turn_event_id: str | None = None

    @model_validator(mode="after")
    def _a_turn_has_an_event(self) -> Self:
        if (self.kind is TargetKind.TURN) != (self.turn_event_id is not None):
            raise ValueError("a turn target names its event, a conversation target names none")
        return self


class JudgeRequest(Value):
    """Everything that a judge and a window need to know; masked, self-contained, safe to repeat."""

    target: Target
    conversation: Conversation
    event_ids: tuple[str, ...] = ()
    """The events whose outcome this judgment decides."""
    rate: float | None
    """The target's sampling rate, None when it stands for nobody (a partial conversation)."""
    observed_at: Moment
    """Event time of the target's last assistant turn; it chooses the bucket."""
    requested_at: Moment

    @property
    def turn(self) -> Turn | None:
        """Return the judged turn, None when the whole conversation is judged."""
        wanted = self.target.turn_event_id
        return next((turn for turn in self.conversation.turns if turn.event_id == wanted), None)

    @property
    def served_by(self) -> ServedBy:
        """Return the configuration that answered the target (a conversation: its last answered turn)."""
        turn = self.turn or self.conversation.last_answered
        return turn.served_by if turn else ServedBy()


class Quote(Value):
    """A span that supports a score, and where it stands word for word."""

    text: str
    source: Literal["answer", "user", "reference", "tool", "none"] = "answer"
    verbatim: bool = True


class DimensionScore(Value):
    """One dimension's score, or the abstention that is no score."""

    dimension: str
    score: Annotated[int, Field(ge=SCORE_MIN, le=SCORE_MAX)] | None
    reason: str
    quotes: tuple[Quote, ...] = ()
    kind: str | None = None
    """What kind of failure, for grouping: `wrong_duration`, `forbidden_promise`, ..."""

    @property
    def critical(self) -> bool:
        """Tell whether the score alone is a critical failure."""
        return self.score is not None and self.score <= CRITICAL_MAX


class JudgeIdentity(Value):
    """Which judge spoke. The version is known before the call; the model that answered only after it."""

    stage: str
    backend: str
    version: str
    model_asked: str
    model_answered: str | None = None


class Usage(Value):
    """What one judgment cost."""

    latency_seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    attempts: int = 1


class _Record(Value):
    judgment_id: str
    target: Target
    attributes: Attributes
    served_by: ServedBy
    event_ids: tuple[str, ...]
    rate: float | None
    observed_at: Moment
    judged_at: Moment
    rubric_version: str
    judge: JudgeIdentity
    usage: Usage = Usage()


class Judgment(_Record):
    """All dimensions of one target; a dimension that is missing abstained."""

    outcome: Literal["judged"] = "judged"
    scores: Annotated[tuple[DimensionScore, ...], Field(min_length=1)]

    @property
    def critical_scores(self) -> tuple[DimensionScore, ...]:
        """Return the scores that are critical failures, computed from the scores alone."""
        return tuple(score for score in self.scores if score.critical)


class FailureKind(StrEnum):
    """Why a judge gave no judgment."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    CONTENT_FILTER = "content_filter"
    UNREADABLE = "unreadable"
    EXPIRED = "expired"
    BUG = "bug"


class JudgeFailure(_Record):
    """No judgment, with why. Never a score, never zero, never good news."""

    outcome: Literal["failed", "expired"] = "failed"
    kind: FailureKind
    reason: str


Record = Judgment | JudgeFailure
JudgmentRecord = Annotated[Judgment | JudgeFailure, Field(discriminator="outcome")]
JUDGMENT_RECORD: TypeAdapter[Judgment | JudgeFailure] = TypeAdapter(JudgmentRecord)


def judgment_id(target: Target, *, rubric_version: str, judge_version: str) -> str:
    """Return the id under which there is exactly one judgment, 32 hex digits; known before the judge is paid."""
    parts = (
        target.conversation_id,
        str(target.revision),
        target.kind,
        target.turn_event_id or "",
        rubric_version,
        judge_version,
    )
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
