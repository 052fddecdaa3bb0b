"""The stub judge in a thread of its own: it counts what was paid for, and can hold answers back or be gone."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.servers.stub_judge import StubJudge

CASE = re.compile(r"<([a-z-]+)>")
"""How a conversation is named in its text, so that the judge's prompt names it too."""
ANSWER_SECONDS = 0.02
STOP_LIMIT_SECONDS = 10.0


class HeldJudge(StubJudge):
    """Answers at once, except for the conversations that are held."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        """Calls by prompt: a prompt is one judgment."""
        self.answered: Counter[str] = Counter()
        self.case_of: dict[str, str] = {}
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._runner: web.AppRunner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port = 0

    def hold(self, *cases: str) -> None:
        """Give no answer about these conversations for now."""
        with self._lock:
            self._held |= set(cases)

    def release(self) -> None:
        """Answer everything."""
        with self._lock:
            self._held.clear()

    def waiting(self) -> int:
        """Count the calls that were made and not answered."""
        with self._lock:
            return sum(self.asked.values()) - sum(self.answered.values())

    def calls(self) -> dict[str, dict[str, int]]:
        """Return by conversation how often each of its judgments was asked for."""
        found: dict[str, dict[str, int]] = {}
        with self._lock:
            for prompt, count in self.asked.items():
                found.setdefault(self.case_of[prompt], {})[prompt] = count
        return found

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        prompt = f"{body['messages'][0]['content']}\n{body['messages'][1]['content']}"
        case = next(iter(CASE.findall(body["messages"][1]["content"])), "")
        with self._lock:
            self.asked[prompt] += 1
            self.case_of[prompt] = case
        await asyncio.sleep(ANSWER_SECONDS)
        while case in self._held:  # noqa: ASYNC110 - it is released from another thread
            await asyncio.sleep(ANSWER_SECONDS)
        answer = await super().handle(request)
        with self._lock:
            self.answered[prompt] += 1
        return answer

    def go_away(self) -> None:
        """Refuse all connections, and break those that are there."""
        self._do(self._close())

    def come_back(self) -> None:
        """Listen again where it listened before."""
        self._do(self._open())

    @contextmanager
    def serving(self) -> Iterator["HeldJudge"]:
        """Serve on loopback, in a thread, so that the test itself may block."""
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            self.come_back()
            yield self
        finally:
            self.release()
            self.go_away()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(STOP_LIMIT_SECONDS)
            self._loop.close()

    def _do(self, work: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(STOP_LIMIT_SECONDS)

    async def _open(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/v1"

    async def _close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
