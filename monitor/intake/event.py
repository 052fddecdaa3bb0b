"""What the world tells us: conversation events, summary events and change events, as values.

Their events may carry fields that we do not know; those stay in the raw bytes and are no error.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the calendar") from None


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A point in time with its zone, held in UTC."""

Id = Annotated[str, Field(min_length=1, max_length=256)]
Attribute = Annotated[str, Field(min_length=1, max_length=128)]
"""A value that names a segment or a stratum; bounded, since it becomes part of a key."""


class Value(BaseModel):
    """A frozen value that takes no notice of fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Environment(StrEnum):
    """Where the assistant answered. Environments never mix in a series."""

    PRODUCTION = "production"
    STAGING = "staging"
    SHADOW = "shadow"


class ToolCall(Value):
    """One call that the assistant made; `arguments` is the JSON text as the model wrote it, valid or not."""

    id: str = ""
    name: str
    arguments: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_openai(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and isinstance(raw.get("function"), dict):
            function = raw["function"]
            return {
                "id": raw.get("id") or "",
                "name": function.get("name"),
                "arguments": function.get("arguments") or "",
            }
        return raw


class Role(StrEnum):
    """Who speaks. `developer` counts as system, `function` as tool."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


_OTHER_NAMES_OF_ROLES = {"developer": "system", "function": "tool", "human": "user", "ai": "assistant"}


class Message(Value):
    """One message in OpenAI's chat shape; parts that are no text are named, never dropped in silence."""

    role: Role
    content: str = ""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @field_validator("role", mode="before")
    @classmethod
    def _role(cls, raw: Any) -> Any:
        return _OTHER_NAMES_OF_ROLES.get(raw, raw) if isinstance(raw, str) else raw

    @field_validator("content", mode="before")
    @classmethod
    def _content(cls, raw: Any) -> Any:
        if raw is None:
            return ""
        if isinstance(raw, list):
            return "\n".join(_part_text(part) for part in raw)
        return raw

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _tool_calls(cls, raw: Any) -> Any:
        return raw or ()


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return f"[{part.get('type', 'part')}]"
    raise ValueError("a content part is neither text nor an object")


# A date (2024-08-06, 20241022, 0613), a number of three digits, or the alias of the newest.
_SNAPSHOT = re.compile(r"[-@](?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{3,4})|[-@:]latest")


@lru_cache(maxsize=4096)
def is_another_model(asked: str | None, answered: str | None) -> bool:
    """Tell whether an answer came from another model than was asked for.

    A name and its dated snapshot are one model (`gpt-4o`, `gpt-4o-2024-08-06`), and so are names with and without
    their provider (`openai/gpt-4o`). Two different snapshots are two models. Unknown is no other model.
    """
    if not asked or not answered or asked == answered:
        return False
    asked, answered = asked.lower(), answered.lower()
    if ("/" in asked) != ("/" in answered):
        asked, answered = asked.rpartition("/")[2], answered.rpartition("/")[2]
    asked = re.sub("[-@:]latest$", "", asked)
    rest = answered.removeprefix(asked)
    return not answered.startswith(asked) or not (rest == "" or _SNAPSHOT.fullmatch(rest))


class ServedBy(Value):
    """The configuration that answered. Unknown is None, and None is a value of its own in a segment."""

    git_commit: Attribute | None = None
    model_asked: Attribute | None = None
    model_answered: Attribute | None = None
    prompt_hash: Attribute | None = None
    retrieval_version: Attribute | None = None
    tool_schema_hash: Attribute | None = None
    routing_hash: Attribute | None = None

    @property
    def fell_back(self) -> bool:
        """Tell whether another model answered than the one asked for."""
        return is_another_model(self.model_asked, self.model_answered)


class Thumb(StrEnum):
    """What the user pressed."""

    UP = "up"
    DOWN = "down"


class Signals(Value):
    """What is known about a turn without judging it."""

    thumb: Thumb | None = None
    escalated: bool = False
    fallback: bool = False
    refused: bool = False


class Reference(Value):
    """A document that the assistant should have answered from: by id, or with its text."""

    id: Id
    version: Attribute | None = None
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_id(cls, raw: Any) -> Any:
        return {"id": raw} if isinstance(raw, str) else raw


class _Event(Value):
    event_id: Id
    conversation_id: Id
    occurred_at: Moment
    turn_index: Annotated[int, Field(ge=0)] | None = None
    assistant: Attribute = "default"
    environment: Environment = Environment.PRODUCTION
    variant: Attribute | None = None
    pair_id: Attribute | None = None
    tenant: Attribute | None = None
    intent: Attribute | None = None
    channel: Attribute | None = None
    language: Attribute | None = None
    served_by: ServedBy = ServedBy()
    answered_at: Moment | None = None
    references: tuple[Reference, ...] = ()
    signals: Signals = Signals()


class TurnEvent(_Event):
    """One exchange with its tool steps: what the user said up to what the assistant replied."""

    type: Literal["turn"] = "turn"
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]


class WholeConversationEvent(_Event):
    """A conversation that comes in one piece; it is complete with this event."""

    type: Literal["conversation"] = "conversation"
    messages: Annotated[tuple[Message, ...], Field(min_length=1)]


class EndEvent(_Event):
    """The producer says that the conversation is over."""

    type: Literal["end"] = "end"


NO_SIGNAL_SAID = "a feedback event needs at least one signal: thumb, escalated, fallback or refused"


class FeedbackEvent(_Event):
    """A signal that arrives by itself: a thumb, an escalation."""

    type: Literal["feedback"] = "feedback"
    signals: Signals

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.signals == Signals():
            raise ValueError(NO_SIGNAL_SAID)
        return self


class SummarySection(Value):
    """One section of a summary, with the definition that its writer was given."""

    key: Id
    text: str
    definition: str = ""
    type: Literal["free_form", "categorical"] = "free_form"
    custom: bool = False
    allowed_values: tuple[str, ...] = ()


class SummaryEvent(_Event):
    """An AI-written account of a conversation; its transcript is here or known by the conversation's id."""

    type: Literal["summary"] = "summary"
    sections: Annotated[tuple[SummarySection, ...], Field(min_length=1)]
    transcript: tuple[Message, ...] = ()
    generator: ServedBy = ServedBy()


ConversationEvent = Annotated[
    TurnEvent | WholeConversationEvent | EndEvent | FeedbackEvent | SummaryEvent,
    Field(discriminator="type"),
]
"""Any event of the topics `conversation-events` and `summary-events`."""

EVENT_TYPES = ("turn", "conversation", "end", "feedback", "summary")


class ChangeKind(StrEnum):
    """What may change around an assistant."""

    DEPLOY = "deploy"
    INDEX_BUILD = "index_build"
    DOCUMENT_EDIT = "document_edit"
    FLAG = "flag"
    PROVIDER_NOTICE = "provider_notice"


class ChangeEvent(Value):
    """Something changed around an assistant; kept to be shown beside an alert's onset."""

    event_id: Id
    kind: ChangeKind
    occurred_at: Moment
    title: Annotated[str, Field(min_length=1, max_length=300)]
    assistant: Attribute | None = None
    environment: Environment = Environment.PRODUCTION
    served_by: ServedBy = ServedBy()
    link: str | None = None


CONVERSATION_EVENT: TypeAdapter[
    TurnEvent | WholeConversationEvent | EndEvent | FeedbackEvent | SummaryEvent
] = TypeAdapter(ConversationEvent)
