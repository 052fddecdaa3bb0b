"""The way to one endpoint: who goes next, who waits, and that no slot is ever lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from agents.consume import Progress, each
from agents.judge import attach
from monitor.adapters.endpoint_gate import EndpointGate, Ticket
from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_failures import Retryable
from monitor.judging.breaker import BreakerPolicy, Phase
from monitor.judging.limiter import Answer, LimiterPolicy
from monitor.metrics import NoMetrics
from tests.servers.stub_judge import StubJudge, serving
from tests.streams import FakeApp, FakeEvent, FakeStream, until

SOON = 0.05
BREAKS = BreakerPolicy(failures_in_a_row=2, open_seconds=SOON, open_max_seconds=SOON)


def a_gate(concurrency: int = 1, **limits: Any) -> EndpointGate:
    return EndpointGate(LimiterPolicy(concurrency_max=concurrency, **limits), BREAKS)


def end(gate: EndpointGate, ticket: Ticket, *, ok: bool | None = True) -> None:
    gate.leave(ticket, Answer.TAKEN if ok else Answer.UNKNOWN, ok=ok)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def broken(concurrency: int = 8) -> EndpointGate:
    """Return a gate whose endpoint has just gone down."""
    gate = a_gate(concurrency)
    for _ in range(BREAKS.failures_in_a_row):
        end(gate, await gate.enter(1), ok=False)
    return gate


@asynccontextmanager
async def in_line(gate: EndpointGate, *names: str, again: tuple[str, ...] = ()) -> AsyncIterator[list[str]]:
    """Put callers in line, each of which notes its turn and ends at once."""
    went: list[str] = []

    async def call(name: str) -> None:
        ticket = await gate.enter(1, again=name in again)
        went.append(name)
        end(gate, ticket)

    tasks = [asyncio.create_task(call(name)) for name in names]
    await settled()
    try:
        yield went
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class TestTheLine:
    """Who goes next."""

    async def test_first_come_first_served(self) -> None:
        gate = a_gate()
        first = await gate.enter(1)
        async with in_line(gate, "a", "b", "c") as went:
            assert went == []
            end(gate, first)

        assert went == ["a", "b", "c"]

    async def test_another_attempt_goes_before_first_ones(self) -> None:
        """Its deadline runs already; behind a long line it would be lost."""
        gate = a_gate()
        first = await gate.enter(1)
        async with in_line(gate, "a", "b", "again", again=("again",)) as went:
            end(gate, first)

        assert went == ["again", "a", "b"]

    async def test_whoever_gives_up_in_line_is_passed_over(self) -> None:
        gate = a_gate()
        first = await gate.enter(1)
        tired = asyncio.create_task(gate.enter(1))
        await settled()
        async with in_line(gate, "b") as went:
            tired.cancel()
            await settled()
            end(gate, first)

        assert went == ["b"]

    async def test_a_turn_that_comes_while_its_caller_gives_up_goes_to_the_next(self) -> None:
        """A slot that nobody gives back is gone for the life of the process."""
        gate = a_gate()
        first = await gate.enter(1)
        tired = asyncio.create_task(gate.enter(1))
        await settled()
        async with in_line(gate, "b") as went:
            end(gate, first)
            tired.cancel()
            with suppress(asyncio.CancelledError):
                await tired

        assert went == ["b"]

    async def test_to_leave_twice_gives_one_slot_back(self) -> None:
        gate = a_gate(2)
        first, second = await gate.enter(1), await gate.enter(1)
        end(gate, first)
        end(gate, first)
        third = await gate.enter(1)
        async with in_line(gate, "d") as went:
            assert went == []
            end(gate, second)
            end(gate, third)

    async def test_a_limit_a_minute_makes_wait_and_loses_nobody(self) -> None:
        gate = a_gate(8, requests_per_minute=2400)
        burst = [await gate.enter(1) for _ in range(8)]
        for ticket in burst:
            end(gate, ticket)

        async with in_line(gate, *(str(number) for number in range(200))) as went:
            assert len(went) < 200

        assert len(went) == 200
        gate.close()


class TestTheBreaker:
    """An endpoint that is down is left alone, and tried by one call at a time."""

    async def test_after_failures_in_a_row_calls_are_held(self) -> None:
        gate = await broken()

        assert (gate.phase, gate.holding) == (Phase.OPEN, True)

    async def test_one_call_tries_and_the_others_wait_for_how_it_ends(self) -> None:
        gate = await broken()

        probe = await gate.enter(1)
        async with in_line(gate, "a", "b") as went:
            assert (gate.phase, gate.holding, went) == (Phase.HALF_OPEN, True, [])
            end(gate, probe)

        assert went == ["a", "b"]
        assert (gate.phase, gate.holding) == (Phase.CLOSED, False)

    async def test_a_try_that_fails_holds_them_again(self) -> None:
        gate = await broken()

        end(gate, await gate.enter(1), ok=False)

        assert (gate.phase, gate.holding) == (Phase.OPEN, True)

    async def test_a_try_that_was_given_up_lets_another_try(self) -> None:
        """Else a worker that is stopped in the wrong moment would leave a gate that never opens."""
        gate = await broken()

        end(gate, await gate.enter(1), ok=None)

        assert (await gate.enter(1)).probe

    async def test_refusals_in_a_row_pause_everyone_for_as_long_as_asked(self) -> None:
        gate = a_gate(8)
        for _ in range(3):
            gate.leave(await gate.enter(1), Answer.REFUSED, ok=True, wait_seconds=SOON)

        assert (gate.phase, gate.holding) == (Phase.CLOSED, True)
        await gate.opened()
        assert not gate.holding

    async def test_a_real_endpoint_opens_and_closes_it(self) -> None:
        """The wiring: what the endpoint answers is what the gate is told."""
        stub = StubJudge({"500": 1.0})
        async with serving(stub):
            endpoint = Endpoint(api_key="k", base_url=stub.url, breaker=BREAKS)
            body = {"messages": [{"content": ""}, {"content": "ITEM-1"}]}
            for _ in range(2):
                with pytest.raises(Retryable):
                    await endpoint.post(body, tokens=1)
            assert endpoint.gate.holding
            stub.faults = {}
            await endpoint.post(body, tokens=1)
            assert not endpoint.gate.holding
            await endpoint.close()


class TestTheWorker:
    """While calls are held the worker takes nothing more: an outage waits in Kafka and not in memory."""

    async def test_nothing_is_begun_before_the_endpoint_is_back(self) -> None:
        gate = await broken()
        stream, begun = FakeStream(), list[FakeEvent]()

        async def handle(event: FakeEvent) -> None:
            begun.append(event)
            end(gate, await gate.enter(1))

        for _ in range(20):
            stream.put(0)
        stream.end()
        reading = asyncio.create_task(each(FakeApp(), stream, handle, concurrency=4, ready=gate.opened))
        await settled()

        assert begun == []
        assert stream.queue.qsize() == 20, "the one in hand, and the end, are all that changes places"
        await reading
        assert len(begun) == len(stream.acked) == 20

    async def test_a_wait_for_the_endpoint_is_no_stall(self) -> None:
        """Health would end a worker that does what it should."""
        gate = await broken()
        clock = 0.0
        progress = Progress(lambda: clock)
        progress.holds = lambda: gate.holding
        stream = FakeStream()
        stream.put(0)
        over = asyncio.Event()

        async def handle(event: FakeEvent) -> None:
            assert event
            await over.wait()

        reading = asyncio.create_task(each(FakeApp(), stream, handle, concurrency=1, progress=progress))
        await until(progress.unacked)
        clock = 500.0
        held = progress.oldest_undone_seconds()
        await gate.opened()
        end(gate, await gate.enter(1))
        clock = 507.0
        open_since = progress.oldest_undone_seconds()
        over.set()
        stream.end()
        await reading

        assert (held, open_since) == (0.0, 7.0)

    async def test_the_agent_of_the_judge_is_given_its_endpoints_gate(self) -> None:
        gate = await broken()
        app = _Agents()

        progress = attach(app, _Pipeline(app), concurrency=2, prefix="cm.", metrics=NoMetrics(), gate=gate)
        stream = FakeStream()
        stream.put(b"{}").message.headers = ()
        stream.end()
        reading = asyncio.create_task(app.agents["judge"](stream))
        await settled()

        assert progress.holds()
        assert app.judged == 0
        await reading
        assert app.judged == 1


class _Agents(FakeApp):
    """An app that keeps its agents by name."""

    def __init__(self) -> None:
        super().__init__()
        self.agents: dict[str, Any] = {}
        self.judged = 0

    def topic(self, name: str, **serializers: str) -> str:
        assert set(serializers.values()) == {"raw"}
        return name

    def agent(self, topic: str, *, name: str) -> Any:
        assert topic.startswith("cm.")
        return lambda handler: self.agents.setdefault(name, handler)


class _Pipeline:
    """Counts what it is given to judge."""

    def __init__(self, app: _Agents) -> None:
        self._app = app

    async def judge(self, message: Any) -> None:
        assert message
        self._app.judged += 1
