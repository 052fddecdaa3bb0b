"""One conversation in OpenAI's chat shape in, the events that would have told of it out.

The shape is `{"id", "messages": [...]}` with, where known, `intent`, `channel`, `policy_ref`, `references` (ids, or
id, version and text), `model`, `created_at` and a time `ts` on messages. Labels and whatever else a file carries are
not passed on: nobody judges from the answer key.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from monitor.intake.decode import Fault, Rejected
from monitor.intake.event import Message, Moment, Reference, Role, ServedBy, Value
from monitor.intake.turns import split_turns

STEP = timedelta(seconds=20)
"""Between two messages of unknown time."""
_ID_MAX = 200
"""Longer conversation ids are hashed in event ids, which must not outgrow their limit of 256."""


class Shape(StrEnum):
    """How a conversation is told: in one piece, or turn by turn with an end."""

    WHOLE = "whole"
    TURNS = "turns"


class _TimedMessage(Message):
    ts: Moment | None = None


class _Record(Value):
    id: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[tuple[_TimedMessage, ...], Field(min_length=1)]
    created_at: Moment | None = None
    policy_ref: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    model: str | None = None
    served_by: ServedBy = ServedBy()
    intent: str | None = None
    channel: str | None = None
    language: str | None = None
    tenant: str | None = None
    assistant: str | None = None
    environment: str | None = None
    variant: str | None = None

    @field_validator("policy_ref", mode="before")
    @classmethod
    def _one_or_many(cls, raw: Any) -> Any:
        if raw is None:
            return ()
        return (raw,) if isinstance(raw, str) else raw


_RECORD: TypeAdapter[_Record] = TypeAdapter(_Record)
_SAME_NAME = ("intent", "channel", "language", "tenant", "assistant", "environment", "variant")


def events_of(
    record: Mapping[str, Any], *, shape: Shape, start: datetime, step: timedelta = STEP
) -> list[dict[str, Any]] | Rejected:
    """Tell a conversation as events, oldest first; twice the same record gives twice the same event ids.

    Times come from the messages, else from `created_at`, else they are evenly spaced from `start`.
    """
    try:
        read = _RECORD.validate_python(record)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)[:5]
        lines = [f"{'.'.join(str(p) for p in f['loc'])}: {f['msg']}" for f in faults]
        return Rejected(fault=Fault.INVALID, reason="; ".join(lines))
    times = _times(read, start, step)
    name = _short(read.id)
    if shape is Shape.WHOLE:
        whole = _event(read, f"{name}:whole", "conversation", times, read.messages)
        # The conversation is known whole only once its last message is there.
        whole["occurred_at"] = times[-1].isoformat()
        return [whole]
    told = [
        _event(read, f"{name}:t{index}", "turn", spoken_at, spoken) | {"turn_index": index}
        for index, (spoken_at, spoken) in enumerate(_turns(read.messages, times))
    ]
    end = _fields(read, f"{name}:end", "end", times[-1])
    return [*told, end]


def _turns(
    messages: Sequence[Message], times: Sequence[datetime]
) -> Iterator[tuple[Sequence[datetime], Sequence[Message]]]:
    position = 0
    for turn in split_turns(messages):
        yield times[position : position + len(turn)], turn
        position += len(turn)


def _times(record: _Record, start: datetime, step: timedelta) -> list[datetime]:
    known = (message.ts for message in record.messages if message.ts)
    now = record.created_at or next(known, None) or start.astimezone(UTC)
    times = []
    for position, message in enumerate(record.messages):
        # A clock that runs backwards inside a conversation would shuffle its turns.
        now = max(now, message.ts) if message.ts else now + step * bool(position)
        times.append(now)
    return times


def _event(
    record: _Record, event_id: str, kind: str, times: Sequence[datetime], messages: Sequence[Message]
) -> dict[str, Any]:
    event = _fields(record, event_id, kind, times[0])
    event["messages"] = [
        message.model_dump(mode="json", exclude_defaults=True, exclude={"ts"}) for message in messages
    ]
    answered = [
        time
        for time, message in zip(times, messages, strict=True)
        if message.role is Role.ASSISTANT and message.content
    ]
    if answered:
        event["answered_at"] = answered[-1].isoformat()
    return event


def _fields(record: _Record, event_id: str, kind: str, occurred_at: datetime) -> dict[str, Any]:
    event: dict[str, Any] = {
        "event_id": event_id,
        "conversation_id": record.id,
        "type": kind,
        "occurred_at": occurred_at.isoformat(),
    }
    event |= {name: value for name in _SAME_NAME if (value := getattr(record, name))}
    references = [Reference(id=PurePosixPath(ref).name) for ref in record.policy_ref]
    # What is told with a version or its text says more than a bare id.
    told = {reference.id: reference for reference in (*references, *record.references)}
    if told and kind != "end":
        event["references"] = [one.model_dump(exclude_none=True) for one in told.values()]
    served_by = {"model_asked": record.model} if record.model else {}
    served_by |= record.served_by.model_dump(exclude_none=True)
    if served_by:
        event["served_by"] = served_by
    return event


def _short(conversation_id: str) -> str:
    if len(conversation_id) <= _ID_MAX:
        return conversation_id
    return hashlib.blake2b(conversation_id.encode(), digest_size=16).hexdigest()
