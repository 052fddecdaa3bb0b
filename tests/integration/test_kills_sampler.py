"""`kill -9` on a real Apache Kafka: of the sampler, at each point of a round.

The scenario runs once, and several tests look at what it left behind. Longer ones are in tests/faults/.
"""

import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.services import sampling_store
from monitor.sampling.sampler import SOURCE_HEADER
from monitor.topics import CONVERSATION_EVENTS, SAMPLED_EVENTS
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    WAIT_LIMIT_SECONDS,
    dead_letters_of,
    read,
)
from tests.servers.doomed_sampler import POINTS
from tests.servers.house import House, a_house

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


EVENTS = 20_000
TURNS = 4
SAMPLE_BATCH = 500
KILLS = [(point, rounds) for point, rounds in zip(POINTS, (3, 6, 2, 7, 4), strict=True)]
BUCKET_SECONDS = 900


@dataclass
class SampledTraffic:
    """What the samplers left behind, and what they should have."""

    exits: list[int]
    events: Sequence[bytes]
    dropped: dict[str, int]
    kept: list[bytes]
    """Where each message of sampled-events came from, repetitions included."""
    census: dict[tuple[int, str, str], int]
    letters: list[bytes]
    committed: int


def _traffic() -> Iterator[tuple[str, bytes]]:
    """Return conversations of four turns, some with a thumb at the end, and now and then what is no event."""
    begin = datetime(2026, 11, 2, 9, tzinfo=UTC)
    for number in range(EVENTS // (TURNS + 1)):
        name = f"c{number:05d}"
        at = begin + timedelta(seconds=3 * number)
        shared = {"conversation_id": name, "assistant": "shop", "intent": ("returns", "billing")[number % 2]}
        for turn in range(TURNS):
            said = {"event_id": f"{name}:t{turn}", "type": "turn", "turn_index": turn, "messages": []}
            yield name, json.dumps({**shared, **said, "occurred_at": at.isoformat()}).encode()
        if number % 50 == 7:
            yield name, b'{"event_id": "half a li' + name.encode()
        elif number % 20 == 3:
            thumb = {"event_id": f"{name}:f", "type": "feedback", "signals": {"thumb": "down"}}
            yield name, json.dumps({**shared, **thumb, "occurred_at": at.isoformat()}).encode()
        else:
            end = {"event_id": f"{name}:end", "type": "end"}
            yield name, json.dumps({**shared, **end, "occurred_at": at.isoformat()}).encode()


@pytest.fixture(scope="module")
def sampled_traffic(apache_kafka: ApacheKafka, folder: Path) -> Iterator[SampledTraffic]:
    with a_house(apache_kafka, folder, "sampler", clock={"kind": "wall"}) as house:
        yield _killed_while_sampling(house)


def _killed_while_sampling(house: House) -> SampledTraffic:
    events = list(_traffic())
    house.produce(CONVERSATION_EVENTS, events)
    exits = []
    for point, rounds in KILLS:
        doomed = house.running.start(
            point, "tests.servers.doomed_sampler", point, str(rounds), str(SAMPLE_BATCH)
        )
        exits.append(doomed.wait(WAIT_LIMIT_SECONDS))
        house.running.forget(point)

    def committed() -> int:
        return sum(house.committed("sample", CONVERSATION_EVENTS).values())

    at_the_last_kill = committed()
    house.running.sample()
    house.wait_until_read("sample", CONVERSATION_EVENTS)
    store = sampling_store(house.settings, house.policy)
    return SampledTraffic(
        exits=exits,
        events=[raw for _, raw in events],
        dropped=store.funnel(),
        kept=[dict(held.headers)[SOURCE_HEADER] for held in read(house.settings, SAMPLED_EVENTS)],
        census=store.census(),
        letters=[letter.value for letter in dead_letters_of(house.settings)],
        committed=at_the_last_kill,
    )


def test_each_sampler_died_in_the_middle_of_its_work(sampled_traffic: SampledTraffic) -> None:
    """A test of kills that came too late proves nothing."""
    assert sampled_traffic.exits == [-signal.SIGKILL] * len(POINTS)
    assert 0 < sampled_traffic.committed < EVENTS
    repeated = len(sampled_traffic.kept) - len(set(sampled_traffic.kept))
    assert repeated > SAMPLE_BATCH // 4


def test_each_event_is_dropped_or_kept_once(sampled_traffic: SampledTraffic) -> None:
    """Sampled-out and buried ones are counted, kept ones are in the topic: together they are all."""
    dropped = sum(sampled_traffic.dropped.values())

    assert dropped + len(set(sampled_traffic.kept)) == EVENTS
    assert set(sampled_traffic.dropped) == {
        "sampled_out:base:default",
        "sampled_out:base:not_kept",
        "undecodable",
    }


def test_the_census_is_exact(sampled_traffic: SampledTraffic) -> None:
    """Shares of signals over all traffic are what sampled figures are checked against."""
    wanted: Counter[tuple[int, str, str]] = Counter()
    for raw in sampled_traffic.events:
        try:
            event = json.loads(raw)
        except ValueError:
            continue
        seconds = int(datetime.fromisoformat(event["occurred_at"]).timestamp())
        bucket = seconds - seconds % BUCKET_SECONDS
        stratum = f"shop|production|{event['intent']}|unknown"
        wanted[bucket, stratum, event["type"]] += 1
        if "signals" in event:
            wanted[bucket, stratum, "thumb_down"] += 1

    assert sampled_traffic.census == dict(wanted)


def test_each_broken_event_is_a_dead_letter_once(sampled_traffic: SampledTraffic) -> None:
    """A letter is keyed by its source position, so a batch that is read again writes the same ones."""
    broken = [raw for raw in sampled_traffic.events if not raw.endswith(b"}")]

    assert sorted(sampled_traffic.letters) == sorted(broken)
    assert sampled_traffic.dropped["undecodable"] == len(broken)
