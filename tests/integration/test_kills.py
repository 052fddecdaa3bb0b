"""`kill -9` on a real Apache Kafka: of the worker that judges, of the sampler, of the worker that aggregates.

Each scenario runs once, and several tests look at what it left behind. Longer ones are in tests/faults/.
"""

import json
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agents.services import sampling_store
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.funnel import Funnel
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.sampling.sampler import SOURCE_HEADER
from monitor.topics import CONVERSATION_EVENTS, JUDGE_REQUESTS, JUDGMENTS, SAMPLED_EVENTS
from monitor.windows.bucket import BucketCounts, Scope
from tests.judgments import a_judgment
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    WAIT_LIMIT_SECONDS,
    dead_letters_of,
    double_counted,
    drained,
    kept_ids,
    now,
    read,
    records_of,
    wait_until,
    whole,
)
from tests.servers.doomed_sampler import POINTS
from tests.servers.held_judge import HeldJudge
from tests.servers.house import House, a_house, partition_of

pytestmark = pytest.mark.kafka

COMMIT_SECONDS = 1.0
"""`broker_commit_interval` of agents/app.py."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


# --- the worker that judges, with a slow judgment in hand and quick ones done before and behind it

PLACES = {0: "at offset 0", 1: "at the committed offset", 2: "behind the committed offset"}
PER_CONVERSATION = 2
"""Requests for a conversation of one turn that is told in one piece: its turn's and its own."""
EARLY, BEFORE, BEHIND = 5, 2, 10


@dataclass
class SlowJudgments:
    """What happened when the judging worker was killed with slow judgments in hand."""

    sent: int
    slow: dict[int, str]
    committed: dict[int, int]
    """What was committed of the judge requests when the worker was killed."""
    funnel: Funnel
    calls: dict[str, dict[str, int]]
    records: list[Judgment | JudgeFailure]
    double: int


@pytest.fixture(scope="module")
def slow_judgments(apache_kafka: ApacheKafka, folder: Path) -> Iterator[SlowJudgments]:
    with HeldJudge().serving() as judge:
        house_of_three = a_house(
            apache_kafka,
            folder,
            "slow",
            topics={"partitions": len(PLACES)},
            clock={"kind": "wall", "tick_seconds": 0.1},
            judge={
                "backend": "llm",
                "model": "stub",
                "base_url": judge.url,
                "probe": False,
                "timeout_seconds": 15.0,
            },
        )
        with house_of_three as house:
            yield _killed_with_slow_judgments(house, judge)


def _killed_with_slow_judgments(house: House, judge: HeldJudge) -> SlowJudgments:
    house.running.sample()
    house.running.work("judging", "assemble", "judge")
    house.running.work("aggregate", "aggregate")
    names: dict[int, list[str]] = {place: [] for place in PLACES}
    for name in kept_ids(house.policy, "case", 150):
        names[partition_of(name, house.policy)].append(name)
    sent: list[str] = []

    def send(wanted: Mapping[int, int]) -> list[str]:
        batch = [names[place].pop() for place, count in wanted.items() for _ in range(count)]
        house.send(*(whole(name, at=now()) for name in batch))
        sent.extend(batch)
        return batch

    def judged(but: int = 0) -> None:
        drained(house.views, len(sent) - but, watched=house.running)

    def committed() -> dict[int, int]:
        return house.committed("judge", JUDGE_REQUESTS)

    send({1: EARLY, 2: EARLY})
    judged()
    early = EARLY * PER_CONVERSATION
    wait_until(lambda: committed() == {1: early, 2: early}, watched=house.running, told=committed)
    send({2: BEFORE})
    judged()
    slow = {place: names[place][-1] for place in PLACES}
    judge.hold(*slow.values())
    send(dict.fromkeys(PLACES, 1))
    wait_until(
        lambda: judge.waiting() == len(PLACES) * PER_CONVERSATION, watched=house.running, told=judge.waiting
    )
    send(dict.fromkeys(PLACES, BEHIND))
    judged(but=len(PLACES))
    # What can be committed is: whatever would be committed too much, is.
    before = (EARLY + BEFORE) * PER_CONVERSATION
    wait_until(lambda: committed().get(2) == before, watched=house.running, told=committed, limit=10)
    _ticks(house, seconds=3 * COMMIT_SECONDS)
    at_the_kill = committed()
    house.running.kill("judging")
    judge.release()
    house.running.start("judging")
    judged()
    house.wait_until_read("judge", JUDGE_REQUESTS)
    # The repeated judgments must have come to the windows before these are counted.
    house.wait_until_read("aggregate", JUDGMENTS)
    records = records_of(house.settings)
    return SlowJudgments(
        sent=len(sent),
        slow=slow,
        committed=at_the_kill,
        funnel=house.views.funnel(),
        calls=judge.calls(),
        records=records,
        double=double_counted(house.views, records),
    )


def _ticks(house: House, *, seconds: float) -> None:
    until = now() + timedelta(seconds=seconds)
    wait_until(lambda: now() > until, watched=house.running)


@pytest.mark.parametrize(
    ("place", "commit"),
    [
        pytest.param(0, None, id="at-offset-0"),
        pytest.param(1, EARLY * PER_CONVERSATION, id="at-the-committed-offset"),
        pytest.param(2, (EARLY + BEFORE) * PER_CONVERSATION, id="behind-the-committed-offset"),
    ],
)
def test_a_slow_judgment_outlives_its_worker(
    slow_judgments: SlowJudgments, place: int, commit: int | None
) -> None:
    """Faust alone commits past it as soon as the quick ones behind it are done; then it is gone."""
    own = [one for one in slow_judgments.records if one.target.conversation_id == slow_judgments.slow[place]]

    assert slow_judgments.committed.get(place) == commit
    assert {one.outcome for one in own} == {"judged"}
    assert len({one.judgment_id for one in own}) == PER_CONVERSATION


def test_every_event_is_judged_in_the_end(slow_judgments: SlowJudgments) -> None:
    """0 lost: waiting would count as lost."""
    assert slow_judgments.funnel.events == {"judged": slow_judgments.sent}
    assert slow_judgments.funnel.judgments == {
        "turn judged": slow_judgments.sent,
        "conversation judged": slow_judgments.sent,
    }


def test_repeated_judgments_count_once(slow_judgments: SlowJudgments) -> None:
    """All that was done behind the slow ones came again; no window knows it."""
    times = Counter(one.judgment_id for one in slow_judgments.records)

    assert sum(count > 1 for count in times.values()) >= len(PLACES) * BEHIND * PER_CONVERSATION
    assert len(times) == slow_judgments.sent * PER_CONVERSATION
    assert slow_judgments.double == 0


def test_what_was_paid_for_is_not_paid_again(slow_judgments: SlowJudgments) -> None:
    """Only the calls that were in flight when the worker died are made twice."""
    twice = {name for name, calls in slow_judgments.calls.items() if set(calls.values()) != {1}}

    assert len(slow_judgments.calls) == slow_judgments.sent
    assert twice == set(slow_judgments.slow.values())
    for name in twice:
        assert sorted(slow_judgments.calls[name].values()) == [2] * PER_CONVERSATION


# --- the sampler, at each point of a round

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


# --- the worker that aggregates, in mid-stream

CONVERSATIONS = 3000
KILL_AT = ((0.15, False), (0.5, True))
"""Shares of the units after which the worker is killed; the second time with batches in hand that wait for Redis."""


@dataclass
class Aggregated:
    """What the windows hold, and what they should."""

    units_at_kills: list[int]
    units: int
    wanted_units: int
    buckets: dict[Scope, Mapping[datetime, BucketCounts]]
    wanted: dict[Scope, Mapping[datetime, BucketCounts]]


def _judgments() -> list[Judgment]:
    """Return judgments of which some come twice, and some are superseded in another bucket."""
    noon = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=12)
    found: list[Judgment] = []
    for number in range(CONVERSATIONS):
        one = a_judgment(
            f"w{number:05d}",
            at=noon + timedelta(minutes=number % 300),
            scores={"safety": 1 + number % 5, "actionability": None if number % 7 == 0 else 4},
            intent=("returns", "billing", "shipping")[number % 3],
            rate=(1.0, 0.25)[number % 2],
        )
        found.append(one)
        if number % 9 == 4:
            found.append(found[-5])
        if number % 6 == 5:
            found.append(
                a_judgment(
                    f"w{number - 3:05d}", at=noon + timedelta(hours=6), revision=2, scores={"safety": 2}
                )
            )
    return found


@pytest.fixture(scope="module")
def aggregated(apache_kafka: ApacheKafka, folder: Path) -> Iterator[Aggregated]:
    with a_house(apache_kafka, folder, "windows", clock={"kind": "wall"}) as house:
        yield _killed_while_aggregating(house)


def _killed_while_aggregating(house: House) -> Aggregated:
    judgments = _judgments()
    house.produce(
        JUDGMENTS, ((one.target.conversation_id, one.model_dump_json().encode()) for one in judgments)
    )
    wanted = MemoryWindowStore(house.policy.monitor.windows)
    house.running.work("aggregate", "aggregate")
    answer = house.views._runner.run(_expected(wanted, judgments))
    wanted_units, wanted_buckets = answer
    seen = []
    for share, held_up in KILL_AT:
        wait_until(
            lambda share=share: house.views.units() > share * wanted_units, watched=house.running, every=0.02
        )
        with house.writes_held_up() if held_up else nullcontext():
            # What is committed of the batches in hand is committed now.
            _ticks(house, seconds=3 * COMMIT_SECONDS if held_up else 0)
            house.running.kill("aggregate")
        seen.append(house.views.units())
        house.running.start("aggregate")
    house.wait_until_read("aggregate", JUDGMENTS)
    start, end = min(one.observed_at for one in judgments), now()
    buckets = {
        scope: house.views._ask(
            lambda stores, scope=scope: stores.windows.buckets(scope, start - timedelta(hours=1), end)
        )
        for scope in house.views._ask(lambda stores: stores.windows.scopes())
    }
    return Aggregated(seen, house.views.units(), wanted_units, buckets, wanted_buckets)


async def _expected(
    twin: MemoryWindowStore, judgments: Sequence[Judgment]
) -> tuple[int, dict[Scope, Mapping[datetime, BucketCounts]]]:
    """Enter each judgment once into the twin, which no kill can reach."""
    at = now()
    await twin.apply(judgments, now=at)
    begin = min(one.observed_at for one in judgments) - timedelta(hours=1)
    return await twin.units(), {scope: await twin.buckets(scope, begin, at) for scope in await twin.scopes()}


def test_the_aggregate_worker_died_in_mid_stream(aggregated: Aggregated) -> None:
    """A test of kills that came too late proves nothing."""
    first, second = aggregated.units_at_kills

    assert 0 < first < second < aggregated.wanted_units


def test_buckets_are_exact_cell_by_cell(aggregated: Aggregated) -> None:
    """Judgments that came again after a kill change no count, nor do those that a later revision took out."""
    assert aggregated.units == aggregated.wanted_units
    assert aggregated.buckets == aggregated.wanted
