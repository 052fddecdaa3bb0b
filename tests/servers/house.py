"""One namespace on a broker with a Valkey of its own, its processes, and an orchestrator that starts them again."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import xxhash
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec

from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.redis_connection import blocking_client
from monitor.cli.views import Views
from monitor.demo.traffic import conversations
from monitor.intake.formats.openai_chat import Shape, events_of
from monitor.policy import Policy
from monitor.settings import Settings, process_environment
from monitor.topics import CONVERSATION_EVENTS
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    ROOT,
    WAIT_LIMIT_SECONDS,
    Processes,
    config_in,
    create_topics,
    letters,
    now,
    policy_of,
    processes,
    settings_for,
    wait_until,
)

RESTART_SECONDS = 1.0
"""How long the orchestrator waits before it starts a process again."""


COMMIT_SECONDS = 1.0
"""`broker_commit_interval` of agents/app.py."""


@dataclass
class House:
    """What a test of kills has in hand."""

    settings: Settings
    policy: Policy
    running: Processes
    views: Views
    kafka: ApacheKafka
    valkey: EmbeddedValkey

    def send(self, *events: Mapping[str, Any]) -> None:
        """Send events to the partitions of their conversations, in order, and wait for the broker."""
        self.produce(
            CONVERSATION_EVENTS,
            ((event["conversation_id"], json.dumps(event).encode()) for event in events),
        )

    def produce(self, topic: str, messages: Iterable[tuple[str, bytes]]) -> None:
        """Send keys and values to the partitions of their conversations, in order, and wait for the broker."""
        producer = Producer({"bootstrap.servers": self.settings.kafka, "log_level": 0})
        for key, value in messages:
            producer.produce(
                self.settings.topic_prefix + topic,
                key=key,
                value=value,
                partition=partition_of(key, self.policy),
            )
            producer.poll(0)
        assert producer.flush(WAIT_LIMIT_SECONDS) == 0

    def wait_for_commits(self) -> None:
        """Wait for some rounds of commits; fail if a process ends meanwhile."""
        until = now() + timedelta(seconds=3 * COMMIT_SECONDS)
        wait_until(lambda: now() > until, watched=self.running)

    def committed(self, stage: str, topic: str) -> dict[int, int]:
        """Ask the broker for a stage's offsets; a partition without a commit is left out."""
        wanted = [ConsumerGroupTopicPartitions(f"{self.settings.namespace}-{stage}")]
        admin = self.kafka.admin()
        (future,) = admin.list_consumer_group_offsets(wanted).values()
        offsets = future.result(WAIT_LIMIT_SECONDS).topic_partitions
        name = self.settings.topic_prefix + topic
        return {one.partition: one.offset for one in offsets if one.topic == name and one.offset >= 0}

    def ends(self, topic: str) -> dict[int, int]:
        """Return where each partition of a topic ends; an empty one is left out."""
        name = self.settings.topic_prefix + topic
        admin = self.kafka.admin()
        asked = admin.list_offsets(
            {
                TopicPartition(name, number): OffsetSpec.latest()
                for number in range(self.policy.monitor.topics.partitions)
            }
        )
        found = {one.partition: future.result(WAIT_LIMIT_SECONDS).offset for one, future in asked.items()}
        return {partition: end for partition, end in found.items() if end}

    def wait_until_read(self, stage: str, topic: str) -> None:
        """Wait until a stage has committed all of a topic."""
        wait_until(
            lambda: self.committed(stage, topic) == self.ends(topic),
            watched=self.running,
            told=lambda: (self.committed(stage, topic), self.ends(topic)),
        )

    @contextmanager
    def writes_held_up(self) -> Iterator[None]:
        """Have Valkey answer no write; reads go on."""
        client = blocking_client(self.settings.redis)
        client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        try:
            yield
        finally:
            client.execute_command("CLIENT", "UNPAUSE")
            client.close()

    def late_syncs(self) -> int:
        """Return how often Valkey has put its writes off because the disk was slow."""
        client = blocking_client(self.settings.redis)
        try:
            return int(client.info("persistence")["aof_delayed_fsync"])
        finally:
            client.close()

    def command(self, *arguments: str) -> str:
        """Run `monitor ...` as a person would; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "monitor.cli.main", *arguments],
            cwd=ROOT,
            env=process_environment(self.settings),
            capture_output=True,
            text=True,
            timeout=WAIT_LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def a_house(
    kafka: ApacheKafka, folder: Path, namespace: str, **monitor: Mapping[str, Any]
) -> Iterator[House]:
    """Set a namespace up, with sections of monitor.yaml changed, and take its processes down."""
    own = folder / namespace
    config = config_in(own / "config", **monitor)
    valkey = EmbeddedValkey(own / "valkey")
    valkey.start()
    settings = settings_for(own, namespace=namespace, config=config, kafka=kafka.bootstrap, redis=valkey.url)
    policy = policy_of(settings)
    create_topics(settings, policy)
    try:
        with closing(Views(settings, policy)) as views, processes(settings, own) as running:
            yield House(settings, policy, running, views, kafka, valkey)
    finally:
        valkey.stop()


def partition_of(conversation_id: str, policy: Policy) -> int:
    """Return the partition that every producer of ours gives a conversation."""
    return xxhash.xxh3_64_intdigest(conversation_id.encode()) % policy.monitor.topics.partitions


def draw(*parts: object) -> float:
    """Return a number in [0, 1): a seed's run can be had again."""
    return xxhash.xxh3_64_intdigest("\x1f".join(map(str, parts)).encode()) / 2**64


class Orchestrator:
    """Starts what has ended, as systemd, Compose or Kubernetes would; one of its own thread."""

    def __init__(self, running: Processes) -> None:
        self._running = running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.lock = threading.Lock()
        """Held by whoever starts or kills."""
        self.ended: list[tuple[str, int]] = []
        """Who ended by itself, and with which status."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(WAIT_LIMIT_SECONDS)

    def kill(self, name: str) -> bool:
        """Kill a process if it is running just now; it is started again as if it had died by itself."""
        with self.lock:
            if name in self._running.dead():
                return False
            self._running.kill(name)
            self._running.start(name)
            return True

    def _keep(self) -> None:
        while not self._over.wait(RESTART_SECONDS):
            with self.lock:
                for name in self._running.dead():
                    self.ended.append((name, self._running.status(name)))
                    self._running.start(name)


@dataclass
class Traffic:
    """The shop's conversations, several at a time and without end, from a thread of its own."""

    house: House
    per_second: float
    seed: int
    sent: int = 0
    """Events that the broker has confirmed."""
    broken: int = 0
    _failed: list[KafkaError] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def end(self) -> None:
        """Let no conversation begin any more, and wait until the broker has all."""
        self._over.set()
        assert self._thread is not None
        self._thread.join(2 * WAIT_LIMIT_SECONDS)
        assert not self._thread.is_alive(), "the broker does not take the last events"
        assert not self._failed, self._failed[0].str()

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.house.settings.kafka, "enable.idempotence": True, "log_level": 0}
        )
        topic = self.house.settings.topic_prefix + CONVERSATION_EVENTS
        for number, (name, value) in enumerate(self._events()):
            producer.produce(
                topic,
                key=name,
                value=value,
                partition=partition_of(name, self.house.policy),
                on_delivery=self._delivered,
            )
            producer.poll(0)
            if number % 5 == 4:
                time.sleep(5 / self.per_second)
        producer.flush(2 * WAIT_LIMIT_SECONDS)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)
        self.sent += error is None

    def _events(self) -> Iterator[tuple[str, bytes]]:
        shop = conversations()
        open_: list[tuple[str, list[dict[str, Any]]]] = []
        begun = told = 0
        while open_ or not self._over.is_set():
            while len(open_) < 12 and not self._over.is_set():
                name = f"shop-{letters(begun)}"
                picked = shop[int(draw(self.seed, "pick", begun) * len(shop))]
                record = {key: picked[key] for key in ("intent", "channel", "policy_ref", "messages")}
                # So that no two conversations have one prompt, and calls can be counted by judgment.
                first, *rest = record["messages"]
                record["messages"] = [first | {"content": f"{first['content']} <{name}>"}, *rest]
                events = events_of(
                    record | {"id": name, "assistant": "shop"},
                    shape=Shape.TURNS,
                    start=now() - timedelta(minutes=10),
                )
                assert isinstance(events, list)
                open_.append((name, events))
                begun += 1
            told += 1
            place = int(draw(self.seed, "next", told) * len(open_))
            name, events = open_[place]
            value = json.dumps(events.pop(0)).encode()
            if not events:
                open_.pop(place)
            yield name, value
            if draw(self.seed, "twice", told) < 0.02:
                yield name, value
            if draw(self.seed, "broken", told) < 0.01:
                self.broken += 1
                yield name, f'{{"event_id": "half a li{told}'.encode()
