"""One small call at the start: does the endpoint do what monitor.yaml says it does? A mistake there is named."""

import json
from typing import Any

from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_failures import Refused, Retryable
from monitor.adapters.openai_reply import TOP_LOGPROBS, bound_by, words_of, yes_of
from monitor.judging.judge import NotScored
from monitor.judging.judgment import FailureKind
from monitor.judging.policy import Ability, JudgePolicy, Scoring
from monitor.judging.prompt import SIGNATURE
from monitor.policy import ConfigError

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
_SYSTEM = (
    f'{SIGNATURE}\nThis is a check before work begins. Reply with the JSON object {{"ready": true}} alone.'
)
_YES = f"{SIGNATURE}\nThis is a check before work begins. Answer with one word, Yes or No."
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404
_OTHERS = {ability: [str(other) for other in Ability if other is not ability] for ability in Ability}


async def probe(endpoint: Endpoint, policy: JudgePolicy) -> str | None:
    """Try the stated ability with one call; return why nothing could be learnt, None when all is well.

    Raises ConfigError where monitor.yaml is wrong. An endpoint that is down is no mistake there: it is waited for.
    """
    yes_no = policy.scoring is Scoring.PROBABILITY
    body: dict[str, Any] = {
        "model": policy.model,
        policy.max_tokens_field: 1 if yes_no else policy.max_tokens,
        "temperature": policy.temperature,
        "messages": [
            {"role": "system", "content": _YES if yes_no else _SYSTEM},
            {"role": "user", "content": "Are you ready?"},
        ],
    }
    if yes_no:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    else:
        body |= bound_by(_SCHEMA, policy.ability)
    try:
        response = await endpoint.post(body, tokens=100, timeout_seconds=policy.timeout_seconds)
    except Retryable as error:
        return error.reason
    except Refused as error:
        raise ConfigError(_refusal(error, policy)) from None
    if yes_no:
        _check_yes(yes_of(response))
    else:
        _check_words(words_of(response, policy.ability), policy.ability)
    return None


def _refusal(error: Refused, policy: JudgePolicy) -> str:
    said = error.failure.reason
    match error.status:
        case status if status in {_UNAUTHORIZED, _FORBIDDEN}:
            return f"MONITOR_JUDGE_API_KEY: {said}; give a key that may use {policy.model}"
        case status if status == _NOT_FOUND:
            return f"monitor.yaml: judge.model: {said}; check the name {policy.model} and judge.base_url"
        case _ if policy.scoring is Scoring.PROBABILITY:
            return (
                f"monitor.yaml: judge.scoring: {said} to a request with logprobs; say judge.scoring: written, use a "
                "model that gives them, or check judge.temperature and judge.max_tokens_field"
            )
        case _:
            others = ", ".join(_OTHERS[policy.ability])
            return (
                f"monitor.yaml: judge.ability: {said} to a request with {policy.ability}; say what the endpoint is "
                f"able to, one of {others}, or check judge.temperature and judge.max_tokens_field"
            )


def _check_words(words: str | NotScored, ability: Ability) -> None:
    if isinstance(words, NotScored):
        if words.kind is FailureKind.TRUNCATED:
            raise ConfigError(f"monitor.yaml: judge.max_tokens: {words.reason}")
        if ability is Ability.TOOL:
            raise ConfigError(
                f"monitor.yaml: judge.ability: {words.reason}, though tool was said; try another of "
                f"{', '.join(_OTHERS[ability])}"
            )
        return
    # A free text may come in any form; each judgment is read strictly all the same.
    if ability is Ability.TEXT:
        return
    try:
        given = json.loads(words)
    except ValueError:
        given = None
    bound = ability in {Ability.JSON_SCHEMA, Ability.TOOL}
    if not isinstance(given, dict) or (bound and set(given) != {"ready"}):
        raise ConfigError(
            f"monitor.yaml: judge.ability: the endpoint took {ability} and did not keep to it; try another of "
            f"{', '.join(_OTHERS[ability])}"
        )


def _check_yes(answer: float | NotScored) -> None:
    if isinstance(answer, NotScored) and answer.kind is FailureKind.REJECTED:
        raise ConfigError(f"monitor.yaml: judge.scoring: {answer.reason}")
