"""A judge behind an OpenAI-compatible endpoint. Expected failures are values; keys and texts are never logged."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState
from tenacity.wait import wait_base, wait_random_exponential

from monitor.adapters.openai_call import Call
from monitor.adapters.openai_endpoint import Endpoint, reckoned
from monitor.adapters.openai_failures import Refused, Retryable
from monitor.adapters.openai_reply import TOP_LOGPROBS, asked_for, words_of, yes_of
from monitor.judging.exchange import exchanges
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import DimensionScore, FailureKind, JudgeIdentity, JudgeRequest, Usage
from monitor.judging.policy import Ability, Presentation, Price, Scoring
from monitor.judging.probability import LEVELS, scored
from monitor.judging.prompt import (
    Prompt,
    PromptLimits,
    ask_again,
    build_prompt,
    build_questions,
    template_hash,
)
from monitor.judging.references import Document, ReferenceSource
from monitor.judging.reply import read_reply
from monitor.judging.rubric import Dimension, Rubric

BACKEND = "openai"
REASKS_MAX = 4
"""How often an unreadable reply is asked for again. At 5 % malformed replies one judgment in three million is lost;
one less would lose one in 160,000, and a judge that cannot write the form at all costs five calls a judgment."""
_R = TypeVar("_R")
_WAIT_FIRST_SECONDS, _WAIT_MAX_SECONDS = 0.25, 20.0
"""Between two attempts at most, doubling, where the endpoint names no time of its own."""


class OpenAIJudge:
    """Score with a model, in one call or several, retried within one deadline."""

    def __init__(
        self,
        rubric: Rubric,
        references: ReferenceSource,
        *,
        model: str,
        api_key: str = "",
        base_url: str | None = None,
        endpoint: Endpoint | None = None,
        stage: str = "first",
        timeout_seconds: float = 15.0,
        deadline_seconds: float = 45.0,
        max_attempts: int = 6,
        temperature: float | None = 0.0,
        max_tokens: int = 1500,
        max_tokens_field: str = "max_tokens",
        ability: Ability = Ability.JSON_SCHEMA,
        presentation: Presentation = Presentation.ALL,
        scoring: Scoring = Scoring.WRITTEN,
        threshold: float = 0.5,
        thresholds: Mapping[str, float] | None = None,
        price: Price | None = None,
        limits: PromptLimits | None = None,
    ) -> None:
        """Take the endpoint, shared or by its address, and the limits; nothing is connected before the first call."""
        self._rubric = rubric
        self._references = references
        self._limits = limits or PromptLimits()
        self._deadline_seconds = deadline_seconds
        # A hanging attempt must leave time for two others.
        self._timeout_seconds = min(timeout_seconds, deadline_seconds / 3)
        self._max_attempts = max_attempts
        self._max_tokens = max_tokens
        self._max_tokens_field = max_tokens_field
        self._ability = ability
        self._presentation = presentation
        self._scoring = scoring
        self._threshold = threshold
        self._thresholds = dict(thresholds or {})
        self._price = price
        self._forms: dict[tuple[str, ...], dict[str, Any]] = {}
        self._body: dict[str, Any] = {"model": model, max_tokens_field: max_tokens}
        if temperature is not None:
            self._body["temperature"] = temperature
        self.endpoint = endpoint or Endpoint(
            api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds
        )
        # Everything that changes what the model is asked, or how its answer becomes a score, is in the version;
        # what only bounds the wait is not.
        asked: tuple[Any, ...] = (
            self._body,
            ability,
            self._limits.model_dump(),
            presentation,
            rubric.version,
        )
        if scoring is Scoring.PROBABILITY:
            asked = (*asked, scoring, threshold, sorted(self._thresholds.items()))
        parts = (stage, BACKEND, model, template_hash(), json.dumps(asked, sort_keys=True))
        version = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=6).hexdigest()
        self._identity = JudgeIdentity(stage=stage, backend=BACKEND, version=version, model_asked=model)

    @property
    def identity(self) -> JudgeIdentity:
        """Return who judges, before any call."""
        return self._identity

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Score one target on all its dimensions; without any answer in it the model is not asked."""
        dimensions = self._rubric.for_target(request.target.kind)
        if not _has_answer(request):
            return Scored(
                scores=tuple(
                    DimensionScore(dimension=dimension.name, score=None, reason="no answer to judge")
                    for dimension in dimensions
                ),
                usage=Usage(attempts=0),
            )
        call = Call(asyncio.get_running_loop().time, deadline_seconds=self._deadline_seconds)
        try:
            async with asyncio.timeout(None) as call.clock:
                documents = await self._documents(request)
                reply = await self._asked(request, dimensions, documents, call)
        except TimeoutError:
            reason = f"no answer within {self._deadline_seconds:g} s and {call.attempts} attempt(s)"
            reply = NotScored(kind=FailureKind.TIMEOUT, reason=reason)
        how = "probability" if self._scoring is Scoring.PROBABILITY else self._presentation
        return call.closed(reply, request, presentation=how, price=self._price)

    async def close(self) -> None:
        """Close the connections; a later judgment would open new ones."""
        await self.endpoint.close()

    async def _documents(self, request: JudgeRequest) -> tuple[Document, ...]:
        turns = [request.turn] if request.turn else request.conversation.turns
        wanted = {reference.id: reference for turn in turns for reference in turn.references}
        return await self._references.find(tuple(wanted.values())) if wanted else ()

    async def _asked(
        self,
        request: JudgeRequest,
        dimensions: tuple[Dimension, ...],
        documents: tuple[Document, ...],
        call: Call,
    ) -> JudgeReply:
        if self._scoring is Scoring.PROBABILITY:
            return await self._probable(request, dimensions, documents, call)
        groups = (
            (dimensions,)
            if self._presentation is Presentation.ALL
            else tuple((dimension,) for dimension in dimensions)
        )
        prompts = [build_prompt(request, group, documents, self._limits) for group in groups]
        call.shown(prompts)
        replies = await _all(
            [self._written(prompt, group, call) for prompt, group in zip(prompts, groups, strict=True)]
        )
        failed = next((reply for reply in replies if isinstance(reply, NotScored)), None)
        if failed is not None:
            return failed
        return Scored(
            scores=tuple(score for reply in replies if isinstance(reply, Scored) for score in reply.scores)
        )

    async def _written(self, prompt: Prompt, dimensions: tuple[Dimension, ...], call: Call) -> JudgeReply:
        asked = prompt
        reasks = 0
        names = tuple(dimension.name for dimension in dimensions)
        form = self._forms.get(names)
        if form is None:
            form = self._forms[names] = asked_for(dimensions, self._ability)

        async def attempt() -> JudgeReply:
            nonlocal asked, reasks
            response = await self._post(asked, self._body | form, self._max_tokens, call)
            words = words_of(response, self._ability)
            call.answered(prompt, response, words if isinstance(words, str) else "")
            reply = read_reply(words, dimensions, sources=asked.sources) if isinstance(words, str) else words
            if isinstance(reply, NotScored) and reply.kind is FailureKind.UNREADABLE and reasks < REASKS_MAX:
                reasks += 1
                asked = ask_again(prompt, reply.reason)
                raise Retryable(reply.kind, reply.reason, wait_seconds=0.0)
            return reply

        return await self._retried(attempt, call)

    async def _probable(
        self,
        request: JudgeRequest,
        dimensions: tuple[Dimension, ...],
        documents: tuple[Document, ...],
        call: Call,
    ) -> JudgeReply:
        prompts = build_questions(request, dimensions, documents, self._limits)
        call.shown(list(prompts.values()))
        answers = await _all([self._yes(prompt, call) for prompt in prompts.values()])
        found: dict[tuple[str, int], float] = {}
        for key, answer in zip(prompts, answers, strict=True):
            if isinstance(answer, NotScored):
                return answer
            found[key] = answer
        return Scored(
            scores=tuple(
                scored(
                    dimension.name,
                    {level: found[dimension.name, level] for level in LEVELS},
                    threshold=self._thresholds.get(dimension.name, self._threshold),
                )
                for dimension in dimensions
            )
        )

    async def _yes(self, prompt: Prompt, call: Call) -> float | NotScored:
        one_word = {self._max_tokens_field: 1, "logprobs": True, "top_logprobs": TOP_LOGPROBS}

        async def attempt() -> float | NotScored:
            response = await self._post(prompt, self._body | one_word, 1, call)
            answer = yes_of(response)
            call.answered(prompt, response, "" if isinstance(answer, NotScored) else f"{answer:.4f}")
            return answer

        return await self._retried(attempt, call)

    async def _post(self, prompt: Prompt, body: dict[str, Any], answer_tokens: int, call: Call) -> Any:
        return await self.endpoint.post(
            body | {"messages": prompt.messages},
            tokens=reckoned(prompt.characters, answer_tokens),
            again=call.attempts > 0,
            started=call.attempt,
            timeout_seconds=self._timeout_seconds,
        )

    async def _retried(self, attempt: Callable[[], Awaitable[_R]], call: Call) -> _R | NotScored:
        # Nearly all are answered at once, and setting up the retries costs a tenth of a judgment.
        try:
            return await attempt()
        except Refused as error:
            return error.failure
        except Retryable as error:
            failed: list[Retryable] = [error]

        async def again() -> _R:
            if failed:
                raise failed.pop()
            return await attempt()

        retrying = AsyncRetrying(
            stop=lambda state: state.attempt_number >= self._max_attempts or call.would_be_late(state),
            wait=_WaitAsTold(),
            retry=lambda state: isinstance(_error(state), Retryable),
            sleep=call.sleep,
            reraise=True,
        )
        try:
            return await retrying(again)
        except Retryable as error:
            return NotScored(kind=error.kind, reason=error.reason)
        except Refused as error:
            return error.failure


class _WaitAsTold(wait_base):
    """As long as the endpoint says; else with jitter, so that workers do not come back all at once."""

    def __init__(self) -> None:
        self._own = wait_random_exponential(multiplier=_WAIT_FIRST_SECONDS, max=_WAIT_MAX_SECONDS)

    def __call__(self, retry_state: RetryCallState) -> float:
        own = self._own(retry_state)
        error = _error(retry_state)
        if isinstance(error, Retryable) and error.wait_seconds is not None:
            # A little later than told, by a part of the own wait: everyone was told the same.
            return error.wait_seconds + min(own, error.wait_seconds) / 4
        return own


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


async def _all(calls: list[Awaitable[Any]]) -> list[Any]:
    """Wait for all, side by side; one that raises ends the others."""
    if len(calls) == 1:
        return [await calls[0]]

    async def one(call: Awaitable[Any]) -> Any:
        return await call

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    return [task.result() for task in tasks]


def _has_answer(request: JudgeRequest) -> bool:
    wanted = request.target.turn_event_id
    return any(
        exchange.answer.strip()
        for exchange in exchanges(request.conversation)
        if wanted is None or exchange.turn.event_id == wanted
    )
