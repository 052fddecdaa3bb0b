"""An OpenAI-compatible endpoint for tests: its answers and its faults are drawn by hash, so a run is repeatable."""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

FAULTS = (
    "429", "429_date", "500", "hang", "drop", "malformed", "truncated", "refusal", "filtered", "empty",
    "out_of_range", "fenced", "html", "no_choices", "broken_body", "array", "missing",
)  # fmt: skip


ITEM = re.compile(r"ITEM-(\w+)")
"""A prompt with it has a known answer, the same on every dimension."""


class StubJudge:
    """Answers each request with the scores that its schema asks for, or with a fault."""

    def __init__(
        self,
        faults: Mapping[str, float] | None = None,
        *,
        only_first: bool = False,
        seed: int = 0,
        keeps_requests: bool = True,
        latency_seconds: float = 0.0,
    ) -> None:
        self.faults = dict(faults or {})
        self.only_first = only_first
        """A fault comes on the first attempt for a prompt only, so that a retry is answered."""
        self.seed = seed
        self._keeps_requests = keeps_requests
        self._latency_seconds = latency_seconds
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.drawn: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        self.url = ""

    def score(self, prompt: str, name: str) -> int:
        """Return the score that a dimension gets for a prompt."""
        item = ITEM.search(prompt)
        return 1 + (_hash(item[1], "score") if item else _hash(prompt, name)) % 5

    def _fault(self, key: str) -> str | None:
        attempt = self._attempts[key]
        self._attempts[key] += 1
        if self.only_first and attempt:
            return None
        draw = _hash(str(self.seed), key, str(attempt)) / 2**64
        for fault in FAULTS:
            draw -= self.faults.get(fault, 0.0)
            if draw < 0:
                return fault
        return None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self._keeps_requests:
            self.requests.append(body)
            self.headers.append(request.headers)
        key = body["messages"][1]["content"]
        fault = self._fault(key)
        self.drawn[fault or "ok"] += 1
        if self._latency_seconds:
            await asyncio.sleep(self._latency_seconds)
        early = await self._before(fault, request)
        return early if early is not None else web.json_response(self._answer(fault, body, key))

    async def _before(  # noqa: PLR0911 - one return a fault
        self, fault: str | None, request: web.Request
    ) -> web.StreamResponse | None:
        error = {
            "error": {"message": "secret words of the user", "code": "rate_limit_exceeded", "param": None}
        }
        match fault:
            case "429":
                return web.json_response(error, status=429, headers={"Retry-After": "0.2"})
            case "429_date":
                headers = {
                    "Date": "Mon, 05 Jan 2026 10:00:00 GMT",
                    "Retry-After": "Mon, 05 Jan 2026 10:00:01 GMT",
                }
                return web.json_response(error, status=429, headers=headers)
            case "500":
                return web.Response(status=500, text="oops")
            case "hang":
                await asyncio.sleep(30)
            case "drop":
                assert request.transport is not None
                request.transport.close()
            case "html":
                return web.Response(text="<html>gateway</html>", content_type="text/html")
            case "broken_body":
                return web.Response(text='{"choices": [', content_type="application/json")
            case "no_choices":
                return web.json_response({"object": "chat.completion"})
        return None

    def _answer(self, fault: str | None, body: dict[str, Any], key: str) -> dict[str, Any]:
        names = body["response_format"]["json_schema"]["schema"]["properties"]
        scores: dict[str, Any] = {
            name: {"reason": f"seen {name}", "quotes": [], "kind": None, "score": self.score(key, name)}
            for name in names
        }
        if fault == "out_of_range":
            scores["safety"]["score"] = 7
        if fault == "missing":
            del scores["safety"]
        content = json.dumps(scores)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        finish = "stop"
        match fault:
            case "malformed":
                message["content"] = content[:-2]
            case "truncated":
                message["content"], finish = content[: len(content) // 2], "length"
            case "refusal":
                message |= {"content": None, "refusal": "I would rather not"}
            case "filtered":
                message["content"], finish = None, "content_filter"
            case "empty":
                message["content"] = ""
            case "fenced":
                message["content"] = f"```json\n{content}\n```"
            case "array":
                message["content"] = f"[{content}]"
        return {
            "model": "stub-2026-01-05",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 120},
        }


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.blake2b("|".join(parts).encode(), digest_size=8).digest(), "big")


@asynccontextmanager
async def serving(stub: StubJudge) -> AsyncIterator[StubJudge]:
    """Serve a stub on a free port of the loopback."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    stub.url = f"http://{host}:{port}/v1"
    try:
        yield stub
    finally:
        await runner.cleanup()
