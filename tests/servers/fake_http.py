"""A server on loopback whose next answers can be set, with what came to it; the fakes of services build on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer

BODY_MAX = 2**24


@dataclass
class FakeHttp:
    """Answers what it was told to answer, then what the service would."""

    path: str = "/"
    forced: list[int] = field(default_factory=list)
    """Statuses of the next answers, instead of the service's own."""
    down: bool = False
    """Answers 503 for as long as it is set."""
    retry_after: str | None = None
    delay_seconds: float = 0.0
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Self]:
        """Serve until the context is left."""
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post(self.path, self._handle)
        async with TestServer(app) as server:
            self.url = str(server.make_url(self.path))
            yield self

    def answer(self, body: bytes, fields: dict[str, str]) -> web.Response:
        """Return the service's own answer."""
        del body, fields
        return web.Response(text="ok")

    async def _handle(self, request: web.Request) -> web.Response:
        body, fields = await request.read(), dict(request.headers)
        self.came.append((fields, body))
        await asyncio.sleep(self.delay_seconds)
        status = 503 if self.down else self.forced.pop(0) if self.forced else None
        if status is None:
            return self.answer(body, fields)
        more = {"Location": "/other"} | ({"Retry-After": self.retry_after} if self.retry_after else {})
        return web.Response(status=status, headers=more)
