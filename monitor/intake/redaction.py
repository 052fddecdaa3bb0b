"""An event in, the same event with its personal data replaced by placeholders out.

A placeholder is `[EMAIL_7f3a]`: the kind, and four hex digits of a hash keyed with the conversation's id. So
the same value has the same placeholder in every turn of a conversation, whichever arrives first and on
whatever worker, and another one in any other conversation. Sixteen bits are too few to find a value by trying
all phone numbers.
"""

import hashlib
import json
import re
from typing import Any, TypeVar

from monitor.intake.decode import AnyEvent
from monitor.intake.event import (
    EndEvent,
    FeedbackEvent,
    Message,
    Role,
    SummaryEvent,
    SummarySection,
    ToolCall,
    Value,
)
from monitor.intake.personal import Kind, Span, find

REGION = "US"
"""Where a phone number without a country code is dialled."""
PLACEHOLDER = re.compile(rf"\[(?P<kind>{'|'.join(Kind)})(?:_[0-9a-f]{{4}})?\]")
"""What masking leaves behind, here or at a producer who masks without a number."""

_V = TypeVar("_V", bound=Value)
_JSON_STARTS = ("{", "[", '"')


def mask_event(event: AnyEvent, *, region: str = REGION) -> AnyEvent:
    """Mask what people and tools wrote; ids, attributes and reference documents stay as they are."""
    key = event.conversation_id
    match event:
        case EndEvent() | FeedbackEvent():
            return event
        case SummaryEvent():
            sections = tuple(_with(s, text=mask_text(s.text, key=key, region=region)) for s in event.sections)
            transcript = mask_messages(event.transcript, key=key, region=region)
            return _rebuilt_summary(event, sections, transcript)
        case _:
            masked = mask_messages(event.messages, key=key, region=region)
            return event if masked is event.messages else _with(event, messages=masked)


def mask_messages(messages: tuple[Message, ...], *, key: str, region: str = REGION) -> tuple[Message, ...]:
    """Mask messages; without anything personal the very same tuple comes back."""
    masked = tuple(_message(message, key, region) for message in messages)
    return messages if all(a is b for a, b in zip(masked, messages, strict=True)) else masked


def mask_text(text: str, *, key: str, region: str = REGION) -> str:
    """Mask one text; twice masked is once masked."""
    spans = find(text, region=region)
    if not spans:
        return text
    pieces, position = [], 0
    for span in spans:
        pieces += [text[position : span.start], placeholder(span, key=key)]
        position = span.end
    return "".join([*pieces, text[position:]])


def placeholder(span: Span, *, key: str) -> str:
    """Name a span by its kind and its conversation's hash of it."""
    digest = hashlib.blake2b(
        f"{span.kind}:{span.value}".encode(), key=hashlib.sha256(key.encode()).digest(), digest_size=2
    )
    return f"[{span.kind}_{digest.hexdigest()}]"


def mask_json(text: str, *, key: str, region: str = REGION) -> str:
    """Mask inside JSON so that it stays JSON; a text that is none is masked as text."""
    try:
        parsed = json.loads(text, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError):
        return mask_text(text, key=key, region=region)
    masked = _json_value(parsed, key, region)
    return text if masked == parsed else json.dumps(masked, ensure_ascii=False)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A key given twice hides its first value from the parser, and with it from masking.
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _json_value(value: Any, key: str, region: str) -> Any:
    match value:
        case str():
            return mask_text(value, key=key, region=region)
        case dict():
            return {
                mask_text(name, key=key, region=region): _json_value(inner, key, region)
                for name, inner in value.items()
            }
        case list():
            return [_json_value(inner, key, region) for inner in value]
        case int() if not isinstance(value, bool):
            written = str(value)
            masked = mask_text(written, key=key, region=region)
            return value if masked == written else masked
        case _:
            return value


def _message(message: Message, key: str, region: str) -> Message:
    is_json = message.role is Role.TOOL and message.content.lstrip().startswith(_JSON_STARTS)
    mask = mask_json if is_json else mask_text
    content = mask(message.content, key=key, region=region)
    calls = tuple(_call(call, key, region) for call in message.tool_calls)
    name = message.name and mask_text(message.name, key=key, region=region)
    if content == message.content and calls == message.tool_calls and name == message.name:
        return message
    return _with(message, content=content, tool_calls=calls, name=name)


def _call(call: ToolCall, key: str, region: str) -> ToolCall:
    arguments = mask_json(call.arguments, key=key, region=region)
    return call if arguments == call.arguments else _with(call, arguments=arguments)


def _rebuilt_summary(
    event: SummaryEvent, sections: tuple[SummarySection, ...], transcript: tuple[Message, ...]
) -> SummaryEvent:
    if sections == event.sections and transcript is event.transcript:
        return event
    return _with(event, sections=sections, transcript=transcript)


def _with(value: _V, **changes: Any) -> _V:
    # Built anew, so that the result is validated; fields that are values already are taken as they are.
    return type(value)(**{**dict(value), **changes})
