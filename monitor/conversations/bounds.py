"""A conversation of any length in, one that a judge and a message can hold out; what was cut is recorded."""

from collections.abc import Iterable

from monitor.conversations.conversation import Conversation, Turn
from monitor.intake.event import Message

CUT = " … [cut] … "
_MESSAGE_MIN = 200
"""Characters that a message keeps however many there are."""


def bounded(whole: Conversation, *, max_chars: int) -> Conversation:
    """Return the conversation with at most about `max_chars` characters of text.

    The oldest turns go first; the last turn, which is the judged one, stays. If it alone is too long, its
    longest messages lose their middle, for what matters stands at the beginning and at the end.
    """
    if _length(whole.turns) <= max_chars:
        return whole
    kept = list(whole.turns)
    length = _length(kept)
    while len(kept) > 1 and length > max_chars:
        length -= _length([kept.pop(0)])
    if length > max_chars:
        kept = [_shortened(kept[0], max_chars)]
    fields = dict(whole) | {"turns": tuple(kept), "cut_turns": len(whole.turns) - len(kept)}
    return Conversation.model_validate(fields | {"cut_text": length > max_chars})


def _length(turns: Iterable[Turn]) -> int:
    return sum(_size(message) for turn in turns for message in turn.messages)


def _size(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def _shortened(turn: Turn, max_chars: int) -> Turn:
    share = max(_MESSAGE_MIN, max_chars // max(1, len(turn.messages)))
    messages = []
    for message in turn.messages:
        calls = tuple(
            call
            if len(call.arguments) <= share
            else type(call).model_validate(dict(call) | {"arguments": CUT})
            for call in message.tool_calls
        )
        changes = {"content": _middle_out(message.content, share), "tool_calls": calls}
        messages.append(Message.model_validate(dict(message) | changes))
    return Turn.model_validate(dict(turn) | {"messages": tuple(messages)})


def _middle_out(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    half = (length - len(CUT)) // 2
    return text[:half] + CUT + text[-half:]
