"""One OpenAI-compatible endpoint: a body in, its answer out, or a failure that says whether to try again.

All judges of a process that ask one address share one of these: one client, one limiter, one breaker.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx2
import msgspec
from openai import AsyncOpenAI, DefaultAioHttpClient

from monitor.adapters.endpoint_gate import EndpointGate
from monitor.adapters.openai_failures import Refused, Retryable, answer_of, retryable_of
from monitor.judging.breaker import BreakerPolicy
from monitor.judging.judgment import FailureKind
from monitor.judging.limiter import Answer, LimiterPolicy

TOKENS_A_CHARACTER = 0.3
"""What a prompt is reckoned at before the endpoint says it; the difference is settled afterwards."""
REPLY_BYTES_MAX = 4_000_000
"""Of one reply, unpacked; a judgment has a few thousand. Raising it costs memory in each slot of a worker."""
_UNANSWERED = (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError, aiohttp.ClientError)
"""The transport hands some of aiohttp's errors on as they are, a broken status line among them."""


class Endpoint:
    """Where a model answers."""

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        timeout_seconds: float = 15.0,
        limits: LimiterPolicy | None = None,
        breaker: BreakerPolicy | None = None,
    ) -> None:
        """Take the address; nothing is connected before the first call."""
        self.gate = EndpointGate(limits, breaker)
        self._timeout_seconds = timeout_seconds
        self._connect: Callable[[], _Connection] = lambda: _Connection(
            api_key=api_key, base_url=base_url, timeout_seconds=timeout_seconds
        )
        self._connection: _Connection | None = None

    async def post(
        self,
        body: dict[str, Any],
        *,
        tokens: int,
        again: bool = False,
        started: Callable[[float], None] = lambda _: None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Make one call when it is its turn; raises Retryable or Refused, and holds no slot after that.

        `again` goes ahead in line; `started` is told for how long it stood there.
        """
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        ticket = await self.gate.enter(tokens, again=again)
        answer, ok, wait = Answer.UNKNOWN, None, None
        used: int | None = None
        try:
            started(loop.time() - asked_at)
            response = await self._call(body, timeout_seconds or self._timeout_seconds)
            answer, ok = Answer.TAKEN, True
            used = _total(response)
        except Retryable as error:
            answer = Answer.REFUSED if error.kind is FailureKind.RATE_LIMITED else Answer.UNKNOWN
            # A 429 comes from an endpoint that is there.
            ok = error.kind is FailureKind.RATE_LIMITED
            wait = error.wait_seconds
            raise
        except Refused:
            answer, ok = Answer.TAKEN, True
            raise
        finally:
            self.gate.leave(ticket, answer, ok=ok, wait_seconds=wait, tokens=used)
        return response

    async def close(self) -> None:
        """Close the connections; a later call would open new ones."""
        self.gate.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _call(self, body: dict[str, Any], timeout_seconds: float) -> Any:
        if self._connection is None:
            self._connection = self._connect()
        try:
            # The client's own timeout is one a read: a reply that drips would never end.
            async with asyncio.timeout(timeout_seconds):
                answer = answer_of(*await self._connection.post(msgspec.json.encode(body)))
        except TimeoutError as error:
            raise Retryable(FailureKind.TIMEOUT, "the endpoint did not answer in time") from error
        except _UNANSWERED as error:
            raise retryable_of(error) from error
        match answer:
            case {"choices": [{"message": dict()}, *_]}:
                return answer
            case dict():
                raise Retryable(FailureKind.UNAVAILABLE, "the endpoint answered 200 without a choice")
            case _:
                reason = "the endpoint answered 200 with something that is no JSON object"
                raise Retryable(FailureKind.UNAVAILABLE, reason)


class _Connection:
    """The SDK's address, headers and HTTP client, and its requests without the price of building each anew.

    Of the SDK's `create()` a fifth goes into its arguments and more into merging the same address and headers again
    for every call; the HTTP client below it costs a tenth of it (benchmarks/judge_cost.py).
    """

    def __init__(self, *, api_key: str, base_url: str | None, timeout_seconds: float) -> None:
        self._http = DefaultAioHttpClient(timeout=timeout_seconds)
        client = AsyncOpenAI(api_key=api_key, base_url=base_url, http_client=self._http)
        self._url = client.base_url.join("chat/completions")
        headers = client.default_headers | client.auth_headers
        self._headers = httpx2.Headers(
            {name: said for name, said in headers.items() if isinstance(said, str)}
        )

    async def post(self, content: bytes) -> tuple[httpx2.Response, bytes]:
        """Return the answer and its body; raises Retryable for a body that does not end."""
        request = httpx2.Request("POST", self._url, headers=self._headers, content=content)
        response = await self._http.send(request, stream=True)
        try:
            parts, size = [], 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > REPLY_BYTES_MAX:
                    reason = f"the endpoint answered with more than {REPLY_BYTES_MAX // 1_000_000} MB"
                    raise Retryable(FailureKind.UNAVAILABLE, reason)
                parts.append(part)
        finally:
            await response.aclose()
        return response, b"".join(parts)

    async def close(self) -> None:
        await self._http.aclose()


def reckoned(characters: int, answer_tokens: int) -> int:
    """Return about how many tokens a call will take."""
    return int(characters * TOKENS_A_CHARACTER) + answer_tokens


def _total(response: Any) -> int | None:
    match response:
        case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
            return prompt + completion
        case _:
            return None
