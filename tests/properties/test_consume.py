"""Acks in order through `each` and `batches`, on a stream and an app that are not Faust's."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agents.consume import HandlerError, Progress, batches, each
from tests.streams import FakeApp, FakeEvent, FakeStream, until

PARTITIONS = st.integers(0, 2)
LIMIT_SECONDS = 5  # of a test on fakes; none needs a tenth of it


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), LIMIT_SECONDS))


EVENTS = st.lists(st.tuples(PARTITIONS, st.integers(0, 4)), max_size=30)


@given(events=EVENTS, concurrency=st.integers(1, 5), unacked_max=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_each_acks_all_in_order_whatever_the_calls_take(
    events: list[tuple[int, int]], concurrency: int, unacked_max: int
) -> None:
    """A slow call must hold back the acks behind it, and must not lose them."""

    async def test() -> None:
        stream = FakeStream()
        running: list[FakeEvent] = []

        async def handle(event: FakeEvent) -> None:
            running.append(event)
            assert len(running) <= concurrency
            for _ in range(event.value):
                await asyncio.sleep(0)
            running.remove(event)

        for partition, turns in events:
            stream.put(turns, partition=partition)
        stream.end()
        await each(FakeApp(), stream, handle, concurrency=concurrency, unacked_max=unacked_max)

        for partition in {partition for partition, _ in events}:
            offsets = [one.message.offset for one in stream.acked if one.message.partition == partition]
            assert offsets == list(range(stream.offsets[partition]))

    run(test)


@given(events=EVENTS, size=st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_batches_keep_the_order_and_come_one_at_a_time(events: list[tuple[int, int]], size: int) -> None:
    """Batches of the same bucket that overlapped would overwrite each other's effects."""

    async def test() -> None:
        stream = FakeStream()
        seen: list[FakeEvent] = []
        running: list[FakeEvent] = []

        async def handle(batch: list[FakeEvent]) -> None:
            assert not running
            running.extend(batch)
            assert 1 <= len(batch) <= size
            await asyncio.sleep(0)
            seen.extend(batch)
            running.clear()

        put = [stream.put(turns, partition=partition) for partition, turns in events]
        stream.end()
        await batches(FakeApp(), stream, handle, size=size, linger_seconds=0.5)

        assert seen == put
        assert stream.acked == put

    run(test)


def test_an_idle_stream_still_flushes_a_batch() -> None:
    """The last judgments of the night must not wait for the first ones of the morning."""

    async def test() -> None:
        stream = FakeStream()
        seen: list[list[str]] = []

        async def handle(batch: list[FakeEvent]) -> None:
            seen.append([event.value for event in batch])

        consuming = asyncio.create_task(batches(FakeApp(), stream, handle, size=100, linger_seconds=0.02))
        stream.put("a")
        stream.put("b")
        await until(lambda: len(stream.acked) == 2)
        assert seen == [["a", "b"]]
        consuming.cancel()

    run(test)


@pytest.mark.parametrize("error", [ValueError("said the user"), asyncio.CancelledError("said the user")])
def test_a_failing_handler_ends_the_worker_and_its_event_is_not_acked(error: BaseException) -> None:
    """Faust would ack it; then it is gone. And neither the log nor the reason may quote a user."""

    async def test() -> None:
        app, stream = FakeApp(), FakeStream()

        async def handle(event: FakeEvent) -> None:
            if event.value == "bad":
                raise error
            await asyncio.sleep(0.01)

        events = [stream.put(value) for value in ("first", "bad", "behind")]
        with capture_logs() as logs:
            await each(app, stream, handle, concurrency=3)

        assert stream.acked == events[:1], "the calls before it were given their time"
        assert app.done[:-1] == ["commit", "commit"], "a crash stops the consumer, so the commit comes first"
        assert isinstance(app.done[-1], HandlerError)
        assert str(app.done[-1]) == f"{type(error).__name__} at events/0@1"
        assert [entry["event"] for entry in logs] == ["handler_failed"]
        assert "said the user" not in str(logs)

    run(test)


def test_a_batch_that_fails_is_not_followed_by_another() -> None:
    """The next one would be acked past it."""

    async def test() -> None:
        app, stream = FakeApp(), FakeStream()
        calls: list[list[FakeEvent]] = []

        async def handle(batch: list[FakeEvent]) -> None:
            calls.append(batch)
            raise ValueError

        for value in range(6):
            stream.put(value)
        with capture_logs():
            await batches(app, stream, handle, size=2, linger_seconds=0.01)

        assert len(calls) == 1
        assert stream.acked == []
        assert isinstance(app.done[-1], HandlerError)

    run(test)


def test_a_stream_that_breaks_ends_the_worker() -> None:
    """An agent that Faust restarted here would have lost count of what was in hand."""

    async def test() -> None:
        app, broken = FakeApp(), ConnectionError("gone")

        class BreakingStream(FakeStream):
            async def events(self) -> AsyncIterator[FakeEvent]:
                raise broken
                yield  # makes it a generator

        async def handle(_: FakeEvent) -> None: ...

        await each(app, BreakingStream(), handle, concurrency=1)

        assert app.done[-1] is broken

    run(test)


def test_a_stopping_worker_waits_for_its_calls_but_not_for_ever() -> None:
    """A call that hangs must not keep the process until it is killed."""

    async def test() -> None:
        app, stream = FakeApp(), FakeStream()

        async def handle(event: FakeEvent) -> None:
            await asyncio.sleep(event.value)

        events = [stream.put(0.02), stream.put(3600), stream.put(0)]
        consuming = asyncio.create_task(each(app, stream, handle, concurrency=3, stop_limit_seconds=0.1))
        app.stopped.set()
        await consuming

        assert stream.acked == events[:1]
        assert all(event.message.acked for event in events), "Faust waits for none of them"
        assert app.done == [], "a stop is not a failure"

    run(test)


def test_calls_that_outlive_their_generation_ack_nothing() -> None:
    """Their partitions may be somebody else's by now."""

    async def test() -> None:
        app, stream, go = FakeApp(), FakeStream(), asyncio.Event()

        async def handle(_: FakeEvent) -> None:
            await go.wait()

        event = stream.put(0)
        consuming = asyncio.create_task(each(app, stream, handle, concurrency=3))
        await until(stream.queue.empty)
        app.consumer_generation_id = 2
        go.set()
        stream.end()
        await consuming

        assert stream.acked == []
        assert event.message.acked, "it is let go of, for Faust would wait for it in the next rebalance"

    run(test)


def test_progress_tells_how_long_the_oldest_event_has_waited() -> None:
    """A stalled partition looks healthy from outside: the worker runs, and the others go on."""

    async def test() -> None:
        now = 100.0
        progress = Progress(lambda: now)
        stream, go = FakeStream(), asyncio.Event()
        assert progress.oldest_undone_seconds() == 0

        async def handle(event: FakeEvent) -> None:
            if event.value == "slow":
                await go.wait()

        consuming = asyncio.create_task(each(FakeApp(), stream, handle, concurrency=2, progress=progress))
        stream.put("slow")
        await until(progress.unacked)
        now = 107.5
        stream.put("quick", partition=1)
        stream.put("quick")
        await until(lambda: len(stream.acked) == 1)
        assert progress.oldest_undone_seconds() == 7.5
        assert progress.unacked() == 2

        go.set()
        await until(lambda: len(stream.acked) == 3)
        assert progress.oldest_undone_seconds() == 0
        consuming.cancel()

    run(test)


def test_a_slow_head_bounds_what_is_taken() -> None:
    """Without a bound a stuck partition would fill the memory with acks that may not be given."""

    async def test() -> None:
        stream, go = FakeStream(), asyncio.Event()
        started: list[int] = []

        async def handle(event: FakeEvent) -> None:
            started.append(event.value)
            if event.value == 0:
                await go.wait()

        for value in range(20):
            stream.put(value)
        stream.end()
        consuming = asyncio.create_task(each(FakeApp(), stream, handle, concurrency=2, unacked_max=5))
        await asyncio.sleep(0.05)
        assert started == [0, 1, 2, 3, 4]
        go.set()
        await consuming
        assert len(stream.acked) == 20

    run(test)


@pytest.mark.parametrize("stream", [{"concurrency_index": 0}, {"active_partitions": set()}])
async def test_an_agent_that_shares_or_loses_partitions_is_refused(stream: dict[str, Any]) -> None:
    """Faust's own concurrency hands the events of one partition to several actors."""

    async def handle(_: FakeEvent) -> None: ...

    with pytest.raises(ValueError, match="concurrency 1"):
        await each(FakeApp(), FakeStream(**stream), handle, concurrency=1)
