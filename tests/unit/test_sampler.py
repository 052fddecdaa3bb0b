"""Batches at the sampler: what is forwarded, counted, remembered and buried."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

from monitor.intake.decode import Fault
from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.sampling.decision import Kept
from monitor.sampling.policy import SamplingPolicy
from monitor.sampling.sampler import (
    BUCKET_SECONDS,
    DECISION_HEADER,
    SOURCE_HEADER,
    Sampled,
    Sampler,
    decode_decision,
)
from tests.events import HOUR, NOON, raw

SOURCE = ("conversation-events", 0)
NOON_BUCKET = int(NOON.timestamp()) // BUCKET_SECONDS * BUCKET_SECONDS
NOTHING = {"default_rate": 0.0}
EVERYTHING = {"default_rate": 1.0}


class Message:
    """A consumed message, in the shape of confluent-kafka."""

    def __init__(self, offset: int, value: bytes | None, partition: int = 0) -> None:
        self._place = (offset, partition)
        self._value = value

    def topic(self) -> str:
        return "conversation-events"

    def partition(self) -> int:
        return self._place[1]

    def offset(self) -> int:
        return self._place[0]

    def value(self) -> bytes | None:
        return self._value


def a_sampler(
    policy: dict[str, Any], *, max_ahead: timedelta | None = None, **words: tuple[str, ...]
) -> Sampler:
    return Sampler(
        SamplingPolicy.model_validate({"cohort": "main"} | policy),
        IntentClassifier(IntentPolicy(keywords=words)),
        partitions=4,
        max_bytes=2000,
        max_ahead=max_ahead,
    )


def take(sampler: Sampler, *values: bytes | None, first: int = 0, partition: int = 0) -> Sampled:
    messages = [Message(first + place, value, partition) for place, value in enumerate(values)]
    return sampler.take(messages, now=NOON)


def decided(sampled: Sampled) -> list[tuple[bytes, str, float, float | None]]:
    decisions = (decode_decision(dict(forward.headers)[DECISION_HEADER]) for forward in sampled.forward)
    return [
        (forward.headers[1][1], one.rule, one.rate, one.first_rate)
        for forward, one in zip(sampled.forward, decisions, strict=True)
    ]


def outcomes(sampled: Sampled) -> Counter[str]:
    return sum((tally.dropped for tally in sampled.tallies.values()), Counter())


def census(sampled: Sampled) -> dict[tuple[int, str, str], int]:
    return {
        (bucket, *cell): count
        for tally in sampled.tallies.values()
        for bucket, cells in tally.census.items()
        for cell, count in cells.items()
    }


def test_a_kept_event_goes_on_as_it_came_with_its_decision_and_its_source() -> None:
    """The assembler has nothing else to tell why it is here, and whether it was here before."""
    value = raw("c1", 0)
    sampled = take(a_sampler({"default_rate": 1.0}), b"{", value)

    [forward] = sampled.forward
    headers = dict(forward.headers)
    assert (forward.key, forward.value) == (b"c1", value)
    assert headers[SOURCE_HEADER] == b"conversation-events/0/1"
    decision = decode_decision(headers[DECISION_HEADER])
    assert (decision.kept, decision.rule, decision.rate, decision.first_rate) == (
        True,
        "base:default",
        1.0,
        1.0,
    )


def test_events_of_one_conversation_go_to_one_partition() -> None:
    """Its order is that of its partition; all partitions are used."""
    sampler = a_sampler(EVERYTHING)
    sampled = take(sampler, *(raw(f"c{n % 50}", n // 50, kind="turn") for n in range(200)))

    places = {(forward.key, forward.partition) for forward in sampled.forward}
    assert len(places) == 50
    assert {partition for _, partition in places} == {0, 1, 2, 3}


def test_each_event_that_is_not_forwarded_has_one_outcome() -> None:
    """Forwarded and dropped together are what came."""
    values = [
        raw("c1", 0),
        raw("c1", 1),
        raw("c2", 0, kind="end"),
        b"{",
        b"",
        None,
        b"x" * 3000,
        raw("c3", -1),
    ]
    values.append(raw("c4", 0, signals={"escalated": True}))
    sampled = take(a_sampler(NOTHING | {"priority": {"escalated": 1.0}}), *values)

    assert outcomes(sampled) == {
        "sampled_out:base:default": 1,
        "sampled_out:base:not_kept": 2,
        "undecodable": 3,
        "oversize": 1,
        "invalid": 1,
    }
    assert outcomes(sampled).total() + len(sampled.forward) == len(values)
    assert [(record.offset(), rejected.fault) for record, rejected in sampled.buried] == [
        (3, Fault.UNDECODABLE),
        (4, Fault.UNDECODABLE),
        (5, Fault.UNDECODABLE),
        (6, Fault.OVERSIZE),
        (7, Fault.INVALID),
    ]
    assert sampled.tallies[SOURCE].next_offset == len(values)


def test_an_intent_that_no_event_carries_is_read_from_the_first_message() -> None:
    """The stratum decides on the rate."""
    policy = {"default_rate": 0.0, "rates": [{"match": {"intent": "shipping"}, "rate": 1.0}]}
    sampler = a_sampler(policy, shipping=("parcel",))

    sampled = take(sampler, raw("c1", 0), raw("c2", 0, intent="other"), raw("c3", 1))

    assert [forward.key for forward in sampled.forward] == [b"c1"]


def test_a_batch_that_was_not_counted_is_decided_on_anew_and_in_the_same_way() -> None:
    """A kill between delivery and count: what goes out again must be what went out before."""
    policy = {"default_rate": 0.5, "priority": {"thumbs_down": 1.0}}
    values = [raw(f"c{n}", 0) for n in range(50)]
    values += [raw(f"c{n}", kind="feedback") for n in range(50)] + [b"{"]
    first, again = a_sampler(policy), a_sampler(policy)
    for sampler in (first, again):
        sampler.own(SOURCE, {"c0": Kept(1.0, None, "priority:thumbs_down")}, 0)

    before, after = take(first, *values), take(again, *values)

    assert decided(before) == decided(after)
    assert outcomes(before) == outcomes(after)
    assert 60 < len(before.forward) < 90


def test_a_batch_that_was_counted_has_had_all_its_outcomes() -> None:
    """Decided anew, with promotions known that came later, an event that was dropped would be kept as well."""
    sampler = a_sampler(NOTHING | {"priority": {"thumbs_down": 1.0}})
    values = [raw("c1", 0), raw("c1", kind="feedback"), b"{"]
    first = take(sampler, *values)
    assert outcomes(first).total() + len(first.forward) == 3

    again = take(sampler, *values)

    assert (again.forward, again.buried, outcomes(again), census(again)) == ([], [], {}, {})
    assert again.tallies[SOURCE].next_offset == 3
    assert again.tallies[SOURCE].newest == NOON


def test_of_a_batch_that_is_half_known_the_new_half_counts() -> None:
    """After a kill the first batch is cut elsewhere; its first counted offset tells the store that it is fresh."""
    sampler = a_sampler(NOTHING)
    sampler.own(SOURCE, {}, 3)

    sampled = take(sampler, *(raw(f"c{n}", 0) for n in range(5)))

    tally = sampled.tallies[SOURCE]
    assert (tally.first_offset, tally.next_offset) == (3, 5)
    assert outcomes(sampled) == {"sampled_out:base:default": 2}
    assert sum(census(sampled).values()) == 2


def test_of_a_batch_that_is_wholly_known_nothing_counts() -> None:
    """Its offsets must not turn those back that are stored."""
    sampler = a_sampler(NOTHING)
    sampler.own(SOURCE, {}, 10)

    tally = take(sampler, raw("c1", 0), raw("c2", 0)).tallies[SOURCE]

    assert (tally.first_offset, tally.next_offset) == (10, 2)
    assert not tally.dropped
    assert not tally.census


def test_what_another_worker_kept_stays_kept() -> None:
    """Its later turns would be lost in the middle of a conversation."""
    sampler = a_sampler(NOTHING)
    sampler.own(SOURCE, {"c1": Kept(1.0, None, "priority:escalated")}, None)

    sampled = take(sampler, raw("c1", 5), raw("c2", 5))

    assert [forward.key for forward in sampled.forward] == [b"c1"]
    assert sampled.tallies[SOURCE].remember == {}

    sampler.disown(SOURCE)
    assert take(sampler, raw("c1", 6), first=9).forward == []


def test_a_promotion_is_remembered_and_keeps_the_rest() -> None:
    """From the batch itself, before anything is stored."""
    sampler = a_sampler(NOTHING | {"priority": {"thumbs_down": 1.0}})
    sampled = take(
        sampler, raw("c1", 0), raw("c1", kind="feedback"), raw("c1", 1), raw("c1", kind="end"), raw("c2", 1)
    )

    assert [json.loads(forward.value)["type"] for forward in sampled.forward] == ["feedback", "turn", "end"]
    assert sampled.tallies[SOURCE].remember == {"c1": Kept(1.0, None, "priority:thumbs_down")}


def test_memory_ends_with_the_hours_that_are_remembered() -> None:
    """A process that runs for months must not hold every conversation that it ever kept."""
    sampler = a_sampler({"default_rate": 1.0, "remember_hours": 2})
    sampler.own(SOURCE, {"old": Kept(1.0, 1.0, "base:default")}, None)
    take(sampler, raw("c1", 0))

    def kept_at(hours: int) -> set[bytes]:
        messages = [Message(100 + hours, raw("c1", 1)), Message(200 + hours, raw("old", 1))]
        return {forward.key for forward in sampler.take(messages, now=NOON + hours * HOUR).forward}

    assert kept_at(2) == {b"c1", b"old"}
    assert kept_at(3) == set()


def test_partitions_are_tallied_and_remembered_apart() -> None:
    """They may go to different workers with the next rebalance."""
    sampler = a_sampler(EVERYTHING)
    messages = [Message(7, raw("c1", 0), partition=0), Message(3, raw("c2", 0), partition=1)]

    sampled = sampler.take(messages, now=NOON)

    assert {source: (tally.first_offset, tally.next_offset) for source, tally in sampled.tallies.items()} == {
        ("conversation-events", 0): (7, 8),
        ("conversation-events", 1): (3, 4),
    }
    assert [set(tally.remember) for tally in sampled.tallies.values()] == [{"c1"}, {"c2"}]


def test_a_clock_marker_moves_the_time_and_is_counted_nowhere() -> None:
    """It is no event; a batch of markers only has nothing to store."""
    marker = json.dumps({"type": "clock", "time": (NOON + HOUR).isoformat()}).encode()
    tally = take(a_sampler(EVERYTHING), marker, marker).tallies[SOURCE]

    assert tally.newest == NOON + HOUR
    assert tally.next_offset == 2
    assert (dict(tally.dropped), dict(tally.census), tally.remember) == ({}, {}, {})


def test_an_event_dated_ahead_of_the_clock_is_invalid_and_moves_nothing() -> None:
    """One producer's wrong clock would open windows in the future and close conversations in the present."""
    sampler = a_sampler(EVERYTHING, max_ahead=HOUR)
    just, over = NOON + HOUR, NOON + HOUR + timedelta(microseconds=1)

    sampled = take(sampler, raw("c1", 0, at=just), raw("c2", 0, at=over))

    assert [forward.key for forward in sampled.forward] == [b"c1"]
    [(record, rejected)] = sampled.buried
    assert (record.offset(), rejected.fault) == (1, Fault.INVALID)
    assert "intake.max_ahead_seconds" in rejected.reason
    assert outcomes(sampled) == {"invalid": 1}
    assert sampled.tallies[SOURCE].newest == just


def test_on_the_streams_clock_no_event_is_ahead() -> None:
    """Time is what the events say."""
    assert len(take(a_sampler(EVERYTHING), raw("c1", 0, at=NOON + 1000 * HOUR)).forward) == 1
