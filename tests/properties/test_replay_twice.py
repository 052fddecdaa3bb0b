"""The whole pipeline on the twins: delivered any number of times, cut anywhere, with replies lost on the way.

Kafka brings messages again from an earlier offset, in their order; a store or a broker may do what it is asked and
fail to say so; judges answer in any order between two markers. None of it may change a figure.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from random import Random  # noqa: TID251 - drawn from a seed
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitor.adapters.redis_functions import StoreUnavailable
from monitor.hops.inbound import Inbound
from monitor.judging.judgment import Judgment
from monitor.judging.rubric import TargetKind
from monitor.sampling.decision import Decision
from tests.events import MINUTE, NOON, an_event, messages
from tests.world import LATER, FakeJudge, World, kept, mark

CONVERSATIONS = 4
INTENTS = ("returns", "billing")
PARTITIONS = 2
REWINDS_MAX = 6
Hop = Callable[[Sequence[Inbound]], Awaitable[None]]

kinds = st.sampled_from(
    ["turn", "turn", "turn", "turn", "end", "feedback", "conversation", "summary", "junk"]
)
arrivals = st.tuples(
    kinds,
    st.integers(0, CONVERSATIONS - 1),
    st.one_of(st.none(), st.integers(0, 3)),
    st.integers(-40, 20),
    st.integers(0, 7),
)
"""A kind, a conversation, a turn's index, minutes before or after the stream's time, an id of its own or not."""


def a_stream(drawn: list[tuple[str, int, int | None, int, int]]) -> dict[int, list[Inbound]]:
    """Build what the sampler sends on: each conversation on its partition, markers that only rise."""
    stream: dict[int, list[Inbound]] = {partition: [] for partition in range(PARTITIONS)}
    for step, (kind, number, index, minutes, own) in enumerate(drawn):
        moment = NOON + 12 * step * MINUTE
        partition, name = number % PARTITIONS, f"c{number}"
        here = stream[partition]
        source = f"conversation-events/{partition}/{len(here)}"
        if kind == "junk":
            here.append(kept(b"{", len(here), partition=partition, source=source))
        else:
            event_id = f"{name}-{kind}-{index}-{own if own < 3 else step}"
            event = an_event(
                name,
                index,
                kind=kind,
                at=moment + minutes * MINUTE,
                event_id=event_id,
                intent=INTENTS[number % 2],
            )
            if kind == "turn" and own == 7:
                event["messages"] = messages(answer="")
            promoted = number == CONVERSATIONS - 1 and kind != "conversation"
            decision = Decision(kept=True, rule="r", rate=1.0, first_rate=None if promoted else 0.5)
            here.append(
                kept(
                    json.dumps(event).encode(),
                    len(here),
                    decision=decision,
                    partition=partition,
                    source=source,
                )
            )
        if step % 3 == 2:
            for one, there in stream.items():
                there.append(mark(moment, len(there), partition=one))
    for one, there in stream.items():
        there.append(mark(LATER, len(there), partition=one))
    return stream


async def patiently(work: Callable[[], Awaitable[None]]) -> None:
    for _ in range(1000):
        try:
            await work()
        except StoreUnavailable:
            continue
        return
    raise AssertionError("it never succeeded")


async def deliver(stream: Sequence[Inbound], hop: Hop, chance: Random) -> None:
    """Deliver in batches of any size, now and then from an earlier offset."""
    place, rewinds = 0, 0
    while place < len(stream):
        batch = stream[place : place + chance.randint(1, 6)]
        await patiently(lambda batch=batch: hop(batch))  # type: ignore[misc]
        place += len(batch)
        if rewinds < REWINDS_MAX and chance.random() < 0.3:
            rewinds += 1
            place -= chance.randint(0, place)


async def live(world: World, stream: dict[int, list[Inbound]], chance: Random) -> None:
    async def judge(batch: Sequence[Inbound]) -> None:
        between: list[Inbound] = []
        for one in batch:
            if not one.is_marker:
                between.append(one)
                continue
            await judge_in_any_order(between)
            between = []
            await world.pipeline.pass_marker(one)
        await judge_in_any_order(between)

    async def judge_in_any_order(requests: list[Inbound]) -> None:
        for one in chance.sample(requests, len(requests)):
            await world.pipeline.judge(one)

    hops: list[tuple[str | None, Hop]] = [
        (None, world.pipeline.assemble),
        ("judge-requests", judge),
        ("judgments", world.pipeline.aggregate),
    ]
    for topic, hop in hops:
        for partition in range(PARTITIONS):
            here = stream[partition] if topic is None else world.on(topic)
            await deliver([one for one in here if one.position.partition == partition], hop, chance)


async def live_cleanly(world: World, stream: dict[int, list[Inbound]]) -> None:
    for partition in range(PARTITIONS):
        await world.run(stream[partition])


async def figures(world: World) -> dict[str, Any]:
    span = (NOON - timedelta(days=1), LATER)
    return {
        "funnel": await world.conversations.funnel(),
        "outcomes": {
            name: (explained.outcomes, explained.duplicates, explained.due, explained.end_reason)
            for name in (f"c{number}" for number in range(CONVERSATIONS))
            for explained in [await world.conversations.explain(name)]
        },
        "buckets": {
            scope.id: await world.windows.buckets(scope, *span) for scope in await world.windows.scopes()
        },
        "units": await world.windows.units(),
        "alerts": {alert.fingerprint: alert.total for alert in await world.alerts.all()},
        "review": {item.judgment_id for item in await world.review.waiting(10_000)},
        "time": await world.clock.read("aggregate"),
        "judged": {one.judgment_id: one.outcome for one in world.records()},
    }


def fails(name: str) -> bool:
    """Let the judge fail on some, the same ones whenever it is asked."""
    return sum(name.encode()) % 5 == 0


# A marker came again after what followed it, at its very time.
A_MARKER_AGAIN = [
    ("turn", 0, None, 0, 0),
    *[("turn", 1, None, 0, 0)] * 5,
    ("conversation", 0, None, -12, 1),
    ("conversation", 0, None, -24, 0),
]


@given(st.lists(arrivals, min_size=1, max_size=18), st.integers(0, 2**32))
@example(A_MARKER_AGAIN, 4)
@settings(max_examples=45, deadline=None)
def test_trouble_changes_no_figure(drawn: list[tuple[str, int, int | None, int, int]], seed: int) -> None:
    """At least once in the delivery, exactly once in the effect."""
    stream = a_stream(drawn)
    chance = Random(seed)  # noqa: S311 - a test's dice
    trouble = (chance.random() < 0.1 for _ in iter(int, 1))

    async def both() -> tuple[dict[str, Any], dict[str, Any], World]:
        clean = World(judge=FakeJudge(fails=fails))
        await live_cleanly(clean, stream)
        troubled = World(judge=FakeJudge(fails=fails), trouble=trouble)
        await live(troubled, stream, chance)
        return await figures(clean), await figures(troubled), clean

    clean, troubled, world = asyncio.run(both())

    for name, figure in clean.items():
        assert troubled[name] == figure, name
    nothing_is_lost(clean, stream)
    nothing_counts_twice(clean, world)


def nothing_is_lost(said: dict[str, Any], stream: dict[int, list[Inbound]]) -> None:
    """Every message that is no marker has one outcome, and none is open."""
    outcomes: dict[str, int] = {}
    for name, count in said["funnel"].items():
        kind, _, outcome = name.partition("|")
        if not kind.startswith(("judgment:", "closed")):
            outcomes[outcome] = outcomes.get(outcome, 0) + count
    assert sum(outcomes.values()) == sum(not one.is_marker for there in stream.values() for one in there)
    assert not {"waiting", "queued"} & set(outcomes)


def nothing_counts_twice(said: dict[str, Any], world: World) -> None:
    """Compare the units in the windows with the distinct (conversation, dimension) that stand for others."""
    judged = {
        (one.target.conversation_id, score.dimension)
        for one in world.records()
        if isinstance(one, Judgment) and one.target.kind is TargetKind.CONVERSATION
        for score in one.scores
    }
    superseded = {
        one.target.conversation_id: one
        for one in sorted(world.records(), key=lambda record: record.target.revision)
        if one.target.kind is TargetKind.CONVERSATION
    }
    last_failed = {name for name, one in superseded.items() if not isinstance(one, Judgment)}
    assert said["units"] == len({pair for pair in judged if pair[0] not in last_failed})
