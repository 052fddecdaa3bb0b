"""The webhook's body and signature, and the receivers that a routing may name."""

import hashlib
import hmac
import io
import json
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from rich.console import Console

from agents.receivers import build_receivers
from monitor.adapters.console_receiver import ConsoleReceiver
from monitor.adapters.webhook_receiver import WebhookReceiver
from monitor.alerting.receiver import Delivered
from monitor.alerting.routing import RoutingPolicy
from monitor.policy import ConfigError
from monitor.settings import Settings
from tests.judgments import NOON
from tests.notifications import a_group, an_alert
from tests.servers.fake_http import FakeHttp

SECRET = b"not a real one"


async def sent(*groups: object, secret: bytes | None = SECRET) -> list[tuple[dict[str, str], bytes]]:
    async with FakeHttp().serving() as hook:
        sender = WebhookReceiver("hook", url=hook.url, secret=secret, clock=lambda: NOON)
        for group in groups or (a_group(),):
            assert await sender.deliver(group) == Delivered(receiver="hook")  # type: ignore[arg-type]
        await sender.close()
        return hook.came


async def test_the_body_is_alertmanagers() -> None:
    """Whoever reads Alertmanager's webhook reads ours."""
    group = a_group(an_alert(1), an_alert(2, resolved=True), truncated=4)
    [(_, content)] = await sent(group)

    body = json.loads(content)
    assert {"version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels",
            "commonAnnotations", "externalURL", "notification_reason", "alerts"} <= set(body)  # fmt: skip
    firing, over = body["alerts"]
    assert (body["version"], body["status"], body["truncatedAlerts"]) == ("4", "firing", 4)
    assert (firing["status"], over["status"]) == ("firing", "resolved")
    assert (firing["endsAt"], over["endsAt"]) == ("0001-01-01T00:00:00Z", "2026-03-10T14:00:00Z")
    assert body["groupKey"] == group.group_key
    assert body["commonLabels"]["assistant"] == "bot"
    assert "segment" not in body["commonLabels"]
    assert all(isinstance(value, str) for value in firing["labels"].values())
    assert firing["startsAt"] == "2026-03-10T12:00:00Z"
    assert firing["fingerprint"] == group.alerts[0].alert.fingerprint
    assert body["notification"]["alerts"][0]["evidence"]["cases"]
    assert "monitor explain c-0" in body["text"]


async def test_the_signature_is_of_the_time_and_the_body() -> None:
    """A receiver checks who sent it and that it is not an old one sent again."""
    [(fields, body)] = await sent()

    time, _, digest = fields["X-Monitor-Signature"].partition(",v1=")
    expected = hmac.new(SECRET, time.removeprefix("t=").encode() + b"." + body, hashlib.sha256).hexdigest()
    assert (time, digest) == (f"t={int(NOON.timestamp())}", expected)


async def test_the_same_notification_is_the_same_id_and_body() -> None:
    """F12: the receiver may have it although it answered an error, and tells a repetition by the id."""
    came = await sent(a_group(), a_group(), a_group(version=2))

    assert [fields["Idempotency-Key"] for fields, _ in came] == ["g1-1", "g1-1", "g1-2"]
    assert came[0][1] == came[1][1]


async def test_without_a_secret_nothing_is_signed() -> None:
    """An empty signature would look like one."""
    [(fields, _)] = await sent(secret=None)

    assert "X-Monitor-Signature" not in fields


async def test_the_console_prints_words_as_words() -> None:
    """A user's text in brackets is no markup."""
    paper = io.StringIO()

    text = "[bold]we refund[/bold] anything"
    await ConsoleReceiver("console", Console(file=paper, width=200)).deliver(a_group(an_alert(text=text)))

    assert text in paper.getvalue()


ROUTING = {
    "receivers": {"console": {"type": "console"}, "hook": {"type": "webhook", "url_env": "HOOK_URL"}},
    "routes": {"page": ["console", "hook"], "ticket": ["console"]},
}
RECEIVERS = {
    "console": {"type": "console"},
    "hook": {"type": "webhook", "url": "https://hook.example", "secret_env": "S"},
    "pager": {"type": "pagerduty", "routing_key_env": "S"},
    "chat": {"type": "slack", "url_env": "S", "send_resolved": False},
    "am": {"type": "alertmanager", "urls": ["http://am:9093"], "username_env": "S", "password_env": "S"},
    "am2": {"type": "alertmanager", "urls": ["http://am:9093"], "bearer_env": "S"},
    "mail": {"type": "apprise", "url_env": "S", "format": "html"},
    "bus": {"type": "kafka", "topic": "team-alerts"},
}


async def test_every_receiver_is_built_with_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A type that can be named but not built would be found at the first page."""
    monkeypatch.setenv("S", "json://hook.example")
    policy = RoutingPolicy.model_validate({"receivers": RECEIVERS, "routes": {"page": ["console"]}})

    built = build_receivers(policy, Settings())

    assert {name: receiver.name for name, receiver in built.items()} == {name: name for name in RECEIVERS}
    for receiver in built.values():
        await receiver.close()


@pytest.mark.parametrize("name", [name for name in RECEIVERS if "S" in RECEIVERS[name].values()])
def test_a_secret_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable's name helps, its neighbours' values do not."""
    monkeypatch.delenv("S", raising=False)
    receivers = {"console": {"type": "console"}, name: RECEIVERS[name]}
    policy = RoutingPolicy.model_validate({"receivers": receivers, "routes": {"page": ["console"]}})

    with pytest.raises(ConfigError, match=f"receivers.{name}: the environment has no S"):
        build_receivers(policy, Settings())


@pytest.mark.parametrize(
    "one",
    [
        {"type": "alertmanager", "urls": []},
        {"type": "alertmanager", "urls": ["http://a"], "username_env": "U"},
        {
            "type": "alertmanager",
            "urls": ["http://a"],
            "username_env": "U",
            "password_env": "P",
            "bearer_env": "B",
        },
        {"type": "pagerduty", "routing_key_env": "K", "severities": {"page": "critical"}},
        {"type": "pagerduty", "routing_key_env": "0123456789abcdef0123456789abcdef"},
        {"type": "slack", "url": "https://hooks.slack.com/services/T/B/secret"},
        {"type": "kafka", "topic": "a topic"},
    ],
)
def test_a_receiver_that_cannot_work_is_refused(one: dict[str, object]) -> None:
    """Found at start, not at the first page; and a secret has no place in the file."""
    with pytest.raises(ValidationError):
        RoutingPolicy.model_validate(
            {"receivers": {"console": {"type": "console"}, "it": one}, "routes": {"page": ["console"]}}
        )


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
