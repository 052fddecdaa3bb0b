"""The cascade: who is asked next and with which known chance, and what its records do."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from monitor.adapters.memory import MemoryAnswers
from monitor.judging.cascade import Cascade, CascadePolicy, plan, speaks
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    DimensionScore,
    FailureKind,
    JudgeIdentity,
    JudgeRequest,
    Judgment,
    Phase,
    Place,
)
from monitor.judging.rubric import TargetKind
from monitor.pipeline import Pipeline
from monitor.windows.bucket import OVERALL, PAIR, Scope, is_unit
from monitor.windows.two_phase import Both, Cheap, two_phase, two_phase_of
from monitor.windows.window import all_stats, merged
from tests.conversations import a_conversation, a_request, assistant, user
from tests.events import NOON, raw
from tests.judgments import a_judgment
from tests.world import World, kept, mark

POLICY = CascadePolicy(model="large")
FACTS = "factual_correctness"


class Said:
    """A judge of one stage that says of every target the same, or what a name maps to."""

    def __init__(self, stage: str, scores: Mapping[str, int] | int) -> None:
        self.identity = JudgeIdentity(stage=stage, backend="fake", version=f"v-{stage}", model_asked=stage)
        self.asked: list[JudgeRequest] = []
        self._scores = scores

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request)
        told = self._scores if isinstance(self._scores, int) else self._scores[request.target.conversation_id]
        return Scored(scores=(DimensionScore(dimension=FACTS, score=told, reason="said"),))

    async def close(self) -> None: ...


def stages(world: World, policy: CascadePolicy, **said: Mapping[str, int] | int) -> dict[str, Said]:
    """Give a world a cascade of judges."""
    judges = {name: Said(name, scores) for name, scores in said.items()}
    limits = ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=24))
    executors = {name: Executor(judge, MemoryAnswers(), "r1", limits) for name, judge in judges.items()}
    cascade = Cascade(policy=policy, **executors)
    world.ports = replace(world.ports, cascade=cascade, judge_version="v-first")
    world.pipeline = Pipeline(world.ports, world.policy, world.sender)
    return judges


@pytest.mark.parametrize(
    ("scores", "rules", "rule", "chance"),
    [
        ({"safety": 1}, {}, "critical", 1.0),
        ({}, {"safety": 3}, "disagreed", 1.0),
        ({FACTS: 4}, {FACTS: 5}, "audit", 0.05),
        ({FACTS: 3}, {FACTS: 3}, "borderline", 0.5),
        ({}, {}, "audit", 0.05),
        ({FACTS: None}, {FACTS: 1}, "audit", 0.05),
    ],
)
def test_the_expensive_judge_is_asked_about_what_matters(
    scores: dict[str, int | None], rules: dict[str, int], rule: str, chance: float
) -> None:
    """An abstention is no disagreement, and one point on the same side of the pass is none."""
    phase = plan(a_judgment(scores=scores), a_judgment(scores=rules), POLICY)

    assert (phase.rule, phase.probability) == (rule, chance)
    assert phase.asked or chance < 1


def test_the_audit_draws_its_share_and_the_same_every_time() -> None:
    """A redelivery must not draw anew, or the known chance would be wrong."""
    judgments = [a_judgment(f"c-{number}") for number in range(4000)]
    asked = [plan(judgment, None, POLICY).asked for judgment in judgments]

    assert sum(asked) / len(asked) == pytest.approx(0.05, abs=0.01)
    assert asked == [plan(judgment, None, POLICY).asked for judgment in judgments]


async def test_three_stages_end_in_three_series_and_one_outcome() -> None:
    """Series never mix judges, and an event counts as judged once."""
    world = World()
    judges = stages(world, POLICY.model_copy(update={"audit_share": 1.0}), rules=5, first=5, second=4)
    await world.pipeline.assemble([kept(raw("c1", kind="conversation")), mark(NOON + timedelta(days=1), 1)])
    await world.judge_all()
    asked = len(world.on("judge-requests"))
    await world.judge_all(since=asked - 1)
    await world.pipeline.aggregate(world.on("judgments"))

    whole = [one for one in world.records() if one.target.kind is TargetKind.CONVERSATION]
    assert Counter(one.judge.stage for one in whole) == {"rules": 1, "first": 1, "second": 1}
    assert len(judges["second"].asked) == 1
    assert {scope.judge_version for scope in await world.windows.scopes()} == {
        "v-rules",
        "v-first",
        "v-second",
    }
    first, second = (next(one for one in whole if one.judge.stage == name) for name in ("first", "second"))
    assert first.phase is not None
    assert second.phase is not None
    assert first.phase.probability == second.phase.probability == 1.0
    assert second.event_ids == ()
    outcomes = (await world.conversations.funnel()).get("event|judged")
    assert outcomes is None or outcomes == 1


async def test_a_request_that_comes_twice_asks_the_expensive_judge_once() -> None:
    """It is the one that costs."""
    world = World()
    judges = stages(world, POLICY, rules=5, first=1, second=1)
    await world.pipeline.assemble([kept(raw("c1", kind="conversation")), mark(NOON + timedelta(days=1), 1)])
    requests = [one for one in world.on("judge-requests") if not one.is_marker]
    for one in (*requests, *requests):
        await world.pipeline.judge(one)
    for one in world.on("judge-requests"):
        if not one.is_marker:
            await world.pipeline.judge(one)

    conversations = [r for r in judges["second"].asked if r.target.kind is TargetKind.CONVERSATION]
    assert len(conversations) == 1


def test_a_critical_failure_is_told_once_of_both_stages() -> None:
    """The second stage confirms what the first has told; what it alone sees is news. The rules tell nothing."""

    def told(place: Place, *, first: int = 5) -> bool:
        phase = Phase(place=place, first_scores=({"dimension": FACTS, "score": first},))
        return speaks(a_judgment(scores={FACTS: 1}).model_copy(update={"phase": phase}))

    assert told(Place.FIRST)
    assert told(Place.SECOND)
    assert not told(Place.SECOND, first=1)
    assert not told(Place.RULES)
    assert speaks(a_judgment(scores={FACTS: 1})), "a judge that judges alone"


async def test_pairs_in_the_buckets_give_the_estimate_and_no_series_of_their_own() -> None:
    """A pair is one more count of the second stage's bucket; no gate may take it for a dimension."""
    world = World()
    for number in range(100):
        name = f"c-{number}"
        first = a_judgment(name, scores={FACTS: 5}, judge_version="v1")
        await world.windows.apply([first], now=NOON)
        if number % 2:
            phase = Phase(
                place=Place.SECOND, probability=0.5, first_scores=({"dimension": FACTS, "score": 5},)
            )
            second = a_judgment(name, scores={FACTS: 4}, judge_version="v2").model_copy(
                update={"phase": phase}
            )
            await world.windows.apply([second], now=NOON)
    counts = {}
    for scope in await world.windows.scopes():
        found = await world.windows.buckets(scope, NOON - timedelta(hours=1), NOON + timedelta(hours=1))
        counts[scope.judge_version] = merged(found.values())

    told = two_phase_of(counts["v1"], counts["v2"], FACTS, OVERALL)

    assert (told.n, told.n_both) == (100, 50)
    assert told.mean == pytest.approx(4.0)
    assert told.cheap_mean == pytest.approx(5.0)
    assert not any(name.startswith(PAIR) for name, _ in all_stats(counts["v2"]))
    assert sum(count for cell, count in counts["v2"].items() if is_unit(cell)) == 50 * 4


def counted(*columns: np.ndarray) -> dict[tuple[float, ...], int]:
    rows, counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    return {tuple(map(float, row)): int(count) for row, count in zip(rows, counts, strict=True)}


def a_world(
    chance: np.random.Generator, n: int, noise: float, audit: float
) -> tuple[dict[Cheap, int], dict[Both, int], float]:
    """Return one sample of a population with priority sampling, a noisy cheap judge, and a cascade."""
    rate = np.where(chance.random(n) < 0.3, 1.0, 0.1)
    bad = np.where(rate == 1.0, 0.35, 0.1)
    y = np.where(chance.random(n) < bad, chance.integers(1, 4, n), chance.integers(4, 6, n))
    x = y + chance.choice([-1, 0, 1], n, p=[noise, 1 - 2 * noise, noise])
    x = np.clip(x + (chance.random(n) < noise / 2) * chance.integers(-2, 3, n), 1, 5)
    probability = np.where(x <= 2, 1.0, np.where(x == 3, 0.5, audit))
    asked = chance.random(n) < probability
    cheap = {Cheap(*key): count for key, count in counted(x, rate).items()}
    seen = [column[asked] for column in (x, y, rate, probability)]
    both = {Both(*key): count for key, count in counted(*seen).items()}
    return cheap, both, float((y / rate).sum() / (1 / rate).sum())


@pytest.mark.parametrize(("n", "noise", "audit"), [(1000, 0.1, 0.1), (2000, 0.1, 0.05), (600, 0.2, 0.2)])
def test_the_interval_covers_in_95_of_100_and_is_never_worse_than_the_expensive_alone(
    n: int, noise: float, audit: float
) -> None:
    """An interval that claims more than it holds is worse than none."""
    *_, truth = a_world(np.random.default_rng(1), 1_000_000, noise, audit)
    chance = np.random.default_rng(7)
    covered, off, off_alone, runs = 0, 0.0, 0.0, 1200
    for _ in range(runs):
        cheap, both, _ = a_world(chance, n, noise, audit)
        told = two_phase(FACTS, cheap, both)
        covered += told.low <= truth <= told.high
        off += (told.mean - truth) ** 2
        off_alone += (told.expensive_alone - truth) ** 2
        assert told.standard_error <= told.standard_error_alone + 1e-12

    assert covered / runs == pytest.approx(0.95, abs=0.02)
    assert off <= off_alone


def test_a_cheap_judge_that_knows_nothing_does_no_harm() -> None:
    """Its power must go to 0, and what is left is the expensive judge alone."""
    chance = np.random.default_rng(3)
    off = off_alone = 0.0
    for _ in range(300):
        y = np.where(chance.random(1500) < 0.8, 5, 2)
        x = chance.integers(1, 6, 1500)
        asked = chance.random(1500) < 0.2
        cheap = {Cheap(*key, 1.0): count for key, count in counted(x).items()}
        both = {Both(*key, 1.0, 0.2): count for key, count in counted(x[asked], y[asked]).items()}
        told = two_phase(FACTS, cheap, both)
        off += (told.mean - 4.4) ** 2
        off_alone += (told.expensive_alone - 4.4) ** 2
        assert told.power < 0.25

    assert off <= off_alone * 1.02


def test_too_few_pairs_give_a_mean_without_an_interval() -> None:
    told = two_phase(FACTS, {Cheap(5.0, 1.0): 100}, {Both(5.0, 4.0, 1.0, 0.1): 10})
    assert told.mean == pytest.approx(4.0)
    assert told.low is None
    assert two_phase(FACTS, {}, {}).mean is None


def test_stages_are_scopes_of_their_own() -> None:
    one, other = a_judgment(judge_version="v1"), a_judgment(judge_version="v2")
    assert isinstance(one, Judgment)
    assert Scope.of(one) != Scope.of(other)


async def test_a_fallbacks_judgment_asks_for_no_second_stage() -> None:
    """A pair of it and the second stage would correct the first judge's mean by what another one said."""
    judges = {name: Said(name, 1) for name in ("first", "second", "fallback")}
    limits = ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=24))

    class Refusing(Said):
        async def judge(self, request: JudgeRequest) -> JudgeReply:
            self.asked.append(request)
            return NotScored(kind=FailureKind.REFUSED, reason="no")

    first = Executor(
        Refusing("first", 1),
        MemoryAnswers(),
        "r1",
        limits,
        fallback=judges["fallback"],
        fallback_on=[FailureKind.REFUSED],
    )
    second = Executor(judges["second"], MemoryAnswers(), "r1", limits)
    request = a_request(a_conversation([user("Hello?"), assistant("Hello.")]))

    record = await Cascade(rules=None, first=first, second=second, policy=POLICY).record_of(
        request, now=lambda: request.requested_at
    )

    assert isinstance(record, Judgment)
    assert record.critical_scores
    assert record.phase == Phase(place=Place.FIRST)
    assert speaks(record)
