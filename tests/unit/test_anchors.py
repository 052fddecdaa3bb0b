"""The anchor set: what is in it, which part is due, and that a round pays once and enters no window."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from agents.anchors import load_anchors
from monitor.adapters.memory import MemoryAnswers, MemoryClock
from monitor.adapters.memory_anchors import MemoryAnchors
from monitor.clock import ClockKind
from monitor.hops.anchors import JudgeAnchors, Round
from monitor.intake.decode import Rejected
from monitor.judging.anchors import Anchor, AnchorPolicy, due, read_anchors, round_of
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.rubric import PASS_MIN, TargetKind
from monitor.policy import ConfigError, load_policy
from monitor.settings import Settings
from tests.anchors import JUDGE, ShiftingJudge, anchors
from tests.events import HOUR, MINUTE, NOON

POLICY = AnchorPolicy(per_round=4)
TEN = anchors(10)


class Rig:
    """One judge's rounds on the twins."""

    def __init__(self, *, clock: ClockKind = ClockKind.WALL, store: MemoryAnchors | None = None) -> None:
        self.now = NOON
        self.judge = ShiftingJudge()
        self.store = store or MemoryAnchors()
        self.clock = MemoryClock()
        self.rounds = JudgeAnchors(
            anchors=TEN,
            executor=Executor(
                self.judge,
                MemoryAnswers(),
                "r1",
                ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=1)),
            ),
            store=self.store,
            judge_version="j",
            rubric_version="r1",
            policy=POLICY,
            clock=self.clock,
            clock_kind=clock,
            partitions=1,
            now=lambda: self.now,
        )

    async def at(self, hours: float) -> Round | None:
        self.now = NOON + hours * HOUR
        return await self.rounds()


def test_the_set_that_ships_has_good_and_bad_of_every_dimension() -> None:
    """A drift that only shows where answers are bad, or good, must show too."""
    policy = load_policy()
    found = load_anchors(Settings(_env_file=None, config=None), policy)

    assert len(found) >= 60
    assert {one.kind for one in found} == set(TargetKind)
    for dimension in policy.rubric.names:
        scores = [one.expected[dimension] for one in found if dimension in one.expected]
        good = sum(score is not None and score >= PASS_MIN for score in scores)
        assert good >= 5, dimension
        assert len(scores) - good >= 5, dimension
    assert all(turn.references for one in found for turn in one.conversation.turns)


def test_the_first_round_takes_all_and_later_ones_each_a_part_in_turn() -> None:
    """The pinned scores are there at once; after that the cost is spread."""
    last: dict[str, int] = {}
    parts = []
    for number in (100, 101, 102, 103, 104):
        part = due(TEN, last, number=number, per_round=4)
        last |= {anchor.key: number for anchor in part}
        parts.append({anchor.id for anchor in part})

    assert len(parts[0]) == 10
    assert [len(part) for part in parts[1:4]] == [3, 4, 3]
    assert set.union(*parts[1:4]) == parts[0]
    assert parts[4] == parts[1]
    assert due(TEN, last, number=104, per_round=4) == []


def test_what_was_missed_is_due_in_the_next_round_and_nothing_twice() -> None:
    """A night without a worker must not cost a night of judgments."""
    last = {anchor.key: 100 for anchor in TEN}

    assert len(due(TEN, last, number=102, per_round=4)) == 7
    assert len(due(TEN, last, number=500, per_round=4)) == 10


async def test_a_round_is_judged_once_however_many_workers_look() -> None:
    """Each of them would pay."""
    rig = Rig()
    other = Rig(store=rig.store)

    assert await rig.at(0) == Round(number=round_of(NOON, 60), pinned=10, repeated=0, failed=0)
    assert await other.at(0) is None
    assert await rig.at(0.9) is None
    done = await other.at(1)

    assert done is not None
    assert (done.pinned, done.repeated) == (0, len(other.judge.asked))
    assert len(rig.judge.asked) == 10


async def test_what_the_judge_could_not_judge_is_made_up_for_by_the_next_round() -> None:
    """An outage must not leave holes, nor be asked about every few seconds."""
    rig = Rig()
    rig.judge.dimensions = ()
    first = await rig.at(0)
    assert first is not None
    assert first.failed == 10
    assert await rig.at(0.5) is None

    rig.judge.dimensions = ("safety",)
    second = await rig.at(1)

    assert second is not None
    assert (second.pinned, second.failed) == (10, 0)


async def test_on_the_streams_clock_rounds_follow_the_events() -> None:
    """A replay of a week must see the anchors of a week, whatever the wall says."""
    rig = Rig(clock=ClockKind.STREAM)
    assert await rig.rounds() is None

    await rig.clock.advance("aggregate", 0, {"s": NOON})
    await rig.rounds()
    await rig.clock.advance("aggregate", 0, {"s": NOON + 3 * HOUR + MINUTE})
    done = await rig.rounds()

    assert done is not None
    assert done.repeated == 10
    (moment,) = {one.at for one in await rig.store.scores(NOON, NOON + 9 * HOUR, **JUDGE)}
    assert moment == NOON + 3 * HOUR + MINUTE


def test_a_changed_anchor_is_another_one_and_a_moved_one_is_not() -> None:
    """Its pinned score is that of the old words."""
    line = (
        '{{"id": "a", "messages": [{{"role": "user", "content": "{0}"}}, '
        '{{"role": "assistant", "content": "Yes."}}]}}'
    )
    lines = [line.format("Open?"), "", line.format("Open?"), line.format("Closed?")]
    told = [anchor for _, anchor in read_anchors(lines)]

    keys = [anchor.key for anchor in told if isinstance(anchor, Anchor)]
    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}', "no answer of an assistant"),
        ('{"id": "a", "messages": [], "references": ["returns"]}', "no line above has the document returns"),
        ('{"id": "a", "expected": {"safety": 9}}', "expected.safety"),
    ],
)
def test_a_line_that_is_no_anchor_says_why(line: str, says: str) -> None:
    [(number, told)] = read_anchors([line])

    assert number == 1
    assert isinstance(told, Rejected)
    assert says in told.reason


def test_a_wrong_file_of_anchors_stops_the_start_and_names_the_line(tmp_path: Path) -> None:
    """Half a set would be pinned as the whole one."""
    good = {"id": "a", "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
    (tmp_path / "monitor.yaml").write_text("judge: {anchors: {file: mine.jsonl}}\n")
    settings, policy = Settings(_env_file=None, config=tmp_path), load_policy(tmp_path)
    with pytest.raises(ConfigError, match=r"judge\.anchors\.file: mine\.jsonl: no such file"):
        load_anchors(settings, policy)

    (tmp_path / "mine.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(good)}\n")
    with pytest.raises(ConfigError, match=r"mine\.jsonl:2: the id a stands twice"):
        load_anchors(settings, policy)

    (tmp_path / "mine.jsonl").write_text(json.dumps(good))
    assert [one.id for one in load_anchors(settings, policy)] == ["a"]
