"""The webhook, against a real server on loopback."""

import asyncio
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import ValidationError
from rich.console import Console

from monitor.adapters.console_receiver import ConsoleReceiver
from monitor.adapters.memory_alerts import MemoryAlertStore, MemoryReceiver
from monitor.adapters.webhook_receiver import WebhookReceiver
from monitor.alerting.delivery import deliver_outbox
from monitor.alerting.receiver import Delivered, Undelivered
from monitor.alerting.routing import RoutingPolicy
from tests.alerts import a_finding, step
from tests.judgments import NOON
from tests.unit.test_evidence import a_notification

SECRET = b"not a real one"


class Hook:
    """A receiver's server: it keeps what came and answers what it was told to answer."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.delay_seconds = 0.0
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.came.append((dict(request.headers), await request.read()))
        await asyncio.sleep(self.delay_seconds)
        return web.Response(
            status=self.answers.pop(0) if self.answers else 200, headers={"Location": "/other"}
        )


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    server = Hook()
    app = web.Application()
    app.router.add_post("/alerts", server.handle)
    async with TestServer(app) as running:
        server.url = str(running.make_url("/alerts"))
        yield server


def receiver(hook: Hook, **more: object) -> WebhookReceiver:
    settings = {"url": hook.url, "secret": SECRET, "attempts": 3, "wait_seconds": 0.001} | more
    return WebhookReceiver("hook", clock=lambda: NOON, **settings)  # type: ignore[arg-type]


async def test_the_body_is_alertmanagers(hook: Hook) -> None:
    """Whoever reads Alertmanager's webhook reads ours."""
    notification = a_notification()
    sender = receiver(hook)

    assert await sender.deliver(notification) == Delivered(receiver="hook")

    body = json.loads(hook.came[0][1])
    assert {"version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels",
            "commonAnnotations", "externalURL", "alerts"} <= set(body)  # fmt: skip
    [alert] = body["alerts"]
    assert (body["version"], body["status"], alert["status"]) == ("4", "firing", "firing")
    assert alert["labels"]["alertname"] == "ConversationQualityGate"
    assert all(isinstance(value, str) for value in alert["labels"].values())
    assert alert["startsAt"] == "2026-03-10T12:00:00Z"
    assert alert["fingerprint"] == notification.alert.fingerprint
    assert "worst" in alert["annotations"]["description"]
    await sender.close()


async def test_the_signature_is_of_the_time_and_the_body(hook: Hook) -> None:
    """A receiver checks who sent it and that it is not an old one sent again."""
    sender = receiver(hook)
    await sender.deliver(a_notification())
    fields, body = hook.came[0]

    time, _, digest = fields["X-Monitor-Signature"].partition(",v1=")
    expected = hmac.new(SECRET, time.removeprefix("t=").encode() + b"." + body, hashlib.sha256).hexdigest()
    assert (time, digest) == (f"t={int(NOON.timestamp())}", expected)
    await sender.close()


async def test_every_attempt_carries_the_same_id_and_body(hook: Hook) -> None:
    """The receiver may have it although it answered an error."""
    hook.answers = [503, 429, 200]
    sender = receiver(hook)

    assert await sender.deliver(a_notification()) == Delivered(receiver="hook")
    assert len({(fields["Idempotency-Key"], body) for fields, body in hook.came}) == 1
    assert len(hook.came) == 3
    await sender.close()


@pytest.mark.parametrize("status", [400, 401, 404, 302])
async def test_a_refusal_is_not_repeated(hook: Hook, status: int) -> None:
    """A wrong address stays wrong; and a redirect is not followed with our secrets."""
    hook.answers = [status] * 9
    sender = receiver(hook)

    assert await sender.deliver(a_notification()) == Undelivered(
        receiver="hook", reason=f"HTTP {status}", retry=False
    )
    assert len(hook.came) == 1
    await sender.close()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_attempts_are_bounded(hook: Hook, status: int) -> None:
    """It stays in the outbox; hammering helps nobody."""
    hook.answers = [status] * 9
    sender = receiver(hook)

    assert await sender.deliver(a_notification()) == Undelivered(
        receiver="hook", reason=f"HTTP {status}", retry=True
    )
    assert len(hook.came) == 3
    await sender.close()


async def test_a_server_that_hangs_or_is_gone_is_a_value(hook: Hook) -> None:
    """No exception reaches the hop, and no address reaches the reason."""
    hook.delay_seconds = 5
    slow = receiver(hook, attempts=1, timeout_seconds=0.1)
    gone = receiver(hook, attempts=2, url="http://127.0.0.1:1/secret-path")

    assert await slow.deliver(a_notification()) == Undelivered(
        receiver="hook", reason="ReadTimeout", retry=True
    )
    assert await gone.deliver(a_notification()) == Undelivered(
        receiver="hook", reason="ConnectError", retry=True
    )
    await slow.close()
    await gone.close()


async def test_without_a_secret_nothing_is_signed(hook: Hook) -> None:
    """An empty signature would look like one."""
    sender = receiver(hook, secret=None)
    await sender.deliver(a_notification())

    assert "X-Monitor-Signature" not in hook.came[0][0]
    await sender.close()


async def test_the_console_prints_words_as_words() -> None:
    """A user's text in brackets is no markup."""
    paper = io.StringIO()

    await ConsoleReceiver("console", Console(file=paper, width=200)).deliver(a_notification())

    assert "[bold]we refund[/bold] anything" in paper.getvalue()


ROUTING = {
    "receivers": {"console": {"type": "console"}, "hook": {"type": "webhook", "url_env": "HOOK_URL"}},
    "routes": {"page": ["console", "hook"], "ticket": ["console"]},
}


async def test_while_one_receiver_is_down_the_others_hear_it_once() -> None:
    """The outbox keeps the rest for the next round."""
    alerts, console, down = MemoryAlertStore(), MemoryReceiver("console"), MemoryReceiver("hook")
    down.answer = Undelivered(receiver="hook", reason="HTTP 503", retry=True)
    receivers = {"console": console, "hook": down}
    routing = RoutingPolicy.model_validate(ROUTING)
    await alerts.commit(step(None, a_finding()))

    await deliver_outbox(alerts, receivers, routing)
    await deliver_outbox(alerts, receivers, routing)
    assert (len(console.told), len(down.told), len(await alerts.outbox(9))) == (1, 2, 1)

    down.answer = Delivered(receiver="hook")
    await deliver_outbox(alerts, receivers, routing)
    assert (len(console.told), len(down.told), len(await alerts.outbox(9))) == (1, 3, 0)


async def test_a_receiver_that_is_down_is_asked_once_a_round() -> None:
    """A hundred waiting notifications times its timeout would hold up the others for an hour."""
    alerts, console, down = MemoryAlertStore(), MemoryReceiver("console"), MemoryReceiver("hook")
    down.answer = Undelivered(receiver="hook", reason="ReadTimeout", retry=True)
    for name in ("a", "b", "c"):
        await alerts.commit(step(None, a_finding(dimension=name)))

    await deliver_outbox(alerts, {"console": console, "hook": down}, RoutingPolicy.model_validate(ROUTING))

    assert (len(console.told), len(down.told), len(await alerts.outbox(9))) == (3, 1, 3)


async def test_what_can_never_be_delivered_leaves_the_outbox() -> None:
    """It is reported as a value, and it does not stand in the way for ever."""
    alerts, refusing = MemoryAlertStore(), MemoryReceiver("console")
    refusing.answer = Undelivered(receiver="console", reason="HTTP 404", retry=False)
    routing = RoutingPolicy.model_validate(ROUTING | {"routes": {"page": ["console"]}})
    await alerts.commit(step(None, a_finding()))

    [said] = await deliver_outbox(alerts, {"console": refusing}, routing)

    assert said == refusing.answer
    assert await alerts.outbox(9) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"routes": {"page": ["pager"]}},
        {"routes": {"ticket": ["console"]}},
        {"receivers": {"console": {"type": "console"}, "hook": {"type": "webhook"}}},
        {"receivers": {"console": {"type": "carrier_pigeon"}}},
        {"routing": {}},
    ],
)
def test_a_route_to_nobody_is_refused(changes: dict[str, object]) -> None:
    """Found at start, not at the first page."""
    with pytest.raises(ValidationError):
        RoutingPolicy.model_validate(ROUTING | changes)


def test_the_shipped_routes_are_valid() -> None:
    """The first run prints to the terminal."""
    text = (Path(__file__).parents[2] / "config" / "routing.yaml").read_text(encoding="utf-8")

    assert RoutingPolicy.model_validate(yaml.safe_load(text)).receivers
