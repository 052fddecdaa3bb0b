"""Numbers in, a page for Prometheus out: on loopback, or elsewhere behind a bearer token."""

import errno
import hmac
import ipaddress
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import make_wsgi_app

from monitor import metrics
from monitor.settings import SettingsError

PORTS_TRIED = 10
"""Processes of one machine that share a setting: each takes the next free port after it."""
SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45)

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class PrometheusMetrics:
    """The port `Metrics` on prometheus-client, with a registry of its own.

    A metric appears with its first value: a figure that a process does not measure is absent, not zero.
    """

    def __init__(self) -> None:
        """Begin without any metric; nothing is served yet."""
        self.registry = CollectorRegistry()
        self._known: dict[str, Any] = {}

    def count(self, name: metrics.Counter, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._of(prometheus_client.Counter, name, labels).inc(amount)

    def time(self, name: metrics.Timing, seconds: float, **labels: str) -> None:
        """Note one duration."""
        self._of(prometheus_client.Histogram, name, labels, buckets=SECONDS).observe(max(0.0, seconds))

    def gauge(self, name: metrics.Gauge, value: float, **labels: str) -> None:
        """Set a figure."""
        self._of(prometheus_client.Gauge, name, labels).set(value)

    def _of(self, kind: Any, name: metrics.Name, labels: dict[str, str], **options: Any) -> Any:
        found = self._known.get(name)
        if found is None:
            meaning = "See monitor/metrics.py for what it warns of."
            found = kind(name, meaning, metrics.LABELS[name], registry=self.registry, **options)
            self._known[name] = found
        return found.labels(**labels) if labels else found


class Exporter:
    """The page, served from a thread that ends with the process."""

    def __init__(self, registry: CollectorRegistry, *, host: str, port: int, token: str | None) -> None:
        """Bind the first free port from `port` on; raises SettingsError where a page would lie open."""
        if not is_loopback(host) and not token:
            raise SettingsError(
                f"MONITOR_METRICS_HOST: {host} is no loopback address; set MONITOR_METRICS_TOKEN, which is then "
                "asked for as a bearer token, or keep 127.0.0.1"
            )
        pages = make_wsgi_app(registry)
        app = guarded(pages, token) if token else pages
        self._server = _bound(host, port, app)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address; a name other than localhost may be anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(app: App, token: str) -> App:
    """Return an app that answers only to `Authorization: Bearer <token>`."""
    wanted = f"Bearer {token}".encode()

    def ask(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        given = str(environ.get("HTTP_AUTHORIZATION", "")).encode()
        if hmac.compare_digest(given, wanted):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Length", "0")])
        return [b""]

    return ask


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    # Two processes must not share a port in silence.
    allow_reuse_port = False


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's own name
        """Write nothing: requests for metrics are no news."""


def _bound(host: str, port: int, app: Any) -> WSGIServer:
    for number in range(port, min(port + PORTS_TRIED, 65_536)):
        try:
            return make_server(host, number, app, server_class=_Server, handler_class=_Silent)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise SettingsError(f"MONITOR_METRICS_HOST: {host}: {error.strerror}") from error
    raise SettingsError(
        f"MONITOR_METRICS_PORT: {port} and the {PORTS_TRIED - 1} ports after it are taken; "
        "choose another, or 0 for none"
    )
