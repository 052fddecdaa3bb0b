"""A stream and an app that are not Faust's, for tests of what consumes them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class FakeMessage:
    partition: int
    offset: int
    generation_id: int = 1
    topic: str = "events"
    acked: bool = False


@dataclass(eq=False)
class FakeEvent:
    message: FakeMessage
    value: Any
    log: list["FakeEvent"]
    key: Any = None

    def ack(self) -> bool:
        self.message.acked = True
        self.log.append(self)
        return True


@dataclass
class FakeStream:
    """Hands out what was put in; None ends it."""

    concurrency_index: int | None = None
    active_partitions: Any = None
    acked: list[FakeEvent] = field(default_factory=list)
    queue: asyncio.Queue[FakeEvent | None] = field(default_factory=asyncio.Queue)
    offsets: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def put(self, value: Any, *, partition: int = 0) -> FakeEvent:
        event = FakeEvent(FakeMessage(partition, self.offsets[partition]), value, self.acked)
        self.offsets[partition] += 1
        self.queue.put_nowait(event)
        return event

    def end(self) -> None:
        self.queue.put_nowait(None)

    def noack(self) -> "FakeStream":
        return self

    async def events(self) -> AsyncIterator[FakeEvent]:
        while event := await self.queue.get():
            yield event


@dataclass
class FakeApp:
    """Also its own consumer: what it does on a crash is written down in order."""

    consumer_generation_id: int = 1
    done: list[Any] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    consumer: Any = field(init=False)

    def __post_init__(self) -> None:
        self.consumer = self

    async def commit(self) -> None:
        self.done.append("commit")

    async def crash(self, reason: BaseException) -> None:
        self.done.append(reason)

    async def wait_until_stopped(self) -> None:
        await self.stopped.wait()


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - the conditions are plain lists of the fakes
        await asyncio.sleep(0.001)
