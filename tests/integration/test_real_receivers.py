"""The hop NOTIFY with a real Alertmanager and a real Kafka at its end: what a fake would have to be believed."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.adapters.alertmanager_receiver import AlertmanagerReceiver
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.adapters.kafka_receiver import KafkaReceiver
from monitor.adapters.memory import MemoryPublisher
from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_groups import MemoryGroupStore
from monitor.alerting.alert import Alert
from monitor.alerting.receiver import Delivered, Undelivered
from monitor.detection.finding import Outcome
from monitor.hops.notify import Notify
from monitor.settings import Settings
from tests.alerts import a_finding, step
from tests.groups import routing
from tests.notifications import a_group, an_alert
from tests.servers.alertmanager import Alertmanager
from tests.servers.apache_kafka import ApacheKafka

RESEND_SECONDS = 0.5
"""Alertmanager's alerts live for four of them here, and are told to the whole second."""


def wall() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - Alertmanager runs in real time


async def until(condition: Callable[[], object], *, limit: float = 15.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.05)


@pytest.mark.usefixtures("alertmanager_program")
async def test_alertmanager_believes_an_alert_as_long_as_it_is_told_again(tmp_path: Path) -> None:
    """It fires beyond its first end since it is re-sent, ends when it is over, and ends when nobody speaks any more."""
    alerts = MemoryAlertStore()
    theirs = routing(
        'route: {receiver: a, group_by: ["..."], group_wait: 100ms, group_interval: 300ms, repeat_interval: 4h}'
    )
    ours = routing('route: {receiver: d, group_by: ["..."], group_wait: 0s, group_interval: 100ms}')
    with Alertmanager(tmp_path, theirs) as alertmanager:
        receiver = AlertmanagerReceiver("d", urls=[alertmanager.url], resend_seconds=RESEND_SECONDS)
        notify = Notify(
            alerts=alerts,
            groups=MemoryGroupStore(),
            receivers={"d": receiver},
            routing=ours,
            publisher=MemoryPublisher(),
            prefix="",
            now=wall,
        )

        async def change(alert: Alert | None, outcome: Outcome, dimension: str) -> Alert:
            transition = step(alert, a_finding(outcome, dimension=dimension), now=wall())
            assert await alerts.commit(transition)
            return transition.alert

        def told(dimension: str) -> list[str]:
            return [
                body["status"]
                for _, _, body in alertmanager.told
                if body["commonLabels"]["dimension"] == dimension
            ]

        kept = await change(None, Outcome.FAIL, "kept")
        await change(None, Outcome.FAIL, "left")
        await notify()
        assert {one["labels"]["dimension"] for one in alertmanager.active()} == {"kept", "left"}
        first_end = max(datetime.fromisoformat(one["endsAt"]) for one in alertmanager.active())
        assert first_end <= wall() + timedelta(seconds=4 * RESEND_SECONDS)

        while wall() <= first_end + timedelta(seconds=1):
            await notify()
            assert len(alertmanager.active()) == 2, "it was told again in time"
            await asyncio.sleep(0.1)
        assert told("kept") == ["firing"], "told again is no news to whoever it tells"

        await change(kept, Outcome.PASS, "kept")
        await asyncio.sleep(0.15)
        await notify()
        assert [one["labels"]["dimension"] for one in alertmanager.active()] == ["left"]
        await until(lambda: told("kept") == ["firing", "resolved"])

        # The notifier is gone now, and nobody will say that the other is over.
        await until(lambda: told("left") == ["firing", "resolved"])
        assert alertmanager.active() == []
        await receiver.close()


@pytest.mark.kafka
async def test_kafka_has_each_message_under_its_group_and_its_id(apache_kafka: ApacheKafka) -> None:
    """In order, a double under the same id, and delivered only what the broker has confirmed."""
    apache_kafka.create_topic("team-alerts", partitions=4)
    settings = Settings(_env_file=None, kafka=apache_kafka.bootstrap)
    receiver = KafkaReceiver("bus", topic="team-alerts", settings=settings)
    over = a_group(an_alert(resolved=True), version=2, receiver="bus")

    for group in (a_group(receiver="bus"), a_group(receiver="bus"), over):
        assert await receiver.deliver(group) == Delivered(receiver="bus")
    await receiver.close()

    with closing(KafkaAdmin(settings)) as admin:
        held = list(admin.read("team-alerts"))
    assert {(one.partition, one.key) for one in held} == {(held[0].partition, b"g1")}
    assert [dict(one.headers)["Idempotency-Key"] for one in held] == [b"g1-1", b"g1-1", b"g1-2"]
    values = [json.loads(one.value or b"") for one in held]
    assert [one["status"] for one in values] == ["firing", "firing", "resolved"]
    assert values[0]["alerts"][0]["evidence"]["cases"]


@pytest.mark.kafka
async def test_kafka_refuses_what_is_too_large_and_what_has_no_topic(apache_kafka: ApacheKafka) -> None:
    """The one is never tried again, the other is: somebody may create the topic."""
    apache_kafka.create_topic("narrow-alerts", config={"max.message.bytes": "500"})
    settings = Settings(_env_file=None, kafka=apache_kafka.bootstrap)

    answers = [
        await KafkaReceiver("bus", topic=topic, settings=settings, timeout_seconds=limit).deliver(a_group())
        for topic, limit in (("narrow-alerts", 10), ("no-such-topic", 0.5))
    ]

    assert all(isinstance(one, Undelivered) for one in answers)
    assert [one.retry for one in answers if isinstance(one, Undelivered)] == [False, True]
