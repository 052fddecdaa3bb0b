"""An OpenAI-compatible endpoint for tests: its answers and its faults are drawn by hash, so a run is repeatable."""

import asyncio
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

ERRORS: dict[str, tuple[int, dict[str, str]]] = {
    "401": (401, {}),
    "404": (404, {}),
    "429": (429, {"Retry-After": "0.2"}),
    "429_bare": (429, {}),
    "429_date": (
        429,
        {"Date": "Mon, 05 Jan 2026 10:00:00 GMT", "Retry-After": "Mon, 05 Jan 2026 10:00:01 GMT"},
    ),
    "500": (500, {}),
}
"""Faults that are a status with its headers."""
FAULTS = (
    *ERRORS, "hang", "drip", "drop", "malformed", "truncated", "refusal", "filtered", "empty", "out_of_range",
    "fenced", "html", "no_choices", "broken_body", "array", "missing",
)  # fmt: skip
ITEM = re.compile(r"ITEM-(\w+)")
"""A prompt with it has a known answer, the same on every dimension."""
ABILITIES = ("json_schema", "json_object", "tool", "text", "logprobs")
_DIMENSION = re.compile(r"^([a-z][a-z0-9_]*): ", re.MULTILINE)
"""How the rules name a dimension, for endpoints that are given no schema."""


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
        able: Collection[str] = ABILITIES,
        ignores: bool = False,
        yes: Callable[[str], float] = lambda prompt: _hash(prompt, "yes") / 2**64,
    ) -> None:
        self.faults = dict(faults or {})
        self.only_first = only_first
        """A fault comes on the first attempt for a prompt only, so that a retry is answered."""
        self.seed = seed
        self.able = able
        """A form of reply that is not among these is refused with a 400 ..."""
        self.ignores = ignores
        """... or passed over in silence: the answer is then in plain words."""
        self.yes = yes
        """How probable Yes is as the first word."""
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
        if early is None and wanted(body) not in self.able and not self.ignores:
            error = {
                "message": "secret words of the user",
                "code": "unsupported_value",
                "param": wanted(body),
            }
            early = web.json_response({"error": error}, status=400)
        return early if early is not None else web.json_response(self._answer(fault, body, key))

    async def _before(self, fault: str | None, request: web.Request) -> web.StreamResponse | None:
        match fault:
            case str() if fault in ERRORS:
                status, headers = ERRORS[fault]
                error = {"message": "secret words of the user", "code": "an_error", "param": None}
                return web.json_response({"error": error}, status=status, headers=headers)
            case "drip":
                return await _dripping(request)
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

    def written(self, body: dict[str, Any], key: str) -> dict[str, Any]:
        """Return the scores that are asked for, by the schema, or by the rules where there is none."""
        schema = schema_of(body)
        names = schema["properties"] if schema else _DIMENSION.findall(body["messages"][0]["content"])
        if "ready" in names:
            return {"ready": True}
        return {
            name: {"reason": f"seen {name}", "quotes": [], "kind": None, "score": self.score(key, name)}
            for name in names
        }

    def _answer(self, fault: str | None, body: dict[str, Any], key: str) -> dict[str, Any]:
        scores = self.written(body, key)
        if fault in {"out_of_range", "missing"}:
            _spoil(scores, fault)
        able = wanted(body) in self.able
        content = self.worded(json.dumps(scores), key) if able else "The answer looks fine to me."
        choice: dict[str, Any] = {
            "index": 0,
            "message": _message(body, content, able=able),
            "finish_reason": "stop",
        }
        if body.get("logprobs") and able:
            choice["logprobs"] = _logprobs(self.yes(body["messages"][-1]["content"]))
        _spoil_choice(choice, fault, content)
        return {
            "model": "stub-2026-01-05",
            "choices": [choice],
            "usage": {"prompt_tokens": 900, "completion_tokens": 120},
        }

    def worded(self, content: str, key: str) -> str:
        """Return what the model writes; a stub that is talked into more overrides it."""
        del key
        return content


async def _dripping(request: web.Request) -> web.StreamResponse:
    """Answer a byte at a time: each read succeeds, and the whole would take minutes."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionResetError):  # whoever asked has given up
        for _ in range(600):
            await response.write(b" ")
            await asyncio.sleep(0.2)
    return response


def wanted(body: dict[str, Any]) -> str:
    """Return which form of reply a request asks for."""
    if body.get("logprobs"):
        return "logprobs"
    if body.get("tools"):
        return "tool"
    return str((body.get("response_format") or {}).get("type", "text"))


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a request, None where it gives none."""
    match body:
        case {"response_format": {"json_schema": {"schema": dict(schema)}}}:
            return schema
        case {"tools": [{"function": {"parameters": dict(schema)}}]}:
            return schema
        case _:
            return None


def _message(body: dict[str, Any], content: str, *, able: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if body.get("tools") and able:
        function = {"name": body["tools"][0]["function"]["name"], "arguments": content}
        message |= {"content": None, "tool_calls": [{"id": "t1", "type": "function", "function": function}]}
    return message


def _spoil(scores: dict[str, Any], fault: str) -> None:
    name = "safety" if "safety" in scores else next(iter(scores))
    if fault == "missing":
        del scores[name]
    else:
        scores[name]["score"] = 7


def _spoil_choice(choice: dict[str, Any], fault: str | None, content: str) -> None:
    message = choice["message"]
    match fault:
        case "malformed":
            message["content"] = content[:-2]
        case "truncated":
            message["content"], choice["finish_reason"] = content[: len(content) // 2], "length"
        case "refusal":
            message |= {"content": None, "refusal": "I would rather not"}
        case "filtered":
            message["content"], choice["finish_reason"] = None, "content_filter"
        case "empty":
            message["content"] = ""
        case "fenced":
            message["content"] = f"```json\n{content}\n```"
        case "array":
            message["content"] = f"[{content}]"


def _logprobs(yes: float) -> dict[str, Any]:
    top = [
        {"token": token, "logprob": math.log(max(share, 1e-9)), "bytes": None}
        for token, share in ((" Yes", 0.9 * yes), ("No", 0.9 * (1 - yes)), ("Maybe", 0.1))
    ]
    return {"content": [top[0] | {"top_logprobs": top}]}


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
