"""Slack's incoming webhook as FORMATS.md states it: limits of blocks, one message a second, its words of refusal."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.servers.fake_http import FakeHttp

TOTAL_MAX = 13_200
LIMITS = {"header": 150, "section": 3000, "context": 3000}


@dataclass
class FakeSlack(FakeHttp):
    """One channel. It keeps what it took, and refuses the second message of a second."""

    path: str = "/services/T000/B000/secret"
    messages: list[dict[str, Any]] = field(default_factory=list)
    limited: int = 0
    enforce_rate: bool = True
    _last: float = field(default=float("-inf"), init=False)

    def answer(self, body: bytes, fields: dict[str, str]) -> web.Response:
        """Check a message and take it."""
        del fields
        now = time.monotonic()
        if self.enforce_rate and now - self._last < 1.0:
            self.limited += 1
            return web.Response(status=429, text="rate_limited", headers={"Retry-After": "1"})
        self._last = now
        try:
            message = json.loads(body)
        except ValueError:
            return web.Response(status=400, text="invalid_payload")
        fault = _fault(message)
        if fault:
            return web.Response(status=400, text=fault)
        self.messages.append(message)
        return web.Response(text="ok")


def _fault(message: dict[str, Any]) -> str | None:
    blocks = message.get("blocks", [])
    if not message.get("text") and not blocks:
        return "no_text"
    if len(blocks) > 50:
        return "invalid_blocks"
    if _units(json.dumps(blocks, ensure_ascii=False)) > TOTAL_MAX:
        return "msg_blocks_too_long"
    for block in blocks:
        kind = block.get("type")
        if kind not in LIMITS:
            return "invalid_blocks"
        for told in block.get("elements", [block.get("text")]):
            wanted = "plain_text" if kind == "header" else "mrkdwn"
            if told.get("type") != wanted or not 0 < _units(told["text"]) <= LIMITS[kind]:
                return "invalid_blocks"
    return None


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
