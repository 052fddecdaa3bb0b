"""An endpoint's envelope in, the model's words out, or a typed failure with its remedy: nothing in it is certain."""

import json
import math
from typing import Any

from monitor.judging.judge import NotScored
from monitor.judging.judgment import FailureKind
from monitor.judging.policy import Ability
from monitor.judging.reply import reply_schema
from monitor.judging.rubric import Dimension

TOOL = "judgment"
"""The name of the one tool that a model without response formats is made to call."""
TOP_LOGPROBS = 20
"""Most that endpoints give. Fewer would miss a Yes that the model finds improbable."""


def asked_for(dimensions: tuple[Dimension, ...], ability: Ability) -> dict[str, Any]:
    """Return the part of a request that binds the form of its reply."""
    return bound_by(reply_schema(dimensions), ability)


def bound_by(schema: dict[str, Any], ability: Ability) -> dict[str, Any]:
    """Return the part of a request that binds its reply to a schema, as far as the endpoint is able to."""
    match ability:
        case Ability.JSON_SCHEMA:
            named = {"name": TOOL, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": named}}
        case Ability.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case Ability.TOOL:
            function = {
                "name": TOOL,
                "description": "Give the judgment.",
                "parameters": schema,
                "strict": True,
            }
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": TOOL}},
            }
        case Ability.TEXT:
            return {}


def words_of(response: dict[str, Any], ability: Ability) -> str | NotScored:
    """Return what the model wrote; cut off, held back, refused and empty are failures of their own."""
    choice = response["choices"][0]
    message = choice["message"]
    match choice.get("finish_reason"):
        case "length":
            reason = "the reply was cut at judge.max_tokens; raise it, or judge with a terser model"
            return NotScored(kind=FailureKind.TRUNCATED, reason=reason)
        case "content_filter":
            reason = "the endpoint's content filter held the reply back"
            return NotScored(kind=FailureKind.CONTENT_FILTER, reason=reason)
    if message.get("refusal"):
        return NotScored(kind=FailureKind.REFUSED, reason="the model refused to judge")
    if ability is Ability.TOOL:
        return _arguments(message)
    content = message.get("content")
    if isinstance(content, str):
        return content
    return NotScored(kind=FailureKind.UNREADABLE, reason="the reply has no text")


def yes_of(response: dict[str, Any]) -> float | NotScored:
    """Return how probable Yes was as the first word, of Yes and No together."""
    match response["choices"][0]:
        case {"logprobs": {"content": [{"top_logprobs": list(top)}, *_]}}:
            pass
        case _:
            reason = "the endpoint sent no logprobs; say judge.scoring: written, or use one that does"
            return NotScored(kind=FailureKind.REJECTED, reason=reason)
    found = {"yes": 0.0, "no": 0.0}
    for one in top:
        match one:
            case {"token": str(token), "logprob": int() | float() as logprob}:
                word = token.strip(" \t\n\"'.▁Ġ").casefold()
                if word in found and logprob <= 0:
                    found[word] += math.exp(logprob)
    both = found["yes"] + found["no"]
    if not both:
        return NotScored(kind=FailureKind.UNREADABLE, reason="neither Yes nor No was a probable first word")
    return found["yes"] / both


def _arguments(message: dict[str, Any]) -> str | NotScored:
    match message.get("tool_calls"):
        case [{"function": {"name": str(name), "arguments": arguments}}] if name == TOOL:
            # Some servers send the arguments as an object already.
            return arguments if isinstance(arguments, str) else json.dumps(arguments)
        case None | []:
            return NotScored(kind=FailureKind.UNREADABLE, reason="the tool was not called")
        case _:
            reason = "something else than the one call of the tool was answered"
            return NotScored(kind=FailureKind.UNREADABLE, reason=reason)
