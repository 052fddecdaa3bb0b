"""A Faust worker for the tests of acks: events in, one line a fact out, appended to a file.

Run as `python -m tests.integration.acks_worker`; the settings come as one JSON object on the command line.
A line is the machine's monotonic time, the worker's name, and one of: `assigned <partitions>`, `handled <id>`,
`held <id>`, `batch <size>`, `leader -`, `rebalancing -`. An event is a JSON object: `id`, and what a worker of a given
name does with it, `slow_in: {name: seconds}`, `held_in: {name: until this file is there}` or `raise_in: [name]`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import faust

from agents.consume import Event, batches, each

LEADER_TICK_SECONDS = 0.25


@dataclass(frozen=True)
class WorkerSettings:
    """Whom to join, what to read, where to write."""

    name: str
    group: str
    bootstrap: str
    topic: str
    facts: str
    datadir: str
    concurrency: int = 16
    batch_size: int = 0
    linger_seconds: float = 0.2
    commit_interval_seconds: float = 0.3
    stop_limit_seconds: float = 20.0
    session_timeout_seconds: float = 3.0

    def to_argument(self) -> str:
        return json.dumps(asdict(self))


def build_app(settings: WorkerSettings) -> faust.App:
    """Wire one agent and one leader's timer; no more than the tests ask for."""
    facts = _FactFile(Path(settings.facts), settings.name)
    app = faust.App(
        settings.group,
        broker=f"kafka://{settings.bootstrap}",
        datadir=settings.datadir,
        web_enabled=False,
        broker_commit_interval=settings.commit_interval_seconds,
        broker_session_timeout=settings.session_timeout_seconds,
        broker_heartbeat_interval=0.5,
        stream_wait_empty=True,
    )
    topic = app.topic(settings.topic, key_serializer="raw", value_serializer="raw")

    async def handle(event: Event) -> None:
        order = json.loads(event.value)
        if settings.name in order.get("raise_in", []):
            raise ValueError("a secret of the payload")
        await asyncio.sleep(order.get("slow_in", {}).get(settings.name, 0))
        if release := order.get("held_in", {}).get(settings.name):
            facts.add("held", order["id"])
            await _until_there(Path(release), lambda: app.rebalancing and facts.once("rebalancing"))
        facts.add("handled", order["id"])

    async def handle_all(events: list[Event]) -> None:
        facts.add("batch", str(len(events)))
        for event in events:
            await handle(event)

    async def consume(stream: Any) -> None:
        limit = settings.stop_limit_seconds
        if settings.batch_size:
            size, linger = settings.batch_size, settings.linger_seconds
            await batches(app, stream, handle_all, size=size, linger_seconds=linger, stop_limit_seconds=limit)
        else:
            await each(app, stream, handle, concurrency=settings.concurrency, stop_limit_seconds=limit)

    async def tick() -> None:
        facts.add("leader", "-")

    async def assigned(_app: Any, partitions: Any = (), **_more: Any) -> None:
        facts.add("assigned", str(sum(tp.topic == settings.topic for tp in partitions)))

    app.agent(topic, name="acks")(consume)
    app.timer(LEADER_TICK_SECONDS, on_leader=True)(tick)
    app.on_partitions_assigned.connect(assigned, weak=False)  # type: ignore[arg-type]  # it takes keywords
    return app


async def _until_there(file: Path, look: Callable[[], object]) -> None:
    while not file.exists():  # noqa: ASYNC240 - another process makes it
        look()
        await asyncio.sleep(0.05)


class _FactFile:
    """Each line is one write to a file opened for append, so that no kill can tear it."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._name = name
        self._told: set[str] = set()

    def once(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self.add(what, "-")

    def add(self, what: str, which: str) -> None:
        os.write(self._file, f"{time.monotonic():.3f} {self._name} {what} {which}\n".encode())


if __name__ == "__main__":
    worker_settings = WorkerSettings(**json.loads(sys.argv[1]))
    faust.Worker(build_app(worker_settings), loglevel="INFO").execute_from_commandline()
