"""The tool calls of a turn in, whether they were made rightly out: arguments, errors, use of the results."""

import json
import re
from collections.abc import Iterator
from typing import Any

from monitor.intake.event import Message, Role, ToolCall
from monitor.judging.claims import FigureKind, figures
from monitor.judging.exchange import Exchange
from monitor.judging.judgment import DimensionScore, Quote

DIMENSION = "tool_calls"

_ERROR = re.compile(
    r"^\W*(?:error|exception|traceback|failed|failure)\b|\"(?:error|errors|error_message"
    r"|exception)\"\s*:\s*(?!null|\"\"|false|\[\]|\{\})"
    r"|\"(?:success|ok)\"\s*:\s*false|\"status\"\s*:\s*\"(?:error|failed|failure)\"|\b(?:HTTP"
    r"|status)[ _:]*(?:4\d\d|5\d\d)\b",
    re.IGNORECASE,
)
_UNKNOWN_TOOL = re.compile(
    r"\b(?:unknown|no such|undefined|unrecogni[sz]ed|invalid|nonexistent) (?:tool|function"
    r"|action)\b(?! arg)|\b(?:tool|function|action)\b[^.]{0,40}\b(?:not found|does"
    r" not exist|doesn't exist|is not (?:defined|available))\b",
    re.IGNORECASE,
)
_ADMITS = re.compile(
    r"\b(?:sorry|apologi\w+|unable|could ?n'?t|could not|can'?t|cannot|not able|failed|failure|error"
    r"|issue|problem|trouble|unfortunately"
    r"|did ?n'?t|did not|wasn'?t|not (?:found|available|possible|yet|successful|valid|enough)"
    r"|unsuccessful|no (?:results?|match|such)|instead|however|seems|try"
    r"|incorrect|mistake|human agent|transfer)\b",
    re.IGNORECASE,
)
_CLAIMS_SUCCESS = re.compile(
    r"\b(?:done|success\w*|(?:i|we)(?:'ve| have)\b|has been|have been|is (?:now )?(?:set|booked|confirmed"
    r"|open|cancel+ed|updated)"
    r"|all set|confirmed|completed)\b",
    re.IGNORECASE,
)
_ID_LIKE = re.compile(r"(?=[^\s]*\d)[A-Za-z0-9][\w#@./+-]{3,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_PLAIN = re.compile(r"[^a-z0-9]")
_MONEY_TALK = re.compile(r"[$€£]|\bprice|\bamount|\btotal", re.IGNORECASE)
_AMOUNT_DIGITS = 5
_AMOUNT_MAX = 1000
"""Numbers below are counts or prices, which an assistant may well reckon."""


def score_tool_calls(exchange: Exchange) -> DimensionScore:
    """Score the calls of one turn; without any it abstains."""
    if not any(message.tool_calls for message in exchange.turn.messages):
        return DimensionScore(dimension=DIMENSION, score=None, reason="no tool call in this turn")
    worst = min(_found(exchange), key=lambda score: score.score or 0, default=None)
    calls = sum(len(message.tool_calls) for message in exchange.turn.messages)
    return worst or DimensionScore(
        dimension=DIMENSION, score=5, reason=f"{calls} call(s) with valid arguments from known values"
    )


def _found(exchange: Exchange) -> Iterator[DimensionScore]:
    known = _plain("\n".join((exchange.words_before_turn, *exchange.answers_before)))
    spoken = exchange.words_before_turn
    for message in exchange.turn.messages:
        for call in message.tool_calls:
            yield from _arguments(call, known, spoken)
        if message.content:
            known += _plain(message.content)
            spoken += "\n" + message.content
        if message.role is Role.TOOL and (match := _UNKNOWN_TOOL.search(message.content)):
            yield _score(2, "unknown_tool", "calls a tool that does not exist", match.group(), "tool")
    yield from _ignored_error(exchange)


def _arguments(call: ToolCall, known: str, spoken: str) -> Iterator[DimensionScore]:
    if not call.arguments.strip():
        return
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError) as error:
        reason = f"the arguments of {call.name} are no valid JSON ({error})"
        yield _score(1, "invalid_arguments", reason, call.arguments[:160], "none")
        return
    if not isinstance(arguments, dict):
        yield _score(
            2,
            "invalid_arguments",
            f"the arguments of {call.name} are no object",
            call.arguments[:160],
            "none",
        )
        return
    for name, value in _leaves(arguments):
        if _invented(value, known, spoken):
            reason = f"{call.name}({name}) has a value that nobody gave: '{value[:60]}'"
            yield _score(2, "invented_argument", reason, value, "none")


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from _leaves(inner, f"{name}.{key}".lstrip("."))
        case list():
            for inner in value:
                yield from _leaves(inner, name)
        case bool() | None | float():
            return
        case int() if value < _AMOUNT_MAX:
            return
        case _:
            yield name, str(value)


def _invented(value: str, known: str, spoken: str) -> bool:
    """Tell whether an id-like value appears nowhere before; dates and free text may be put in other words."""
    if " " in value.strip() or not _ID_LIKE.fullmatch(value.strip()):
        return False
    if _YEAR.fullmatch(value) or any(figure.kind is not FigureKind.NUMBER for figure in figures(value)):
        return False
    plain = _plain(value)
    if plain in known:
        return False
    # An amount may be the sum of known ones, which is for the figures to judge.
    return not (plain.isdigit() and len(plain) <= _AMOUNT_DIGITS and _MONEY_TALK.search(spoken))


def _plain(text: str) -> str:
    return _PLAIN.sub("", text.lower())


def _ignored_error(exchange: Exchange) -> Iterator[DimensionScore]:
    last = next((m for m in reversed(exchange.turn.messages) if m.role is Role.TOOL), None)
    if last is None or not exchange.answer or not _is_error(last):
        return
    if _ADMITS.search(exchange.answer):
        return
    error = last.content[:160]
    if _CLAIMS_SUCCESS.search(exchange.answer):
        yield _score(1, "ignored_error", "the tool failed and the answer claims success", error, "tool")
    else:
        yield _score(3, "ignored_error", "the tool failed and the answer does not mention it", error, "tool")


def _is_error(message: Message) -> bool:
    return bool(_ERROR.search(message.content))


def _score(score: int, kind: str, reason: str, text: str, source: str) -> DimensionScore:
    quote = Quote.model_validate({"text": text, "source": source})
    return DimensionScore(dimension=DIMENSION, score=score, reason=reason, quotes=(quote,), kind=kind)
