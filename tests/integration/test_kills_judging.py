"""`kill -9` on a real Apache Kafka: of the worker that judges, with slow judgments in hand.

Quick ones are done before and behind them.
The scenario runs once, and several tests look at what it left behind. Longer ones are in tests/faults/.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from monitor.funnel import Funnel
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.topics import JUDGE_REQUESTS, JUDGMENTS
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    double_counted,
    drained,
    kept_ids,
    now,
    records_of,
    wait_until,
    whole,
)
from tests.servers.held_judge import HeldJudge
from tests.servers.house import House, a_house, partition_of

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


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
    house.wait_for_commits()
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
