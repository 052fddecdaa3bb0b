"""From a Faust stream to a handler, without losing an event: a stream in, one call an event or a batch out.

Faust acks the event whose agent raised, and commits past one that is not acked. So here acks are ours: given
after the handler is done, in the order of the offsets (`agents/acks.py`). Two things follow for the caller:
- the topic's serializers are "raw", for Faust acks at once, out of order, what it cannot decode or is told to
  skip;
- the handler does not raise. If it does all the same, that is a bug: the event stays un-acked, the worker
  ends with a failure, and whoever takes over gets the event again.
"""

import asyncio
import contextlib
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

import structlog

from agents.acks import Held, OrderedAcks

# Protects memory, and what a killed worker leaves to do twice: one slow event holds back the acks of all that
# come after it in its partition, and at this many the worker takes no more.
UNACKED_MAX = 4096
# Protects the orchestrator's patience: after this a stopping worker leaves its calls, and their events come
# again. Keep it below the grace period before SIGKILL, and above the longest call.
STOP_LIMIT_SECONDS = 20.0
# Protects a failing worker from a broker that is gone: it ends all the same, and does a little more twice.
LAST_COMMIT_LIMIT_SECONDS = 5.0

log = structlog.get_logger()


class HandlerError(RuntimeError):
    """A handler raised. It names the place of the event, never its content or the error's own words."""


class Event(Protocol):
    """What is used of `faust.Event`; its message has a topic, partition, offset and generation_id."""

    key: Any
    value: Any
    message: Any

    def ack(self) -> bool:
        """Let Faust commit past the event."""


class Stream(Protocol):
    """What is used of `faust.Stream`."""

    concurrency_index: int | None
    active_partitions: Any

    def noack(self) -> Any:
        """Give the stream whose events wait for our ack."""


class App(Protocol):
    """What is used of `faust.App`; its consumer can `commit()`."""

    consumer_generation_id: int
    consumer: Any

    async def wait_until_stopped(self) -> None:
        """Return when the app stops or crashes."""

    async def crash(self, reason: BaseException) -> None:
        """Mark the app and the worker around it as failed, and have them stop."""


class Progress:
    """What health reads of one agent: a partition whose oldest event waits too long is stalled."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self.holds: Callable[[], bool] = lambda: False
        """Tells whether the handler waits by intent, such as for an endpoint that is down: no stall."""
        self._held_until = 0.0
        self._acks: OrderedAcks[Event] | None = None

    def oldest_undone_seconds(self) -> float:
        """Tell for how long the oldest event in hand has not been done; 0 with none in hand.

        The time in which the handler waits by intent does not count; so ask more often than a stall lasts.
        """
        if self.holds():
            self._held_until = self.monotonic()
        taken_at = self._acks.oldest_taken_at() if self._acks else None
        return 0.0 if taken_at is None else self.monotonic() - max(taken_at, self._held_until)

    def unacked(self) -> int:
        """Count the events in hand that wait for an ack."""
        return self._acks.unacked() if self._acks else 0

    def watch(self, acks: OrderedAcks[Event]) -> None:
        """Read from these from now on: a restarted agent has new ones."""
        self._acks = acks


async def each(
    app: App,
    stream: Stream,
    handle: Callable[[Any], Awaitable[None]],
    *,
    concurrency: int,
    unacked_max: int = UNACKED_MAX,
    stop_limit_seconds: float = STOP_LIMIT_SECONDS,
    progress: Progress | None = None,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Call the handler for each event, up to `concurrency` at a time, in no order.

    While `ready` waits, no call is begun and nothing more is taken; the consumer's heartbeats go on.
    """
    slots = asyncio.Semaphore(concurrency)
    hand = _Hand(app, stream, progress or Progress(), stop_limit_seconds)

    async def read() -> None:
        async for held in hand.take():
            await hand.room_below(unacked_max)
            await slots.acquire()
            if ready is not None:
                await ready()
            hand.start(partial(handle, held.event), [held]).add_done_callback(lambda _: slots.release())
        await hand.drain()

    await hand.run(read)


async def batches(
    app: App,
    stream: Stream,
    handle: Callable[[list[Any]], Awaitable[None]],
    *,
    size: int,
    linger_seconds: float,
    stop_limit_seconds: float = STOP_LIMIT_SECONDS,
    progress: Progress | None = None,
) -> None:
    """Call the handler for batches, one call at a time, in the order of arrival.

    A batch is closed when it has `size` events or when its first one has waited `linger_seconds`.
    """
    waiting: asyncio.Queue[Held[Event] | None] = asyncio.Queue(maxsize=size)
    hand = _Hand(app, stream, progress or Progress(), stop_limit_seconds)

    async def work() -> None:
        while batch := await _next_batch(waiting, size=size, linger_seconds=linger_seconds):
            await hand.start(partial(handle, [held.event for held in batch]), batch)

    async def read() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            async for held in hand.take():
                await waiting.put(held)
            await waiting.put(None)

    await hand.run(read)


async def _next_batch(
    waiting: asyncio.Queue[Held[Event] | None], *, size: int, linger_seconds: float
) -> list[Held[Event]]:
    """Collect the next batch; an empty one says that the stream has ended."""
    first = await waiting.get()
    if first is None:
        return []
    batch = [first]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(linger_seconds):
            while len(batch) < size:
                held = await waiting.get()
                if held is None:
                    # For the next call to find.
                    waiting.put_nowait(None)
                    break
                batch.append(held)
    return batch


class _Hand:
    """The events in hand and the calls under way, from the first event to the end of the worker."""

    def __init__(self, app: App, stream: Stream, progress: Progress, stop_limit_seconds: float) -> None:
        if stream.concurrency_index is not None or stream.active_partitions is not None:
            # Several actors would share a partition, or one would be restarted with un-acked events in hand.
            raise ValueError("The agent must have concurrency 1 and no isolated partitions.")
        self._app = app
        self._stream = stream
        self._monotonic = progress.monotonic
        self._stop_limit_seconds = stop_limit_seconds
        self._acks: OrderedAcks[Event] = OrderedAcks(
            ack=lambda event: event.ack(),
            release=_release,
            current_generation=lambda: app.consumer_generation_id,
        )
        progress.watch(self._acks)
        self._calls: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._failure: asyncio.Future[HandlerError] = asyncio.get_running_loop().create_future()

    async def run(self, read: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read until the stream ends, a call fails, or the app has been stopping for too long.

        What is still un-acked then is released: Faust's own wait on shutdown has no limit.
        """
        reader = asyncio.create_task(read())
        patience = asyncio.create_task(self._until_failed_or_overdue())
        try:
            await asyncio.wait({reader, patience}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(reader, patience, *self._calls)
            self._acks.drop()
        broken = None if reader.cancelled() else reader.exception()
        if broken or self._failure.done():
            # An agent that went on here would let Faust commit past what was in hand.
            await self._end_worker(broken or self._failure.result())

    async def take(self) -> AsyncIterator[Held[Event]]:
        async for event in self._stream.noack().events():
            message = event.message
            yield self._acks.take(
                event,
                partition=(message.topic, message.partition),
                generation=message.generation_id,
                now=self._monotonic(),
            )

    async def room_below(self, unacked_max: int) -> None:
        while self._acks.unacked() > unacked_max:
            self._room.clear()
            await self._room.wait()

    def start(self, call: Callable[[], Awaitable[None]], held: Sequence[Held[Event]]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._settle(call, held))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        return task

    async def drain(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls)

    async def _settle(self, call: Callable[[], Awaitable[None]], held: Sequence[Held[Event]]) -> None:
        if self._failure.done():
            return
        try:
            await call()
        except asyncio.CancelledError as error:
            if _is_cancelled_from_outside():
                raise
            self._fail(error, held)
        except Exception as error:  # noqa: BLE001 - nothing may escape: a lost task would stall its partition
            self._fail(error, held)
        else:
            for one in held:
                self._acks.finish(one)
            self._room.set()

    def _fail(self, error: BaseException, held: Sequence[Held[Event]]) -> None:
        message = held[0].event.message
        # The error's own words are left out: validation errors quote their input.
        log.critical(
            "handler_failed",
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            events=len(held),
            error=type(error).__name__,
            where=[f"{at.filename}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)][-5:],
        )
        if not self._failure.done():
            place = f"{message.topic}/{message.partition}@{message.offset}"
            self._failure.set_result(HandlerError(f"{type(error).__name__} at {place}"))

    async def _until_failed_or_overdue(self) -> None:
        stopped = asyncio.create_task(self._app.wait_until_stopped())
        try:
            either: set[asyncio.Future[Any]] = {stopped, self._failure}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        if not self._failure.done():
            await asyncio.wait({self._failure}, timeout=self._stop_limit_seconds)
        if self._failure.done() and self._calls:
            # Those that are done let their partitions go on, even if the failing event comes again and again.
            await asyncio.wait(self._calls, timeout=self._stop_limit_seconds)

    async def _end_worker(self, reason: BaseException) -> None:
        # A crash ends the consumer's thread at once, and a commit after that waits for the thread for ever:
        # so the last commit comes first, and twice, since the first may only wait for one under way.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_COMMIT_LIMIT_SECONDS):
                await self._app.consumer.commit()
                await self._app.consumer.commit()
        await self._app.crash(reason)


def _release(event: Event) -> None:
    # To Faust it is settled, so nothing waits for it; but only `ack` would have let its offset be committed.
    event.message.acked = True


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _is_cancelled_from_outside() -> bool:
    """Tell the cancelling of our task from a CancelledError that the handler let escape."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
