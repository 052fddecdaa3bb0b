"""Events of a kept conversation in; what is stored, what is asked of the judge, and its close out."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import Field

from monitor.conversations.conversation import (
    UNKNOWN,
    Attributes,
    Conversation,
    EndReason,
    Turn,
    in_order,
)
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.turns import split_turns
from monitor.intake.decode import AnyEvent
from monitor.intake.event import (
    EndEvent,
    FeedbackEvent,
    Moment,
    Signals,
    SummaryEvent,
    TurnEvent,
    Value,
    WholeConversationEvent,
)
from monitor.intake.intents import IntentClassifier
from monitor.sampling.decision import Decision


class Outcome(StrEnum):
    """What became of one event; each has exactly one at any time, and only the first two can change."""

    WAITING = "waiting"
    QUEUED = "queued"
    JUDGED = "judged"
    FAILED = "failed"
    EXPIRED = "expired"
    THINNED = "thinned"
    APPLIED = "applied"
    NOT_YET_JUDGED = "not_yet_judged"
    OVER_LIMIT = "over_limit"
    DUPLICATE = "duplicate"
    INVALID = "invalid"


OPEN_OUTCOMES = (Outcome.WAITING, Outcome.QUEUED)


class Taken(Value):
    """One event as it is stored: its turns, and when it makes the conversation due."""

    event_id: str
    conversation_id: str
    source: str
    kind: Literal["turn", "conversation", "end", "feedback", "summary"]
    outcome: Outcome
    turns: tuple[Turn, ...] = ()
    attributes: Attributes
    decision_rule: str
    rate: float
    first_rate: float | None
    signals: Signals = Signals()
    occurred_at: Moment


class Stored(Value):
    """A conversation as the store holds it."""

    id: str
    revision: int
    closed_revision: int = 0
    first_activity: Moment
    taken: tuple[Taken, ...] = ()
    revisions: dict[str, int] = Field(default_factory=dict)
    """The revision in which each event came, by event id."""
    waiting: frozenset[str] = frozenset()
    """The events whose judgment has not been asked for."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return all turns in their order; of whole conversations that came anew only the newest counts."""
        newest = self.whole
        return in_order(
            turn
            for taken in self.taken
            if taken.kind != "conversation" or taken is newest
            for turn in taken.turns
        )

    @property
    def whole(self) -> Taken | None:
        """Return the newest event that held the conversation in one piece, if there is one."""
        whole = (taken for taken in self.taken if taken.kind == "conversation")
        return max(whole, key=lambda taken: (taken.occurred_at, taken.event_id), default=None)

    def holds(self, kind: str) -> bool:
        """Tell whether an event of this kind came in the open revision."""
        return any(
            taken.kind == kind and self.revisions.get(taken.event_id) == self.revision for taken in self.taken
        )

    @property
    def opening(self) -> Taken | None:
        """Return the event of the first turn: strata and the conversation's rate are read from it."""
        turns = self.turns
        return next((taken for taken in self.taken if turns and turns[0] in taken.turns), None)

    def revision_of(self, turn: Turn) -> int:
        """Return the revision in which a turn came; a repeated request must get the same judgment id."""
        own = self.revisions.get(turn.event_id)
        return own or self.revisions.get(turn.event_id.rpartition("#")[0], self.revision)


def take(event: AnyEvent, *, decision: Decision, source: str, classifier: IntentClassifier) -> Taken:
    """Turn a decoded, masked event into what is stored of it."""
    turns = _turns(event, decision)
    return Taken(
        event_id=event.event_id,
        conversation_id=event.conversation_id,
        source=source,
        kind=event.type,
        outcome=_outcome(event, turns),
        turns=turns,
        attributes=_attributes(event, turns, classifier),
        decision_rule=decision.rule,
        rate=decision.rate,
        first_rate=decision.first_rate,
        signals=event.signals,
        occurred_at=event.occurred_at,
    )


def _turns(event: AnyEvent, decision: Decision) -> tuple[Turn, ...]:
    if not isinstance(event, TurnEvent | WholeConversationEvent):
        return ()
    shared = {
        "occurred_at": event.occurred_at,
        "answered_at": event.answered_at,
        "served_by": event.served_by,
        "references": event.references,
        "signals": event.signals,
        "rate": decision.rate,
    }
    if isinstance(event, TurnEvent):
        return (
            Turn(event_id=event.event_id, turn_index=event.turn_index, messages=event.messages, **shared),
        )
    return tuple(
        Turn(event_id=f"{event.event_id}#{index}", turn_index=index, messages=messages, **shared)
        for index, messages in enumerate(split_turns(event.messages))
    )


def _outcome(event: AnyEvent, turns: tuple[Turn, ...]) -> Outcome:
    match event:
        case EndEvent() | FeedbackEvent():
            return Outcome.APPLIED
        case SummaryEvent():
            return Outcome.NOT_YET_JUDGED
        case TurnEvent() | WholeConversationEvent():
            # Without an answer there is nothing to judge; the messages are context of what follows.
            return Outcome.WAITING if any(turn.answer for turn in turns) else Outcome.APPLIED


def _attributes(event: AnyEvent, turns: tuple[Turn, ...], classifier: IntentClassifier) -> Attributes:
    intent = event.intent
    if intent is None and turns:
        intent = classifier.of_text(_first_user_text(turns))
    return Attributes(
        assistant=event.assistant,
        environment=event.environment,
        variant=event.variant,
        pair_id=event.pair_id,
        tenant=event.tenant or UNKNOWN,
        intent=intent or UNKNOWN,
        channel=event.channel or UNKNOWN,
        language=event.language or UNKNOWN,
    )


def _first_user_text(turns: tuple[Turn, ...]) -> str:
    return next(
        (message.content for turn in turns for message in turn.messages if message.role == "user"), ""
    )


def end_reason(stored: Stored, *, now: datetime, policy: ConversationPolicy) -> EndReason:
    """Return why a due conversation is over."""
    if stored.holds("conversation"):
        return EndReason.WHOLE
    if stored.holds("end"):
        return EndReason.END_EVENT
    aged = stored.first_activity + timedelta(seconds=policy.max_age_seconds)
    return EndReason.AGE if aged <= now else EndReason.IDLE


def conversation(stored: Stored, *, ended: EndReason | None = None) -> Conversation:
    """Put the turns in their order and say for whom the conversation stands."""
    turns = stored.turns
    missing = _missing(turns)
    opening = stored.opening
    # What came in one piece was wholly observed then, whatever was missing before.
    observed = stored.whole or (opening if 0 not in missing else None)
    return Conversation(
        id=stored.id,
        revision=stored.revision,
        attributes=opening.attributes if opening else Attributes(),
        turns=turns,
        ended=ended,
        rate=observed.first_rate if observed else None,
        missing_turns=missing,
    )


def _missing(turns: tuple[Turn, ...]) -> tuple[int, ...]:
    present = {turn.turn_index for turn in turns if turn.turn_index is not None}
    # A gap is a fact to show, not a list to fill memory with.
    return tuple(index for index in range(min(max(present, default=-1) + 1, 1000)) if index not in present)[
        :20
    ]


def turns_to_judge(whole: Conversation, arrived: Iterable[str]) -> tuple[Turn, ...]:
    """Return the turns whose judgment is asked for now.

    A turn waits for the one before it, so that its judge sees what came first; the close waits no longer.
    Asking twice is harmless, as the judgment has one id.
    """
    present = {turn.turn_index for turn in whole.turns}
    arrived = set(arrived)

    def ready(turn: Turn) -> bool:
        index = turn.turn_index
        return index is None or index == 0 or whole.partial or (index - 1) in present

    indexes = {turn.turn_index for turn in whole.turns if turn.event_id in arrived}
    return tuple(
        turn
        for turn in whole.turns
        if turn.answer
        and ready(turn)
        and (
            turn.event_id in arrived
            # The gap before it has just been filled.
            or (turn.turn_index is not None and (turn.turn_index - 1) in indexes)
        )
    )


def held_back(stored: Stored, whole: Conversation) -> tuple[Turn, ...]:
    """Return the turns that waited for one before them, which did not come in time."""
    return tuple(turn for turn in whole.turns if turn.answer and turn.event_id in stored.waiting)


def up_to(whole: Conversation, turn: Turn) -> Conversation:
    """Return the conversation as it was when this turn was answered."""
    place = next(place for place, other in enumerate(whole.turns) if other.event_id == turn.event_id)
    return Conversation(
        id=whole.id,
        revision=whole.revision,
        attributes=whole.attributes,
        turns=whole.turns[: place + 1],
        rate=whole.rate,
        missing_turns=whole.missing_turns,
    )
