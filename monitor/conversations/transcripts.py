"""Lines of JSON in OpenAI's chat shape in, conversations out, masked: what files hold instead of a stream."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from monitor.conversations.conversation import UNKNOWN, Attributes, Conversation, EndReason, Turn
from monitor.intake.decode import Fault, Rejected, decode
from monitor.intake.event import TurnEvent
from monitor.intake.formats.openai_chat import Shape, events_of
from monitor.intake.redaction import REGION, mask_event

_SPACING = timedelta(minutes=1)
"""Between the beginnings of two conversations of unknown time."""


def read_conversations(
    lines: Iterable[str], *, start: datetime, region: str = REGION
) -> Iterator[tuple[int, Conversation | Rejected]]:
    """Read JSON lines in the chat shape, masked; each with its line number."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _read(line, start + number * _SPACING, region)


def conversation_of(
    record: Mapping[str, Any], *, start: datetime, region: str = REGION
) -> Conversation | Rejected:
    """Return the conversation that one record in the chat shape tells; times it does not have begin at `start`."""
    told = events_of(record, shape=Shape.TURNS, start=start)
    if isinstance(told, Rejected):
        return told
    turns = []
    for raw in told:
        event = decode(json.dumps(raw).encode())
        if isinstance(event, Rejected):
            return event
        if isinstance(event, TurnEvent):
            turns.append(mask_event(event, region=region))
    return _assembled([turn for turn in turns if isinstance(turn, TurnEvent)])


def _read(line: str, start: datetime, region: str) -> Conversation | Rejected:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Rejected(fault=Fault.UNDECODABLE, reason=f"not JSON: {error}")
    if not isinstance(record, dict):
        return Rejected(fault=Fault.INVALID, reason="not an object with `id` and `messages`")
    return conversation_of(record, start=start, region=region)


def _assembled(events: list[TurnEvent]) -> Conversation:
    first = events[0]
    return Conversation(
        id=first.conversation_id,
        attributes=Attributes(
            assistant=first.assistant,
            environment=first.environment,
            variant=first.variant,
            tenant=first.tenant or UNKNOWN,
            intent=first.intent or UNKNOWN,
            channel=first.channel or UNKNOWN,
            language=first.language or UNKNOWN,
        ),
        turns=tuple(
            Turn(
                event_id=event.event_id,
                turn_index=event.turn_index,
                occurred_at=event.occurred_at,
                answered_at=event.answered_at,
                messages=event.messages,
                served_by=event.served_by,
                references=event.references,
                signals=event.signals,
            )
            for event in events
        ),
        ended=EndReason.WHOLE,
        rate=1.0,
    )
