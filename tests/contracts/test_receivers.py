"""What every receiver must do, each against a server on loopback that enforces what its service enforces."""

import io
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from rich.console import Console

from monitor.adapters.alertmanager_receiver import AlertmanagerReceiver, basic
from monitor.adapters.apprise_receiver import AppriseReceiver
from monitor.adapters.console_receiver import ConsoleReceiver
from monitor.adapters.http_delivery import retry_after
from monitor.adapters.memory_alerts import MemoryReceiver
from monitor.adapters.pagerduty_receiver import PagerDutyReceiver
from monitor.adapters.slack_receiver import SlackReceiver
from monitor.adapters.webhook_receiver import WebhookReceiver
from monitor.alerting.links import Links
from monitor.alerting.receiver import Delivered, Receiver, Refreshed, Undelivered
from monitor.alerting.receiver_policy import DEFAULT_SEVERITIES
from monitor.detection.finding import Severity
from tests.judgments import NOON
from tests.notifications import HOSTILE, a_group, an_alert
from tests.servers.fake_http import FakeHttp
from tests.servers.fake_pagerduty import ROUTING_KEY, FakePagerDuty
from tests.servers.fake_slack import FakeSlack


def a_webhook(server: FakeHttp, **more: Any) -> Receiver:
    return WebhookReceiver("it", url=server.url, secret=b"s", clock=lambda: NOON, **more)


def a_pagerduty(server: FakeHttp, **more: Any) -> Receiver:
    return PagerDutyReceiver(
        "it", url=server.url, routing_key=ROUTING_KEY, severities=DEFAULT_SEVERITIES, **more
    )


def a_slack(server: FakeHttp, **more: Any) -> Receiver:
    return SlackReceiver("it", url=server.url, interval_seconds=0, **more)


def an_alertmanager(server: FakeHttp, **more: Any) -> Receiver:
    url = server.url.removesuffix("/api/v2/alerts")
    return AlertmanagerReceiver("it", urls=[url], clock=lambda: NOON, **more)


@dataclass
class Case:
    """One receiver with its service."""

    server: FakeHttp
    build: Callable[..., Receiver]


KINDS: dict[str, tuple[Callable[[], FakeHttp], Callable[..., Receiver]]] = {
    "webhook": (lambda: FakeHttp(path="/hook"), a_webhook),
    "pagerduty": (FakePagerDuty, a_pagerduty),
    "slack": (lambda: FakeSlack(enforce_rate=False), a_slack),
    "alertmanager": (lambda: FakeHttp(path="/api/v2/alerts"), an_alertmanager),
}


@pytest.fixture(params=KINDS)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    make, build = KINDS[request.param]
    async with make().serving() as server:
        yield Case(server, build)


class TestHttpReceiver:
    async def test_what_it_takes_is_delivered(self, case: Case) -> None:
        """The service takes a firing and a resolve of every shape, with one call each."""
        receiver = case.build(case.server)

        assert await receiver.deliver(a_group()) == Delivered(receiver="it")
        assert await receiver.deliver(a_group(an_alert(resolved=True), version=2)) == Delivered(receiver="it")
        assert len(case.server.came) == 2
        await receiver.close()

    @pytest.mark.parametrize("text", HOSTILE)
    async def test_no_text_makes_a_service_refuse(self, case: Case, text: str) -> None:
        """An alert whose evidence is refused is an alert that nobody gets."""
        receiver = case.build(case.server)

        for count in (1, 50):
            group = a_group(*(an_alert(n, text=text) for n in range(count)), suppressed=3, truncated=9)
            assert await receiver.deliver(group) == Delivered(receiver="it")
        await receiver.close()

    @pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 410, 413])
    async def test_a_refusal_is_final(self, case: Case, status: int) -> None:
        """A wrong body stays wrong, a wrong address too; and no redirect is followed with our secrets."""
        case.server.forced = [status] * 5
        receiver = case.build(case.server)

        answer = await receiver.deliver(a_group())

        assert isinstance(answer, Undelivered)
        assert not answer.retry
        assert answer.reason.startswith(f"HTTP {status}")
        assert len(case.server.came) == 1
        await receiver.close()

    @pytest.mark.parametrize("status", [429, 500, 502, 503])
    async def test_what_passes_is_worth_another_try(self, case: Case, status: int) -> None:
        """The receiver's own wish for a pause is heard."""
        case.server.forced = [status, status]
        receiver = case.build(case.server)

        first = await receiver.deliver(a_group())
        case.server.retry_after = "30"
        second = await receiver.deliver(a_group())

        assert first == Undelivered(receiver="it", reason=f"HTTP {status}", retry=True)
        assert isinstance(second, Undelivered)
        assert (second.retry, second.retry_after_seconds) == (True, 30)
        assert await receiver.deliver(a_group()) == Delivered(receiver="it")
        await receiver.close()

    async def test_a_server_that_hangs_or_is_gone_is_a_value(self, case: Case) -> None:
        """No exception reaches the hop, and no address reaches the reason."""
        case.server.delay_seconds = 3
        slow = case.build(case.server, timeout_seconds=0.1)
        case.server.url = "http://127.0.0.1:1/secret-path"
        gone = case.build(case.server)

        for receiver, reason in ((slow, "ReadTimeout"), (gone, "ConnectError")):
            assert await receiver.deliver(a_group()) == Undelivered(receiver="it", reason=reason, retry=True)
            await receiver.close()


@pytest.mark.parametrize("kind", ["console", "memory"])
async def test_who_cannot_fail_delivers(kind: str) -> None:
    """The same port, without a network."""
    paper = io.StringIO()
    console = ConsoleReceiver("it", Console(file=paper, width=200))
    receiver: Receiver = MemoryReceiver("it") if kind == "memory" else console

    assert await receiver.deliver(a_group(an_alert(text=HOSTILE[4]))) == Delivered(receiver="it")
    assert receiver.pace.first_seconds > 0
    assert "\x1b" not in paper.getvalue()
    await receiver.close()


class TestPagerDuty:
    async def test_a_group_is_one_incident(self) -> None:
        """F5: one breach, many pages. Repetitions and doubles are the same incident, and it is resolved once."""
        async with FakePagerDuty().serving() as service:
            receiver = a_pagerduty(service)
            for version in (1, 1, 2, 3):
                await receiver.deliver(a_group(version=version))
            await receiver.deliver(a_group(an_alert(resolved=True), version=4))
            await receiver.deliver(a_group(an_alert(resolved=True), version=4))
            await receiver.close()

            [incident] = service.incidents
            assert (incident.open, incident.triggers, incident.dedup_key) == (False, 4, "g1")
            assert service.dropped_resolves == 1

    async def test_the_next_episode_is_a_new_incident(self) -> None:
        """What fires again after its end is news."""
        async with FakePagerDuty().serving() as service:
            receiver = a_pagerduty(service)
            for version, resolved in enumerate((False, True, False)):
                await receiver.deliver(a_group(an_alert(resolved=resolved), version=version))
            await receiver.close()

            assert [one.open for one in service.of("g1")] == [False, True]

    @pytest.mark.parametrize(
        ("severity", "word"),
        [(Severity.PAGE, "critical"), (Severity.TICKET, "warning"), (Severity.INFO, "info")],
    )
    async def test_the_gravest_alert_gives_the_severity(self, severity: Severity, word: str) -> None:
        """A ticket beside a page is still a page."""
        async with FakePagerDuty().serving() as service:
            receiver = a_pagerduty(service)
            await receiver.deliver(
                a_group(an_alert(1, severity=Severity.INFO), an_alert(2, severity=severity))
            )
            await receiver.close()

            assert service.incidents[0].severity == word

    async def test_a_long_key_is_hashed_and_stays_the_same(self) -> None:
        """A key of 256 characters is refused, and a key that changes opens a second incident."""
        async with FakePagerDuty().serving() as service:
            receiver = a_pagerduty(service, links=Links(external_url="https://monitor.example"))
            for version in (1, 2):
                answer = await receiver.deliver(a_group(version=version, group="g" * 300))
                assert answer == Delivered(receiver="it")
            await receiver.close()

            assert len(service.incidents) == 1
            event = json.loads(service.came[0][1])
            assert event["links"] == [
                {"href": "https://monitor.example/docs/runbooks/gate.md", "text": "Runbook"}
            ]

    async def test_its_complaint_is_told(self) -> None:
        """Whoever reads `given up` must see why, without a word of the key."""
        async with FakePagerDuty().serving() as service:
            receiver = PagerDutyReceiver(
                "it", url=service.url, routing_key="short", severities=DEFAULT_SEVERITIES
            )
            answer = await receiver.deliver(a_group())
            await receiver.close()

            assert isinstance(answer, Undelivered)
            assert "'routing_key' must be 32 characters" in answer.reason


class TestSlack:
    async def test_a_burst_is_told_at_one_message_a_second(self) -> None:
        """Slack drops what comes faster, and a dropped alert is a lost one."""
        async with FakeSlack().serving() as service:
            receiver = SlackReceiver("it", url=service.url)
            answers = [await receiver.deliver(a_group(version=n)) for n in range(3)]
            await receiver.close()

            assert answers == [Delivered(receiver="it")] * 3
            assert (len(service.messages), service.limited) == (3, 0)
            assert all(message["text"] for message in service.messages)


class TestAlertmanager:
    async def test_alerts_outlive_three_lost_refreshes(self) -> None:
        """An alert that is not told again is over for Alertmanager."""
        async with FakeHttp(path="/api/v2/alerts").serving() as service:
            receiver = an_alertmanager(service, resend_seconds=60)
            group = a_group(an_alert(1), an_alert(2, resolved=True))
            await receiver.deliver(group)
            assert isinstance(receiver, Refreshed)
            await receiver.refresh(group.alerts[:1], NOON)
            await receiver.close()

            firing, over = json.loads(service.came[0][1])
            assert firing["endsAt"] == "2026-03-10T12:04:00Z"
            assert over["endsAt"] == "2026-03-10T12:00:00Z"
            assert over["startsAt"] <= over["endsAt"]
            assert json.loads(service.came[1][1]) == [firing]
            assert "alertname" in firing["labels"] or "finding" in firing["labels"]
            assert all(value and isinstance(value, str) for value in firing["labels"].values())

    async def test_a_label_that_changes_is_not_told(self) -> None:
        """Labels are the identity there, and a judge's failures may spread today and lie on one prompt tomorrow."""
        async with FakeHttp(path="/api/v2/alerts").serving() as service:
            receiver = an_alertmanager(service, resend_seconds=60)
            (one,) = a_group(an_alert(1)).alerts
            labels = [{**one.labels, **more} for more in ({}, {"failures": "spread"})]
            for each in labels:
                await receiver.refresh([one.model_copy(update={"labels": each})], NOON)
            await receiver.close()

            before, after = (json.loads(body) for _, body in service.came)
            assert before == after

    async def test_one_member_of_a_cluster_is_enough(self) -> None:
        """They gossip; but each of them is told."""
        async with (
            FakeHttp(path="/api/v2/alerts").serving() as one,
            FakeHttp(path="/api/v2/alerts").serving() as other,
        ):
            one.down = True
            urls = [server.url.removesuffix("/api/v2/alerts") + "/" for server in (one, other)]
            receiver = AlertmanagerReceiver("it", urls=urls, headers=basic("me", "pw"), clock=lambda: NOON)

            assert await receiver.deliver(a_group()) == Delivered(receiver="it")
            other.down = True
            assert await receiver.deliver(a_group()) == Undelivered(
                receiver="it", reason="HTTP 503", retry=True
            )
            assert len(one.came) == len(other.came) == 2
            assert one.came[0][0]["Authorization"] == "Basic bWU6cHc="
            await receiver.close()


class TestApprise:
    @pytest.mark.parametrize("form", ["text", "markdown", "html"])
    async def test_it_speaks_to_a_service(self, form: Any) -> None:
        """Its JSON service stands for a hundred others."""
        async with FakeHttp(path="/notify").serving() as service:
            url = service.url.replace("http://", "json://")
            receiver = AppriseReceiver("it", url=url, format=form)

            assert await receiver.deliver(a_group()) == Delivered(receiver="it")
            service.down = True
            answer = await receiver.deliver(a_group())
            assert isinstance(answer, Undelivered)
            assert answer.retry
            told = json.loads(service.came[0][1])
            assert "release 42" in told["message"]
            assert told["title"].startswith("[FIRING] [page]")
            await receiver.close()

    def test_an_unknown_service_is_refused_at_the_start(self) -> None:
        """And the URL, which is a secret, is not repeated."""
        with pytest.raises(ValueError, match=r"^apprise knows no service for this URL$"):
            AppriseReceiver("it", url="carrier-pigeon://token@loft")


def test_a_pause_may_be_seconds_or_a_date() -> None:
    """Both forms are allowed, and rubbish is no pause."""
    now = datetime(2026, 3, 10, 12, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)

    assert [retry_after(field, now) for field in ("5", later, "soon", None)] == [5, 90, None, None]
