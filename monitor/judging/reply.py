"""A model's words in, scores out, or why they are none: the whole reply is read strictly, and nothing is guessed."""

import json
import re
from typing import Any

from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import DimensionScore, FailureKind, Quote
from monitor.judging.rubric import SCORE_MAX, SCORE_MIN, Dimension

QUOTES_MAX = 3
REASON_MAX = 1000
"""Characters of a reason that are kept; a judge that writes more has said it by then."""
KINDS = (
    "wrong_duration",
    "wrong_amount",
    "wrong_percentage",
    "wrong_procedure",
    "invented_fact",
    "forbidden_promise",
    "over_promise",
    "exception",
    "compensation",
    "waived_requirement",
    "missed_handover",
    "tone",
    "no_way_on",
    "vague",
    "personal_data",
    "asks_for_secret",
    "internal_detail",
    "legal_commitment",
    "harmful_content",
    "wrong_tool",
    "invalid_arguments",
    "invented_argument",
    "ignored_error",
    "other",
)
"""Kinds of failure that a judge may name, the same words as the rules use: alerts group by them."""
_SOURCES = ("answer", "user", "reference", "tool")
_NO_WORD = re.compile(r"\\+[nrt]|[\W_]+")
"""What differs between a text and its copy in other JSON, in a code block or on an indented line."""


class _UnreadableError(ValueError):
    """What is wrong with a reply, as a sentence."""


def reply_schema(dimensions: tuple[Dimension, ...]) -> dict[str, Any]:
    """Return the JSON schema of a reply; the reason stands before the score, so that it is thought of first."""
    return {
        "type": "object",
        "properties": {dimension.name: _dimension_schema(dimension) for dimension in dimensions},
        "required": [dimension.name for dimension in dimensions],
        "additionalProperties": False,
    }


def _dimension_schema(dimension: Dimension) -> dict[str, Any]:
    quote = {
        "type": "object",
        "properties": {"source": {"type": "string", "enum": list(_SOURCES)}, "text": {"type": "string"}},
        "required": ["source", "text"],
        "additionalProperties": False,
    }
    level: dict[str, Any] = {"type": "integer", "minimum": SCORE_MIN, "maximum": SCORE_MAX}
    if dimension.may_abstain:
        level["type"] = ["integer", "null"]
    return {
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "quotes": {"type": "array", "items": quote, "maxItems": QUOTES_MAX},
            "kind": {"type": ["string", "null"], "enum": [*KINDS, None]},
            "score": level,
            "critical": {"type": "boolean"},
        },
        "required": ["reason", "quotes", "kind", "score", "critical"],
        "additionalProperties": False,
    }


def read_reply(text: str, dimensions: tuple[Dimension, ...], *, sources: dict[str, str]) -> JudgeReply:
    """Read a whole reply; `sources` are the texts in which a quotation must stand to count as verbatim.

    A reply that as a whole stands in one of them is a copy of what was judged, and no judgment.
    """
    try:
        scores = _scores(_parsed(text), dimensions, sources)
        _check_own(text, dimensions, sources)
    except _UnreadableError as error:
        return NotScored(kind=FailureKind.UNREADABLE, reason=str(error))
    return Scored(scores=scores)


def _parsed(text: str) -> dict[str, Any]:
    written = text.strip()
    if not written:
        raise _UnreadableError("the reply is empty")
    try:
        parsed = json.loads(written, object_pairs_hook=_without_twins)
    except _UnreadableError:
        raise
    except (ValueError, RecursionError) as error:
        around = " (there are words or a fence around the JSON)" if not written.startswith("{") else ""
        raise _UnreadableError(f"the reply as a whole is no JSON{around}") from error
    if not isinstance(parsed, dict):
        raise _UnreadableError(f"the reply is {_name(parsed)}, not an object")
    return parsed


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _UnreadableError("a key stands twice in one object, so it is unclear which value counts")
    return found


def _scores(
    parsed: dict[str, Any], dimensions: tuple[Dimension, ...], sources: dict[str, str]
) -> tuple[DimensionScore, ...]:
    asked = {dimension.name for dimension in dimensions}
    if missing := sorted(asked - set(parsed)):
        raise _UnreadableError(f"no answer for {', '.join(missing)}")
    if unasked := sorted(set(parsed) - asked):
        # Not by name: the reason is told to the model again, outside of all boundaries.
        raise _UnreadableError(f"answers {len(unasked)} key(s) that were not asked for")
    return tuple(_score(dimension, parsed[dimension.name], sources) for dimension in dimensions)


def _check_own(text: str, dimensions: tuple[Dimension, ...], sources: dict[str, str]) -> None:
    for source in sources.values():
        # The names first: hardly any text holds them all, and looking for them costs next to nothing.
        if all(dimension.name in source for dimension in dimensions) and _bare(text) in _bare(source):
            raise _UnreadableError("the reply stands word for word in what was to be judged")


def _bare(text: str) -> str:
    return _NO_WORD.sub("", text)


def _score(dimension: Dimension, given: Any, sources: dict[str, str]) -> DimensionScore:
    name = dimension.name
    if not isinstance(given, dict):
        raise _UnreadableError(f"{name}: {_name(given)} where an object is asked for")
    reason = given.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise _UnreadableError(f"{name}: no reason")
    if "score" not in given:
        raise _UnreadableError(f"{name}: no score")
    score = _level(name, given["score"])
    if score is None and not dimension.may_abstain:
        raise _UnreadableError(f"{name}: abstains, which this dimension does not allow")
    return DimensionScore(
        dimension=name,
        score=score,
        reason=reason.strip()[:REASON_MAX],
        quotes=_quotes(name, given.get("quotes"), sources),
        kind=_kind(name, given.get("kind")),
        flagged_critical=_flag(name, given.get("critical")),
    )


def _level(name: str, given: Any) -> int | None:
    """Read a level: a whole number, or a text that is exactly one; `true` and "3/5" are none."""
    match given:
        case None:
            return None
        case bool():
            pass
        case int() if SCORE_MIN <= given <= SCORE_MAX:
            return given
        case float() if given.is_integer() and SCORE_MIN <= given <= SCORE_MAX:
            return int(given)
        case str() if given in {str(level) for level in range(SCORE_MIN, SCORE_MAX + 1)}:
            return int(given)
        case int() | float():
            raise _UnreadableError(f"{name}: score {given} is out of {SCORE_MIN} to {SCORE_MAX}")
    raise _UnreadableError(f"{name}: score is {_name(given)}, not a whole number")


def _kind(name: str, given: Any) -> str | None:
    if given is None or given == "":
        return None
    if given not in KINDS:
        raise _UnreadableError(f"{name}: an unknown kind of failure")
    return str(given)


def _flag(name: str, given: Any) -> bool | None:
    if given is None or isinstance(given, bool):
        return given
    raise _UnreadableError(f"{name}: critical is {_name(given)}, not true or false")


def _quotes(name: str, given: Any, sources: dict[str, str]) -> tuple[Quote, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise _UnreadableError(f"{name}: quotes is {_name(given)}, not a list")
    found = []
    for quote in given[:QUOTES_MAX]:
        match quote:
            case {"text": str(text), "source": str(source)} if source in _SOURCES:
                if text.strip():
                    verbatim = _spaced(text) in _spaced(sources.get(source, ""))
                    found.append(Quote.model_validate({"text": text, "source": source, "verbatim": verbatim}))
            case _:
                raise _UnreadableError(f"{name}: a quote without its text or source")
    return tuple(found)


def _spaced(text: str) -> str:
    # Line breaks are shown indented, so only the words are compared.
    return " ".join(text.split())


def _name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
