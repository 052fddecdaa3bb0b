"""The record of a judge: what was judged, under which versions, with which scores, or why there are none."""

import hashlib
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from monitor.conversations.conversation import Attributes, Conversation, Turn
from monitor.intake.event import Moment, ServedBy, Value
from monitor.judging.rubric import CRITICAL_MAX, PASS_MIN, SCORE_MAX, SCORE_MIN, TargetKind


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


class Place(StrEnum):
    """Where a judgment stands in a cascade; a shadow's stands beside it."""

    RULES = "rules"
    FIRST = "first"
    SECOND = "second"
    SHADOW = "shadow"


class FirstScore(Value):
    """What the first stage said of one dimension."""

    dimension: str
    score: int | None


class Phase(Value):
    """A judgment's place in a cascade, and the known chance with which the next stage is asked."""

    place: Place
    probability: float | None = None
    """With which the second stage was to be asked; the same on the judgments of both stages."""
    asked: bool = False
    rule: str = ""
    """Why: critical, disagreed, borderline, audit."""
    first_scores: tuple[FirstScore, ...] = ()
    """Carried by the second stage, so that a pair is known from one record."""


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
    phase: Phase | None = None
    """Set where a stage of a cascade asks for the next one."""

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
    flagged_critical: bool | None = None
    """What the judge itself said of it; it decides nothing, and where it disagrees it is counted."""
    probabilities: tuple[float, ...] = ()
    """With `scoring: probability`: how probable it is that levels 2, 3, 4 and 5 are reached."""

    @property
    def critical(self) -> bool:
        """Tell whether the score alone is a critical failure."""
        return self.score is not None and self.score <= CRITICAL_MAX

    @property
    def confirmed(self) -> bool:
        """Tell whether a failing score is backed by quotations that all stand where they are said to stand."""
        if self.score is None or self.score >= PASS_MIN:
            return True
        return bool(self.quotes) and all(quote.verbatim for quote in self.quotes)

    @property
    def flag_disagrees(self) -> bool:
        """Tell whether the judge's own flag contradicts its score."""
        return self.flagged_critical is not None and self.flagged_critical != self.critical


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
    waited_seconds: float = 0.0
    """Of the latency, how long it stood in line for the endpoint and for its Retry-After."""
    cost: float | None = None
    """In the currency of judge.prices; None where the model has no price there."""


class DocumentVersion(Value):
    """Which version of a document a judgment was made by; without a version none was found."""

    id: str
    version: str | None = None
    digest: str = ""
    """Hash of the text that was in force, whatever the version is called."""
    retrieved: str | None = None
    """The version that the assistant had retrieved, where the event says so."""
    missing: str | None = None
    """Why there is no text."""
    cut: bool = False
    """Only the passages that matter to the turn were shown."""


class Trace(Value):
    """How a judgment came about, for whoever doubts it."""

    presentation: str = ""
    prompt_hash: str = ""
    """Of what was sent; equal hashes are equal questions."""
    cut_turns: int = 0
    cut_characters: int = 0
    references: tuple[DocumentVersion, ...] = ()
    """What the judge was not shown, since it was too long."""
    replies: tuple[str, ...] = ()
    """The last reply to each question as it came, masked and bounded."""


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
    OWN_TRAFFIC = "own_traffic"
    """The monitor's own calls came back to it as traffic; judging them would never end."""
    BUDGET = "budget"
    """The budget is used up: nobody was asked, and nothing else stands for it."""
    THINNED = "thinned"
    """Left out near the end of a budget by a known chance; what was kept stands for it."""
    BUG = "bug"


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
    trace: Trace = Trace()
    phase: Phase | None = None
    """None where one judge judges alone."""


class Judgment(_Record):
    """All dimensions of one target; a dimension that is missing abstained."""

    outcome: Literal["judged"] = "judged"
    instead_of: FailureKind | None = None
    """Why the first judge gave none, where its fallback did."""
    scores: Annotated[tuple[DimensionScore, ...], Field(min_length=1)]

    @property
    def critical_scores(self) -> tuple[DimensionScore, ...]:
        """Return the scores that are critical failures, computed from the scores alone."""
        return tuple(score for score in self.scores if score.critical)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """Name the dimensions whose failing score no quotation backs."""
        return tuple(score.dimension for score in self.scores if not score.confirmed)


class JudgeFailure(_Record):
    """No judgment, with why. Never a score, never zero, never good news."""

    outcome: Literal["failed", "expired", "thinned"] = "failed"
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
