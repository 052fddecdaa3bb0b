"""The whole way of the data on a real Apache Kafka: topics made by us, a leader found, nothing lost or twice."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

import pytest

from agents.supervisor import Deployment
from monitor.adapters.kafka_admin import Held
from monitor.cli.replaying import Replayed, run_on
from monitor.cli.views import Views
from monitor.clock import ClockKind
from monitor.intake.dead_letter import DeadLetter
from monitor.topics import ALERTS, LED_STAGES, topics
from tests.integration.test_pipeline_embedded import Event, shop_with_an_email
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    dead_letters_of,
    double_counted,
    policy_of,
    read,
    records_of,
    settings_for,
)

pytestmark = pytest.mark.kafka

NAMESPACE = "way"


@dataclass
class Ran:
    """What one replay left behind."""

    timed: list[tuple[datetime, Event]]
    replayed: Replayed
    evaluated_through: datetime | None
    fired: int
    double: int
    letters: list[DeadLetter]
    alerts: list[Held]
    existing: set[str]
    wanted: set[str]


@pytest.fixture(scope="module")
def ran(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("kafka-pipeline")
    settings = settings_for(folder, namespace=NAMESPACE, clock=ClockKind.STREAM, kafka=apache_kafka.bootstrap)
    policy = policy_of(settings)
    timed = shop_with_an_email(policy)
    with (
        Deployment(
            settings, policy, embedded_kafka=False, embedded_redis=True, log_folder=folder / "logs"
        ) as deployment,
        closing(Views(deployment.settings, policy)) as views,
    ):
        replayed = run_on(deployment, views, timed, speed=None, sent=lambda *_: None, look=lambda _: None)
        settings = deployment.settings
        yield Ran(
            timed=timed,
            replayed=replayed,
            evaluated_through=views.evaluated_through(),
            fired=sum(bool(alert.firings) for alert in views.alerts()),
            double=double_counted(views, records_of(settings)),
            letters=dead_letters_of(settings),
            alerts=read(settings, ALERTS),
            existing=set(apache_kafka.admin().list_topics(timeout=10).topics),
            wanted={topic.name for topic in topics(policy.monitor.topics, namespace=NAMESPACE)},
        )


def test_nothing_is_lost_and_nothing_counts_twice(ran: Ran) -> None:
    """The same on the broker that production has."""
    assert ran.replayed.events == len(ran.timed)
    assert ran.replayed.lost == 0
    assert ran.replayed.funnel.received == len(ran.timed)
    assert ran.replayed.funnel.judgments["conversation judged"] > 50
    assert ran.double == 0


def test_what_is_no_event_is_kept_with_its_exact_bytes(ran: Ran) -> None:
    """Whoever repairs the producer needs what it sent."""
    raw = [event for _, event in ran.timed if isinstance(event, bytes)]

    assert sorted(letter.value for letter in ran.letters) == sorted(raw)


def test_the_deployment_makes_all_topics_and_faust_makes_none(ran: Ran) -> None:
    """Where nobody may create topics, ours are made beforehand, and one that Faust expected would be missing."""
    ours = {name for name in ran.existing if name.startswith((f"{NAMESPACE}.", f"{NAMESPACE}-"))}

    assert ours == ran.wanted
    assert {f"{NAMESPACE}-{stage}-__assignor-__leader" for stage in LED_STAGES} <= ours


def test_the_leader_evaluates_although_faust_declares_no_topic(ran: Ran) -> None:
    """A timer that waits for a leader that is never found is an alarm that never rings, and nothing says so."""
    assert ran.evaluated_through is not None
    assert ran.evaluated_through > ran.timed[-1][0]


def test_the_leader_tells_of_every_alert(ran: Ran) -> None:
    """The outbox is emptied by a leader's timer too: an alert that fired stands in the topic."""
    told = {held.key for held in ran.alerts}

    assert ran.fired > 0
    assert len(told) >= ran.fired
