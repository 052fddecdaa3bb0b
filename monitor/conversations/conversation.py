"""The values of a conversation: its turns in order, how it ended, and for whom it speaks in the sample."""

from collections.abc import Iterable
from enum import StrEnum

from monitor.intake.event import (
    Environment,
    Message,
    Moment,
    Reference,
    Role,
    ServedBy,
    Signals,
    Value,
)

UNKNOWN = "unknown"


class EndReason(StrEnum):
    """Why a conversation counts as over; whichever comes first."""

    END_EVENT = "end_event"
    WHOLE = "whole"
    IDLE = "idle"
    AGE = "age"


class Attributes(Value):
    """Whose conversation it is. Strata are read from the first turn: they exist before any answer."""

    assistant: str = "default"
    environment: Environment = Environment.PRODUCTION
    variant: str | None = None
    pair_id: str | None = None
    tenant: str = UNKNOWN
    intent: str = UNKNOWN
    channel: str = UNKNOWN
    language: str = UNKNOWN


class Turn(Value):
    """One exchange of a conversation."""

    event_id: str
    turn_index: int | None = None
    occurred_at: Moment
    answered_at: Moment | None = None
    messages: tuple[Message, ...]
    served_by: ServedBy = ServedBy()
    references: tuple[Reference, ...] = ()
    signals: Signals = Signals()
    rate: float = 1.0
    """The highest sampling rate in force up to this turn; its inverse is the turn's weight."""

    @property
    def answer(self) -> str:
        """Return what the user finally saw: the last assistant text after the user's words, or an empty text."""
        for message in reversed(self.messages):
            if message.role is Role.USER:
                # A greeting before the first words is no answer to them.
                break
            if message.role is Role.ASSISTANT and message.content.strip():
                return message.content
        return ""


def in_order(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Order turns by (turn_index, occurred_at, event_id); one without an index stands where its time puts it."""
    turns = tuple(turns)
    numbered = sorted(
        (turn for turn in turns if turn.turn_index is not None),
        key=lambda turn: (turn.turn_index, turn.occurred_at, turn.event_id),
    )
    others = sorted(
        (turn for turn in turns if turn.turn_index is None),
        key=lambda turn: (turn.occurred_at, turn.event_id),
    )
    placed: list[Turn] = []
    for turn in numbered:
        while others and others[0].occurred_at < turn.occurred_at:
            placed.append(others.pop(0))
        placed.append(turn)
    return (*placed, *others)


class Conversation(Value):
    """The ordered whole, as far as it was kept."""

    id: str
    revision: int = 1
    attributes: Attributes = Attributes()
    turns: tuple[Turn, ...]
    ended: EndReason | None = None
    rate: float | None = None
    """The rate of the whole conversation; None when it was promoted in its middle and stands for nobody."""
    missing_turns: tuple[int, ...] = ()
    cut_turns: int = 0
    """How many of the oldest turns were left out, since the whole was too long."""
    cut_text: bool = False
    """Tell whether messages of the last turn lost their middle for the same reason."""

    @property
    def partial(self) -> bool:
        """Tell whether turns before the first kept one are missing: judged by turn, kept out of the series."""
        return self.rate is None

    @property
    def last_answered(self) -> Turn | None:
        """Return the last turn with an assistant's answer: it gives the bucket and the segments."""
        return next((turn for turn in reversed(self.turns) if turn.answer), None)
