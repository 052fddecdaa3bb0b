"""What is always true of sampling: raising a rate only adds, and every replay decides the same."""

import json
from collections.abc import Iterable, Sequence
from random import Random  # noqa: TID251 - drawn from a seed
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.adapters.memory_sampling import MemorySampling
from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.sampling.policy import SamplingPolicy
from monitor.sampling.sampler import DECISION_HEADER, SOURCE_HEADER, Forward, Sampler, decode_decision
from monitor.sampling.store import Source
from tests.confluent import EVENTS, FakeMessage
from tests.events import MINUTE, NOON, an_event

SOURCE = Source("cluster", EVENTS, "id", 0)


def a_sampler(policy: SamplingPolicy) -> Sampler:
    return Sampler(policy, IntentClassifier(IntentPolicy()), partitions=1, max_bytes=100_000, max_ahead=None)


def forwarded(policy: SamplingPolicy, values: Sequence[bytes]) -> list[Forward]:
    records = [FakeMessage(value, offset) for offset, value in enumerate(values)]
    return a_sampler(policy).take(records, now=NOON).forward


names = st.sampled_from([f"c{number}" for number in range(12)])
rates = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]))
signals = st.sampled_from(
    [{}, {}, {"thumb": "down"}, {"escalated": True}, {"fallback": True}, {"thumb": "up", "refused": True}]
)
kinds = st.sampled_from(["turn", "turn", "turn", "conversation", "end", "feedback", "summary"])


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Draw traffic: anything in any order, some of it twice."""
    values = []
    for number in range(draw(st.integers(1, 40))):
        kind = draw(kinds)
        said = draw(signals) or ({"thumb": "down"} if kind == "feedback" else {})
        event = an_event(
            draw(names),
            draw(st.sampled_from([None, 0, 1, 2])),
            kind=kind,
            at=NOON + draw(st.integers(-200, 200)) * MINUTE,
            event_id=f"e{number}",
            intent=draw(st.sampled_from(["refunds", "other"])),
            signals=said,
            served_by={"prompt_hash": draw(st.sampled_from([None, "p1", "p2", "p3"]))},
        )
        values.append(json.dumps(event).encode())
    return values


def a_policy(drawn: dict[str, float | None]) -> SamplingPolicy:
    priority: dict[str, Any] = {name: drawn[name] for name in ("escalated", "thumbs_down", "fallback_model")}
    if drawn["new_prompt_hash"] is not None:
        priority["new_prompt_hash"] = {"rate": drawn["new_prompt_hash"], "for_hours": 2}
    return SamplingPolicy.model_validate(
        {
            "cohort": "main",
            "default_rate": drawn["default"] or 0.0,
            "rates": [{"match": {"intent": "refunds"}, "rate": drawn["refunds"] or 0.0}],
            "priority": priority,
        }
    )


RATES = ("default", "refunds", "escalated", "thumbs_down", "fallback_model", "new_prompt_hash")


@given(
    streams(),
    st.fixed_dictionaries(dict.fromkeys(RATES, rates)),
    st.fixed_dictionaries(dict.fromkeys(RATES, rates)),
)
@settings(max_examples=120, deadline=None)
def test_raising_rates_only_adds(
    stream: list[bytes], low: dict[str, float | None], other: dict[str, float | None]
) -> None:
    """Whoever raises a rate keeps the series that he has, and only makes it surer."""
    high = {
        name: max(rate, other[name] or 0.0) if (rate := low[name]) is not None else other[name]
        for name in RATES
    }

    fewer = {one.headers[1][1] for one in forwarded(a_policy(low), stream)}
    more = {one.headers[1][1] for one in forwarded(a_policy(high), stream)}

    assert fewer <= more


Decided = tuple[bytes, str, float, float | None]


def decided(forwards: Iterable[Forward]) -> list[Decided]:
    found = []
    for forward in forwards:
        headers = dict(forward.headers)
        decision = decode_decision(headers[DECISION_HEADER])
        found.append((headers[SOURCE_HEADER], decision.rule, decision.rate, decision.first_rate))
    return found


@given(streams(), st.fixed_dictionaries(dict.fromkeys(RATES, rates)), st.randoms(use_true_random=False))
@settings(max_examples=120, deadline=None)
def test_every_replay_and_every_cut_decide_the_same(
    stream: list[bytes], drawn: dict[str, float | None], chance: Random
) -> None:
    """Killed between any two steps, with batches cut anywhere; and what was counted is counted once."""
    policy = a_policy(drawn)
    records = [FakeMessage(value, offset) for offset, value in enumerate(stream)]
    whole = a_sampler(policy).take(records, now=NOON)
    store, found = MemorySampling(remember_hours=26), {}

    place, kills = 0, 0
    sampler = restarted(policy, store)
    while place < len(records):
        batch = records[place : place + chance.randint(1, 9)]
        sampled = sampler.take(batch, now=NOON)
        for one in decided(sampled.forward):
            assert found.setdefault(one[0], one) == one
        killed = chance.random() < 0.3 and kills < 5
        if killed and chance.random() < 0.5:
            # Before the count: all of it is read again.
            kills, sampler = kills + 1, restarted(policy, store)
            continue
        store.share(sampler.prompts.sightings)
        sampler.prompts.sightings.clear()
        for tally in sampled.tallies.values():
            store.record(SOURCE, tally, now=NOON)
        if killed:
            # Before the commit: some of what was counted is read again.
            kills, sampler = kills + 1, restarted(policy, store)
            place -= chance.randint(0, place)
        else:
            place += len(batch)

    assert sorted(found.values()) == sorted(decided(whole.forward))
    [tally] = whole.tallies.values()
    assert store.funnel() == dict(sorted(tally.dropped.items()))
    assert sum(store.funnel().values()) + len(found) == len(stream)


def restarted(policy: SamplingPolicy, store: MemorySampling) -> Sampler:
    sampler = a_sampler(policy)
    kept, counted_through = store.remembered(SOURCE, now=NOON)
    sampler.own((EVENTS, 0), kept, counted_through)
    for one in store.share({}):
        sampler.prompts.learn((one.assistant, one.environment), one.prompt_hash, one.first_seen)
    return sampler
