"""A conversation in, what the rule judge looks at out: each answer with all that was known before it."""

import re
from typing import NamedTuple

from monitor.conversations.conversation import Conversation, Turn
from monitor.intake.event import Message, Role
from monitor.judging.wording import plain


class Exchange(NamedTuple):
    """One turn and its context."""

    turn: Turn
    answer: str
    """What the user finally saw, with plain apostrophes; empty if nobody answered."""
    asked: str
    """What the user said in this turn."""
    user_said: tuple[str, ...]
    """What the user said up to the answer, in this turn and before."""
    tools_said: tuple[str, ...]
    instructions: tuple[str, ...]
    """System messages of the conversation: what the assistant was told."""
    answers_before: tuple[str, ...]
    conversation_id: str
    """The key of this conversation's placeholders."""

    words_before_turn: str
    """All that was said before the turn by others than the assistant."""


def exchanges(conversation: Conversation) -> tuple[Exchange, ...]:
    """Return every turn with its context, in order."""
    before: list[Message] = []
    found = []
    for turn in conversation.turns:
        found.append(_exchange(turn, tuple(before), conversation.id))
        before.extend(turn.messages)
    return tuple(found)


def _exchange(turn: Turn, before: tuple[Message, ...], conversation_id: str) -> Exchange:
    known = (*before, *turn.messages)
    answer = plain(_answer(turn.messages))
    return Exchange(
        turn=turn,
        answer=answer,
        asked=plain("\n".join(_texts(turn.messages, Role.USER))),
        user_said=_texts(known, Role.USER),
        tools_said=_texts(known, Role.TOOL),
        instructions=_texts(known, Role.SYSTEM),
        answers_before=_texts(before, Role.ASSISTANT),
        conversation_id=conversation_id,
        words_before_turn="\n".join(m.content for m in before if m.content and m.role is not Role.ASSISTANT),
    )


def _answer(messages: tuple[Message, ...]) -> str:
    # A greeting before the first question is no answer to it.
    for message in reversed(messages):
        if message.role is Role.USER:
            return ""
        if message.role is Role.ASSISTANT and message.content.strip():
            return message.content
    return ""


def _texts(messages: tuple[Message, ...], role: Role) -> tuple[str, ...]:
    return tuple(message.content for message in messages if message.role is role and message.content)


_THANKS = re.compile(
    r"\b(?:thank|thanks|thx|ty|cheers|great|perfect|awesome|wonderful|lovely|super|bye|goodbye|ok|okay|k"
    r"|cool|nice"
    r"|fine|got it|will do|sweet|gracias|merci|danke|that'?s (?:all|it|everything|great)|no,? (?:thanks"
    r"|that))\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?|\b(?:how|what|when|where|why|which|who|can|could|would|please|pls|need|want|help|is it|do i)\b",
    re.IGNORECASE,
)
_PLEASANTRY = re.compile(
    r"\b(?:you're (?:very |most )?welcome|(?:my|our) pleasure|glad (?:i|we|to|that|you)|happy to help"
    r"|enjoy|anytime"
    r"|have a (?:great|nice|good|lovely|wonderful)|take care|good(?:bye| luck)|safe (?:travels|trip)"
    r"|see you|no problem"
    r"|you too|best of luck|happy (?:riding|trails|camping))\b",
    re.IGNORECASE,
)
_WELCOMES = re.compile(r"^\W*(?:you're (?:very |most )?welcome|(?:my|our) pleasure|anytime)\b", re.IGNORECASE)
_WORD = re.compile(r"\w")
_SHORT_WORDS = 12


def small_talk(exchange: Exchange) -> bool:
    """Tell whether the turn is thanks, a greeting or a goodbye, with nothing to solve."""
    asked, answer = exchange.asked, exchange.answer
    short = len(asked.split()) <= _SHORT_WORDS
    thanked = short and bool(_THANKS.search(asked)) and not _ASKS.search(asked)
    brief = len(answer.split()) <= 2 * _SHORT_WORDS
    if not _WORD.search(asked) or not _WORD.search(answer):
        # A thumb, a smile: whoever sends one asks for nothing.
        return bool(asked and answer)
    if _WELCOMES.search(answer) and brief and "?" not in asked:
        return True
    polite = bool(_PLEASANTRY.search(answer)) and brief
    return (thanked and (polite or len(answer.split()) <= _SHORT_WORDS)) or (
        short and polite and not _ASKS.search(asked)
    )
