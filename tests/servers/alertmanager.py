"""A real Alertmanager, configured from our own routing policy, with an endpoint that notes what it is told."""

import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import yaml

from monitor.alerting.matchers import Matcher
from monitor.alerting.routes import Node, in_words
from monitor.alerting.routing import NOBODY, RoutingPolicy
from tests.servers.ports import free_port

PROGRAM = "prometheus-alertmanager"
STARTS_WITHIN_SECONDS = 20


def why_unavailable() -> str | None:
    """Return why no Alertmanager can run here; None if one can."""
    return (
        None if shutil.which(PROGRAM) else f"no {PROGRAM}; install Debian's package prometheus-alertmanager"
    )


def as_alertmanager(policy: RoutingPolicy, url: str, *, firing_only: Iterable[str] = ()) -> dict[str, Any]:
    """Return Alertmanager's configuration of the same tree; each receiver posts to its own path."""
    silent = set(firing_only)
    hooks = {
        name: [{"url": f"{url}/{name}", "send_resolved": name not in silent}] for name in policy.receivers
    }
    return {
        "route": _route(policy.tree, is_root=True),
        "receivers": [{"name": NOBODY}]
        + [{"name": name, "webhook_configs": hook} for name, hook in hooks.items()],
        "inhibit_rules": [
            {
                "source_matchers": _matchers(rule.source_matchers),
                "target_matchers": _matchers(rule.target_matchers),
                "equal": list(rule.equal),
            }
            for rule in policy.inhibit_rules
        ],
        "time_intervals": [_times(one.model_dump(mode="json")) for one in policy.time_intervals],
    }


class Alertmanager:
    """One Alertmanager on loopback, without a cluster, and what its receivers were told."""

    def __init__(self, folder: Path, policy: RoutingPolicy, *, firing_only: Iterable[str] = ()) -> None:
        self.told: list[tuple[float, str, dict[str, Any]]] = []
        """When (monotonic), which receiver, and the body."""
        self._folder = folder
        self._sink = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        url = f"http://127.0.0.1:{self._sink.server_address[1]}"
        config = as_alertmanager(policy, url, firing_only=firing_only)
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._sink.serve_forever, daemon=True).start()
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    PROGRAM,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._sink.shutdown()
        self._sink.server_close()

    def post(self, labels: Iterable[Mapping[str, str]], *, ends_at: datetime) -> None:
        """Send alerts that fire until a time, or are over if it is past."""
        alerts = [{"labels": dict(one), "endsAt": ends_at.isoformat()} for one in labels]
        self._call("/api/v2/alerts", alerts)

    @property
    def url(self) -> str:
        """Return where it is reached."""
        return f"http://127.0.0.1:{self._port}"

    def active(self) -> list[dict[str, Any]]:
        """Return the alerts that it believes to fire."""
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=5) as reply:  # noqa: S310 - loopback
            alerts: list[dict[str, Any]] = json.load(reply)
        return alerts

    def silence(self, matchers: Iterable[Matcher], *, starts_at: datetime, ends_at: datetime) -> None:
        """Mute what matches."""
        conditions = [
            {
                "name": one.name,
                "value": one.value,
                "isRegex": "~" in one.operator,
                "isEqual": not one.operator.startswith("!"),
            }
            for one in matchers
        ]
        body = {
            "matchers": conditions,
            "startsAt": starts_at.isoformat(),
            "endsAt": ends_at.isoformat(),
            "createdBy": "test",
            "comment": "test",
        }
        self._call("/api/v2/silences", body)

    def _call(self, path: str, body: object) -> None:
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.url}{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 - loopback
            reply.read()

    def _until_ready(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1):  # noqa: S310 - loopback
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError((self._folder / "log").read_text(encoding="utf-8"))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.append((time.monotonic(), self.path.removeprefix("/"), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _route(node: Node, *, is_root: bool = False) -> dict[str, Any]:
    route: dict[str, Any] = {
        "receiver": node.receiver,
        "group_by": list(node.group_by),
        "group_wait": in_words(node.group_wait),
        "group_interval": in_words(node.group_interval),
        "repeat_interval": in_words(node.repeat_interval),
        "routes": [_route(child) for child in node.children],
    }
    if is_root:
        return route
    return route | {
        "matchers": _matchers(node.matchers),
        "continue": node.continues,
        "mute_time_intervals": list(node.mute_times),
        "active_time_intervals": list(node.active_times),
    }


def _matchers(matchers: Iterable[Matcher]) -> list[str]:
    return [str(one) for one in matchers]


def _times(named: dict[str, Any]) -> dict[str, Any]:
    weekdays = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
    intervals = []
    for one in named["time_intervals"]:
        interval: dict[str, Any] = {"location": one["location"]}
        if one["times"]:
            interval["times"] = one["times"]
        if one["weekdays"]:
            interval["weekdays"] = [f"{weekdays[a]}:{weekdays[b]}" for a, b in one["weekdays"]]
        for key in ("days_of_month", "months", "years"):
            if one[key]:
                interval[key] = [f"{a}:{b}" for a, b in one[key]]
        intervals.append(interval)
    return {"name": named["name"], "time_intervals": intervals}
