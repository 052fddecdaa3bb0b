"""A judge behind an OpenAI-compatible endpoint. Expected failures are values; keys and texts are never logged."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any, Literal

from openai import APIStatusError, AsyncOpenAI, DefaultAioHttpClient
from tenacity import AsyncRetrying, RetryCallState, stop_after_attempt, stop_any, stop_before_delay
from tenacity.wait import wait_base, wait_random_exponential

from monitor.adapters.openai_failures import Retryable, failure_of, retryable_of
from monitor.judging.exchange import exchanges
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import DimensionScore, FailureKind, JudgeIdentity, JudgeRequest, Usage
from monitor.judging.prompt import PRESENTATION, Prompt, PromptLimits, ask_again, build_prompt, template_hash
from monitor.judging.references import Document, ReferenceSource
from monitor.judging.reply import read_reply, reply_schema
from monitor.judging.rubric import Dimension, Rubric

BACKEND = "openai"
ResponseFormat = Literal["json_schema", "json_object", "none"]
"""What the endpoint is able to; it is said, never guessed from a model's name."""
REASKS_MAX = 2
"""How often an unreadable reply is asked for again. One more would cost a call with each judge that cannot do it,
one less would lose one judgment in 400 at 5 % malformed replies."""
_WAIT_MAX_SECONDS = 20.0
"""Between two attempts, where the endpoint names no time of its own."""


class OpenAIJudge:
    """Score with a model; one call for all dimensions, retried within a deadline."""

    def __init__(
        self,
        rubric: Rubric,
        references: ReferenceSource,
        *,
        model: str,
        api_key: str,
        base_url: str | None = None,
        stage: str = "first",
        timeout_seconds: float = 15.0,
        deadline_seconds: float = 45.0,
        max_attempts: int = 4,
        temperature: float | None = 0.0,
        max_tokens: int = 1500,
        max_tokens_field: str = "max_tokens",
        response_format: ResponseFormat = "json_schema",
        limits: PromptLimits | None = None,
    ) -> None:
        """Take the endpoint and its limits; nothing is connected before the first judgment."""
        self._rubric = rubric
        self._references = references
        self._limits = limits or PromptLimits()
        self._deadline_seconds = deadline_seconds
        self._max_attempts = max_attempts
        self._response_format = response_format
        self._body: dict[str, Any] = {"model": model, max_tokens_field: max_tokens}
        if temperature is not None:
            self._body["temperature"] = temperature
        self._connect: Callable[[], AsyncOpenAI] = lambda: AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            timeout=timeout_seconds,
            max_retries=0,  # ours honour the deadline and count the attempts
            http_client=DefaultAioHttpClient(timeout=timeout_seconds),
        )
        self._client: AsyncOpenAI | None = None
        # Everything that changes what the model is asked is in the version; what only bounds the wait is not.
        asked = (self._body, response_format, self._limits.model_dump(), PRESENTATION, rubric.version)
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
        call = _Call(asyncio.get_running_loop().time)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                documents = await self._documents(request)
                prompt = build_prompt(request, dimensions, documents, self._limits)
                reply = await self._attempts(prompt, dimensions, call)
        except TimeoutError:
            reason = f"no answer within {self._deadline_seconds:g} s and {call.attempts} attempt(s)"
            reply = NotScored(kind=FailureKind.TIMEOUT, reason=reason)
        return call.with_usage(reply)

    async def close(self) -> None:
        """Close the connections; a later judgment would open new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _documents(self, request: JudgeRequest) -> tuple[Document, ...]:
        turns = [request.turn] if request.turn else request.conversation.turns
        wanted = {reference.id: reference for turn in turns for reference in turn.references}
        return await self._references.find(tuple(wanted.values())) if wanted else ()

    async def _attempts(self, prompt: Prompt, dimensions: tuple[Dimension, ...], call: "_Call") -> JudgeReply:
        retrying = AsyncRetrying(
            stop=stop_any(stop_after_attempt(self._max_attempts), stop_before_delay(self._deadline_seconds)),
            wait=_WaitAsTold(),
            retry=lambda state: isinstance(_error(state), Retryable),
            reraise=True,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    return await self._attempt(prompt, dimensions, call)
        except Retryable as error:
            return NotScored(kind=error.kind, reason=error.reason)
        raise AssertionError("tenacity ends with a result or an error")

    async def _attempt(self, prompt: Prompt, dimensions: tuple[Dimension, ...], call: "_Call") -> JudgeReply:
        call.attempts += 1
        asked = ask_again(prompt, call.unreadable) if call.unreadable else prompt
        body = self._body | {"messages": asked.messages} | self._format(dimensions)
        try:
            # cast_to=object: the SDK's errors and connections without the price of its models (PEERS.md).
            response = await self._open().post("/chat/completions", cast_to=object, body=body)
        except APIStatusError as error:
            retryable = retryable_of(error)
            if retryable is None:
                return failure_of(error)
            raise retryable from error
        except Exception as error:
            retryable = retryable_of(error)
            if retryable is None:
                raise
            raise retryable from error
        reply = _read(response, dimensions, asked.sources, call)
        if isinstance(reply, NotScored) and reply.kind is FailureKind.UNREADABLE and call.reasks < REASKS_MAX:
            call.reasks += 1
            call.unreadable = reply.reason
            raise Retryable(reply.kind, reply.reason, wait_seconds=0.0)
        return reply

    def _format(self, dimensions: tuple[Dimension, ...]) -> dict[str, Any]:
        match self._response_format:
            case "json_schema":
                schema = {"name": "judgment", "strict": True, "schema": reply_schema(dimensions)}
                return {"response_format": {"type": "json_schema", "json_schema": schema}}
            case "json_object":
                return {"response_format": {"type": "json_object"}}
            case "none":
                return {}

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            self._client = self._connect()
        return self._client


class _Call:
    """What one judgment has cost so far, over all its attempts."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started = now()
        self.attempts = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.model_answered: str | None = None
        self.reasks = 0
        self.unreadable = ""
        """Why the last reply that could not be read could not."""

    def count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.prompt_tokens += _whole(usage.get("prompt_tokens"))
            self.completion_tokens += _whole(usage.get("completion_tokens"))

    def with_usage(self, reply: JudgeReply) -> JudgeReply:
        usage = Usage(
            latency_seconds=self._now() - self._started,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            attempts=self.attempts,
        )
        match reply:
            case Scored():
                return Scored(scores=reply.scores, model_answered=self.model_answered, usage=usage)
            case NotScored():
                return NotScored(kind=reply.kind, reason=reply.reason, usage=usage)


class _WaitAsTold(wait_base):
    """As long as the endpoint says; else with jitter, so that workers do not come back all at once."""

    def __init__(self) -> None:
        self._own = wait_random_exponential(multiplier=0.5, max=_WAIT_MAX_SECONDS)

    def __call__(self, retry_state: RetryCallState) -> float:
        own = self._own(retry_state)
        error = _error(retry_state)
        if isinstance(error, Retryable) and error.wait_seconds is not None:
            # A little later than told, by a part of the own wait: everyone was told the same.
            return error.wait_seconds + min(own, error.wait_seconds) / 4
        return own


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _read(
    response: Any, dimensions: tuple[Dimension, ...], sources: dict[str, str], call: _Call
) -> JudgeReply:
    """Read the endpoint's envelope, of which nothing is certain; then the model's words in it."""
    if not isinstance(response, dict):
        raise Retryable(
            FailureKind.UNAVAILABLE, "the endpoint answered 200 with something that is no JSON object"
        )
    call.count(response.get("usage"))
    model = response.get("model")
    call.model_answered = model if isinstance(model, str) else None
    match response:
        case {"choices": [{"message": dict(message), **choice}, *_]}:
            return _read_choice(message, choice.get("finish_reason"), dimensions, sources)
        case _:
            raise Retryable(FailureKind.UNAVAILABLE, "the endpoint answered 200 without a choice")


def _read_choice(
    message: dict[str, Any], finish: Any, dimensions: tuple[Dimension, ...], sources: dict[str, str]
) -> JudgeReply:
    if finish == "length":
        return NotScored(
            kind=FailureKind.TRUNCATED,
            reason="the reply was cut at judge.max_tokens; raise it, or judge with a terser model",
        )
    if finish == "content_filter":
        return NotScored(
            kind=FailureKind.CONTENT_FILTER, reason="the endpoint's content filter held the reply back"
        )
    if message.get("refusal"):
        return NotScored(kind=FailureKind.REFUSED, reason="the model refused to judge")
    content = message.get("content")
    if not isinstance(content, str):
        return NotScored(kind=FailureKind.UNREADABLE, reason="the reply has no text")
    return read_reply(content, dimensions, sources=sources)


def _has_answer(request: JudgeRequest) -> bool:
    wanted = request.target.turn_event_id
    return any(
        exchange.answer.strip()
        for exchange in exchanges(request.conversation)
        if wanted is None or exchange.turn.event_id == wanted
    )


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
