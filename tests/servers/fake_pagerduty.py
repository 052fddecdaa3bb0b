"""PagerDuty's Events API v2 as FORMATS.md states it: what it requires, its limits, its codes, its incidents."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

from tests.servers.fake_http import FakeHttp

ROUTING_KEY = "0123456789abcdef0123456789abcdef"
BYTES_MAX = 512 * 1024
SEVERITIES = {"critical", "error", "warning", "info"}


@dataclass
class Incident:
    """What people see: one entry on their screen."""

    dedup_key: str
    summary: str
    severity: str
    open: bool = True
    triggers: int = 1


@dataclass
class FakePagerDuty(FakeHttp):
    """Incidents by their dedup key; a trigger of an open one is no new one, one after a resolve is."""

    path: str = "/v2/enqueue"
    incidents: list[Incident] = field(default_factory=list)
    dropped_resolves: int = 0

    def answer(self, body: bytes, fields: dict[str, str]) -> web.Response:
        """Check an event and take it."""
        if len(body) > BYTES_MAX:
            return _invalid(413, "event object is larger than 512 KB")
        if "json" not in fields.get("Content-Type", ""):
            return _invalid(400, "Content-Type must be application/json")
        try:
            event = json.loads(body)
        except ValueError:
            return _invalid(400, "JSON cannot be parsed")
        faults = _faults(event)
        if faults:
            return _invalid(400, *faults)
        key = event.get("dedup_key") or f"made-{len(self.came)}"
        self._take(event, key)
        return web.json_response(
            {"status": "success", "message": "Event processed", "dedup_key": key}, status=202
        )

    def of(self, dedup_key: str) -> list[Incident]:
        """Return the incidents of a key, in their order."""
        return [one for one in self.incidents if one.dedup_key == dedup_key]

    def _take(self, event: dict[str, Any], key: str) -> None:
        current = next((one for one in self.of(key) if one.open), None)
        match event["event_action"]:
            case "trigger" if current:
                current.triggers += 1
            case "trigger":
                payload = event["payload"]
                self.incidents.append(Incident(key, payload["summary"], payload["severity"]))
            case "resolve" if current:
                current.open = False
            case "resolve":
                self.dropped_resolves += 1
            case _:
                pass


def _faults(event: dict[str, Any]) -> list[str]:
    found = []
    if len(event.get("routing_key", "")) != 32:
        found.append("'routing_key' must be 32 characters")
    if event.get("event_action") not in {"trigger", "acknowledge", "resolve"}:
        found.append("'event_action' is invalid")
    if len(event.get("dedup_key", "")) > 255:
        found.append("'dedup_key' is longer than 255 characters")
    if event.get("event_action") != "trigger":
        return found if event.get("dedup_key") else [*found, "'dedup_key' is missing"]
    payload = event.get("payload", {})
    if not 0 < len(payload.get("summary", "")) <= 1024:
        found.append("'payload.summary' is missing or longer than 1024 characters")
    if not payload.get("source"):
        found.append("'payload.source' is missing or blank")
    if payload.get("severity") not in SEVERITIES:
        found.append("'payload.severity' is invalid")
    if "timestamp" in payload:
        try:
            datetime.fromisoformat(payload["timestamp"])
        except ValueError:
            found.append("'payload.timestamp' is no ISO 8601")
    found += ["'links.href' is missing" for link in event.get("links", []) if not link.get("href")]
    return found


def _invalid(status: int, *faults: str) -> web.Response:
    return web.json_response(
        {"status": "invalid event", "message": "Event object is invalid", "errors": faults}, status=status
    )
