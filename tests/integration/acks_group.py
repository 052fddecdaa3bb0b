"""One topic and the workers that consume it as one group, as processes of their own."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, Producer

from tests.integration.acks_worker import WorkerSettings
from tests.servers.apache_kafka import ApacheKafka, dying_with_parent

ROOT = Path(__file__).parents[2]
WAIT_LIMIT_SECONDS = 30  # for anything that a worker should do; five times the slowest seen
COMMIT_INTERVAL_SECONDS = 0.3


@dataclass(frozen=True)
class Fact:
    """One line that a worker wrote."""

    at: float
    worker: str
    what: str
    which: str


@dataclass
class Group:
    """One topic, the workers that consume it as one group, and what they say."""

    kafka: ApacheKafka
    name: str
    folder: Path
    partitions: int
    sent: list[str] = field(default_factory=list)
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kafka.create_topic(self.name, partitions=self.partitions)
        self._producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})

    def send(self, event_id: str, *, partition: int, **order: Any) -> None:
        self._producer.produce(self.name, json.dumps({"id": event_id, **order}).encode(), partition=partition)
        self._producer.flush(WAIT_LIMIT_SECONDS)
        self.sent.append(event_id)

    def start(self, worker: str, **more: Any) -> subprocess.Popen[bytes]:
        settings = WorkerSettings(
            name=worker,
            group=f"{self.name}-group",
            bootstrap=self.kafka.bootstrap,
            topic=self.name,
            facts=str(self.folder / "facts"),
            datadir=str(self.folder / worker),
            commit_interval_seconds=COMMIT_INTERVAL_SECONDS,
            **more,
        )
        with self.log_path(worker).open("wb") as log:
            self.workers[worker] = subprocess.Popen(
                dying_with_parent(
                    [sys.executable, "-m", "tests.integration.acks_worker", settings.to_argument()]
                ),
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        return self.workers[worker]

    def log_path(self, worker: str) -> Path:
        return self.folder / f"{worker}.log"

    def facts(self, what: str, *, worker: str | None = None) -> list[Fact]:
        path = self.folder / "facts"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        facts = [Fact(float(at), *rest) for at, *rest in map(str.split, lines)]
        return [one for one in facts if one.what == what and worker in {None, one.worker}]

    def handled(self, *, worker: str | None = None) -> Counter[str]:
        return Counter(one.which for one in self.facts("handled", worker=worker))

    def lost(self) -> set[str]:
        return set(self.sent) - set(self.handled())

    def committed(self) -> dict[int, int]:
        """Ask the broker, as an operator would; a partition without a commit is left out."""
        admin = self.kafka.admin()
        wanted = [ConsumerGroupTopicPartitions(f"{self.name}-group")]
        (future,) = admin.list_consumer_group_offsets(wanted).values()
        offsets = future.result(WAIT_LIMIT_SECONDS).topic_partitions
        return {one.partition: one.offset for one in offsets if one.topic == self.name and one.offset >= 0}

    def state(self) -> ConsumerGroupState:
        """Ask the broker in which state the group is."""
        admin = self.kafka.admin()
        (future,) = admin.describe_consumer_groups([f"{self.name}-group"]).values()
        return future.result(WAIT_LIMIT_SECONDS).state

    def wait_until(self, condition: Callable[[], object], *, limit: float = WAIT_LIMIT_SECONDS) -> None:
        deadline = time.monotonic() + limit
        while not condition():
            if time.monotonic() > deadline:
                logs = {name: self.log_path(name).read_text()[-3000:] for name in self.workers}
                pytest.fail("\n".join(f"--- {name}\n{text}" for name, text in logs.items()))
            time.sleep(0.05)

    def wait_for_partitions(self, worker: str, count: int) -> None:
        def has_them() -> bool:
            assigned = self.facts("assigned", worker=worker)
            return bool(assigned) and assigned[-1].which == str(count)

        self.wait_until(has_them)

    def close(self) -> None:
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
