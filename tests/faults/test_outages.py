"""Kills and outages under traffic, on a real Apache Kafka: in the end nothing is lost and nothing counts twice.

An orchestrator starts again what ended, as Compose and Kubernetes do. What a run did is drawn by hash from its seed;
where a kill falls in the work of a process is the machine's.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.worker import STOP_LIMIT_SECONDS
from monitor.adapters.embedded_kafka import EmbeddedKafka
from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.funnel import Funnel
from monitor.topics import CONVERSATION_EVENTS, JUDGE_REQUESTS, JUDGMENTS, SAMPLED_EVENTS
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    Processes,
    create_topics,
    dead_letters_of,
    double_counted,
    policy_of,
    records_of,
    settings_for,
    wait_until,
)
from tests.servers.held_judge import HeldJudge
from tests.servers.house import House, Orchestrator, Traffic, a_house, draw

pytestmark = [pytest.mark.faults, pytest.mark.timeout(420)]

WORKERS = {
    "sample": ("sample",),
    "judging": ("work", "assemble", "judge"),
    "windows": ("work", "aggregate", "changes", "evaluate", "notify"),
}
EVENTS_PER_SECOND = 40.0
DRAIN_LIMIT_SECONDS = 150.0
IDLE_SECONDS = 8
"""A backlog, the takeover of partitions and the idleness of the last conversations."""
STAGES = (
    ("sample", CONVERSATION_EVENTS),
    ("assemble", SAMPLED_EVENTS),
    ("judge", JUDGE_REQUESTS),
    ("aggregate", JUDGMENTS),
)


@dataclass
class Busy:
    """A house under traffic, and who keeps it running."""

    house: House
    judge: HeldJudge
    orchestrator: Orchestrator
    traffic: Traffic


@contextmanager
def busy(kafka: ApacheKafka, folder: Path, namespace: str, *, seed: int) -> Iterator[Busy]:
    """Start everything, and traffic that goes on until `check_all`; hand out once the first is judged."""
    with ExitStack() as stack:
        judge = stack.enter_context(HeldJudge().serving())
        house = stack.enter_context(
            a_house(
                kafka,
                folder,
                namespace,
                clock={"kind": "wall", "tick_seconds": 0.5},
                conversations={"idle_seconds": IDLE_SECONDS, "end_grace_seconds": 1},
                judge={
                    "backend": "llm",
                    "model": "stub",
                    "base_url": judge.url,
                    "probe": False,
                    "timeout_seconds": 5.0,
                },
            )
        )
        for name, command in WORKERS.items():
            house.running.start(name, "monitor.cli.main", *command)
        orchestrator = stack.enter_context(Orchestrator(house.running))
        traffic = stack.enter_context(Traffic(house, per_second=EVENTS_PER_SECOND, seed=seed))
        wait_until(lambda: house.views.funnel().judgments, told=house.running.logs)
        yield Busy(house, judge, orchestrator, traffic)


def check_all(one: Busy) -> Funnel:
    """End the traffic, wait until everything is over; then each event has one outcome, and each unit counts once."""
    house, traffic = one.house, one.traffic
    traffic.end()

    def over() -> bool:
        return house.views.funnel().finished >= traffic.sent and all(
            house.committed(stage, topic) == house.ends(topic) for stage, topic in STAGES
        )

    def told() -> str:
        lags = {stage: (house.committed(stage, topic), house.ends(topic)) for stage, topic in STAGES}
        return f"{traffic.sent} sent, {house.views.funnel()}, {lags}\n{house.running.logs()}"

    wait_until(over, limit=DRAIN_LIMIT_SECONDS, told=told)
    # Turns have their outcome before their conversation is over: the last ones close by idleness, and are judged.
    time.sleep(IDLE_SECONDS + 4)
    wait_until(over, limit=DRAIN_LIMIT_SECONDS, told=told)
    funnel = house.views.funnel()
    records = records_of(house.settings)
    double = double_counted(house.views, records)
    letters = dead_letters_of(house.settings)
    times = Counter(record.judgment_id for record in records)
    calls = Counter(one.judge.asked.values())
    print(  # noqa: T201 - the figures of a run are its result
        f"\n{house.settings.namespace}: {traffic.sent} events, {traffic.sent - funnel.finished} lost, {double} "
        f"double-counted; {funnel.judgments}, {times.total() - len(times)} of them repeated; "
        f"judge calls by how often: {dict(calls)}; ended by themselves: {one.orchestrator.ended}; {funnel.events}"
    )
    assert funnel.received == traffic.sent, "an event has two outcomes or none"
    assert funnel.open == 0
    assert double == 0
    assert sum(letter.stage == "sample" for letter in letters) == traffic.broken
    assert sum(funnel.judgments.values()) == len(times)
    return funnel


def test_kills_of_everything_at_random(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """Whatever dies at whatever moment is started again, and goes on where it was."""
    seed = 20261130
    killed: Counter[str] = Counter()
    with busy(apache_kafka, tmp_path, "kills", seed=seed) as one:
        until = time.monotonic() + 60
        number = 0
        while time.monotonic() < until:
            time.sleep(1 + 5 * draw(seed, "pause", number))
            name = list(WORKERS)[int(draw(seed, "who", number) * len(WORKERS))]
            killed[name] += one.orchestrator.kill(name)
            number += 1
        funnel = check_all(one)
    assert min(killed.values()) >= 2
    assert funnel.events.get("failed", 0) == 0, "no call is given up because its worker died"


def test_valkey_is_killed_and_comes_back_on_its_files(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """Everybody waits for it, and what it had said yes to is still there.

    With `appendfsync everysec` a kill of the process loses nothing that it answered: it writes to its file before
    it answers, and what is written is the kernel's. Lost is what it answered while a sync took longer than a
    second (it puts its writes off for up to two), and, when the machine dies, the last second or two. Then
    an event whose offset was committed in that time is lost. So this looks whether a sync was late.
    """
    with busy(apache_kafka, tmp_path, "valkey", seed=2) as one:
        late = 0
        for _ in range(3):
            time.sleep(7)
            late += one.house.late_syncs()
            one.house.valkey.kill()
            time.sleep(3)
            one.house.valkey.start()
        time.sleep(5)
        if late:
            pytest.skip(f"the disk was too slow: {late} writes were put off, so some may be lost")
        check_all(one)


def test_the_broker_is_killed_and_comes_back(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """Producers and consumers wait for it; what it had confirmed is still there."""
    del apache_kafka  # it decides whether a broker can run here, and it is not ours to kill
    with ApacheKafka(tmp_path / "broker") as broker, busy(broker, tmp_path, "broker", seed=3) as one:
        for _ in range(2):
            time.sleep(10)
            broker.kill()
            time.sleep(3)
            broker.start()
        time.sleep(10)
        check_all(one)


def test_the_judge_is_gone_for_a_while(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """The breaker opens and its requests wait: an outage becomes a delay, not failures and a pile of dead letters."""
    with busy(apache_kafka, tmp_path, "judge", seed=4) as one:
        time.sleep(5)
        one.judge.go_away()
        time.sleep(20)
        one.judge.come_back()
        time.sleep(5)
        funnel = check_all(one)

        assert not [name for name in funnel.judgments if not name.endswith(" judged")]
        assert not [letter for letter in dead_letters_of(one.house.settings) if letter.stage == "judge"]


def test_a_worker_whose_servers_leave_while_it_starts_ends_when_asked(tmp_path: Path) -> None:
    kafka, valkey = EmbeddedKafka(), EmbeddedValkey()
    kafka.start()
    valkey.start()
    settings = settings_for(tmp_path, namespace="leaving", kafka=kafka.bootstrap, redis=valkey.url)
    create_topics(settings, policy_of(settings))
    running = Processes(settings, tmp_path)
    worker = running.work("worker", "assemble", "aggregate")
    wait_until(lambda: "stage_started" in running.log("worker"), told=running.logs)
    kafka.stop()
    valkey.stop()
    worker.terminate()
    assert worker.wait(timeout=STOP_LIMIT_SECONDS + 15) == 0, running.logs()
