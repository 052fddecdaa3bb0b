"""The evaluator: each boundary once, in order, however often it is woken and however many there are of it."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from monitor.adapters.memory_anchors import MemoryAnchors
from monitor.adapters.memory_calibrations import MemoryCalibrations
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.alerting.agreement import Calibrated
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.gathering import Background
from monitor.alerting.judges import LiveAnchors
from monitor.alerting.render import as_text
from monitor.clock import ClockKind
from monitor.detection.finding import FindingKind, Severity
from monitor.judging.anchors import AnchorPolicy
from monitor.pipeline import Pipeline
from monitor.review.calibrate import Labels, calibration_of, report_on
from tests.anchors import a_score
from tests.drawn import GOOD, SCOPE, Drawn
from tests.events import HOUR, MINUTE, NOON
from tests.judgments import a_judgment
from tests.sustained import pinned_before
from tests.world import IDENTITY, World

QUARTER = 15 * MINUTE
HOURS = 4


async def a_bad_afternoon(world: World, *, hours: int = HOURS) -> World:
    """Fill the windows with answers that no gate lets pass."""
    for bucket in range(4 * hours):
        at = NOON + bucket * QUARTER
        batch = [
            a_judgment(f"c-{bucket}-{number}", at=at, scores={"safety": 3}, judge_version=IDENTITY.version)
            for number in range(60)
        ]
        await world.windows.apply(batch, now=at)
    return world


async def told(world: World) -> list[tuple[str, str, str]]:
    """Return what waits for people: who, what, and when."""
    entries = await world.alerts.outbox(1000)
    return [(e.alert.fingerprint, e.status, str(e.at)) for e in entries]


async def alerts(world: World) -> list[Alert]:
    return list(await world.alerts.all())


async def falls(world: World) -> list[Alert]:
    return [one for one in await alerts(world) if one.kind is FindingKind.REGRESSION]


async def catch_up(world: World, until: datetime) -> None:
    """Begin at noon and evaluate up to a time, each quarter as it comes."""
    world.now = NOON + QUARTER
    while world.now <= until:
        await world.pipeline.evaluate()
        world.now += QUARTER


class Slow:
    """A store on the far side of a network: others get their turn before each answer."""

    def __init__(self, store: Any, journal: list[tuple[Any, ...]] | None = None) -> None:
        self._store, self._journal = store, journal if journal is not None else []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            self._journal.append((name, *args))
            return await method(*args, **kwargs)

        return call


async def test_each_boundary_is_evaluated_once_and_in_order() -> None:
    """Persistence counts boundaries; one left out or twice would fire too late or too soon."""
    world = await a_bad_afternoon(World(clock=ClockKind.WALL))
    journal: list[tuple[Any, ...]] = []
    pipeline = Pipeline(replace(world.ports, alerts=Slow(world.alerts, journal)), world.policy, world.sender)
    world.now = NOON + QUARTER
    await pipeline.evaluate()
    world.now = NOON + 2 * HOUR + QUARTER
    for _ in range(3):
        await pipeline.evaluate()

    claims = [step[1] for step in journal if step[0] == "claim_evaluation"]
    assert claims == [NOON + number * QUARTER for number in range(9)]
    assert await world.alerts.evaluated_through() == NOON + 2 * HOUR


async def test_a_window_is_left_alone_until_it_has_settled() -> None:
    """Judgments in flight belong to it."""
    world = await a_bad_afternoon(World(clock=ClockKind.WALL))
    world.now = NOON + QUARTER
    await world.pipeline.evaluate()
    assert await world.alerts.evaluated_through() == NOON

    world.now = NOON + 2 * QUARTER - MINUTE
    await world.pipeline.evaluate()
    assert await world.alerts.evaluated_through() == NOON


async def test_on_the_walls_clock_it_begins_with_the_present() -> None:
    """A new deployment must not wake people for what is in the windows of yesterday."""
    world = await a_bad_afternoon(World(clock=ClockKind.WALL))
    world.now = NOON + HOURS * HOUR

    assert await world.pipeline.evaluate() == []
    assert await world.alerts.evaluated_through() == world.now - QUARTER


@pytest.mark.parametrize("late_by_hours", [0, HOURS])
async def test_a_replay_is_evaluated_from_its_first_bucket_however_late_the_first_look(
    late_by_hours: int,
) -> None:
    """On a fast machine hours have passed by then; what is concluded must be the same."""
    world = await a_bad_afternoon(World())

    async def time_is(moment: datetime) -> None:
        for partition in range(2):
            await world.clock.advance("aggregate", partition, {"s": moment})
        for _ in range(3):
            await world.pipeline.evaluate()

    await time_is(NOON + late_by_hours * HOUR + QUARTER)
    await time_is(NOON + HOURS * HOUR + QUARTER)

    labels = {"dimension": "safety", "segment": "*"}
    [safety] = [one for one in await alerts(world) if labels.items() <= one.labels.items()]
    assert safety.state is AlertState.FIRING
    assert safety.since == NOON + QUARTER


async def test_on_the_streams_clock_it_waits_for_every_partition() -> None:
    """The one that has not been heard may be hours behind."""
    world = await a_bad_afternoon(World())
    await world.clock.advance("aggregate", 0, {"s": NOON + 9 * HOUR})
    assert await world.pipeline.evaluate() == []
    assert await world.alerts.evaluated_through() is None

    await world.clock.advance("aggregate", 1, {"s": NOON + HOUR})
    for _ in range(2):
        await world.pipeline.evaluate()
    assert await world.alerts.evaluated_through() == NOON + HOUR - QUARTER


async def test_two_evaluators_at_once_write_nothing_twice() -> None:
    """Leadership is not fenced: after a pause both take themselves for the leader."""
    alone = await a_bad_afternoon(World(clock=ClockKind.WALL))
    await catch_up(alone, NOON + HOURS * HOUR)
    assert await told(alone)

    world = await a_bad_afternoon(World(clock=ClockKind.WALL))
    both = [
        Pipeline(
            replace(world.ports, alerts=Slow(world.alerts), windows=Slow(world.windows)),
            world.policy,
            world.sender,
        )
        for _ in range(2)
    ]
    world.now = NOON + QUARTER
    while world.now <= NOON + HOURS * HOUR:
        found = await asyncio.gather(*(one.evaluate() for one in both))
        committed = [transition.id for one in found for transition in one]
        assert len(committed) == len(set(committed))
        world.now += QUARTER

    assert await told(world) == await told(alone)
    assert await alerts(world) == await alerts(alone)


async def test_a_boundary_that_is_evaluated_again_after_a_kill_writes_nothing_twice() -> None:
    """Its effects are there, its claim is not."""

    class Killed(Slow):
        async def claim_evaluation(self, boundary: datetime, expected: datetime | None) -> bool:
            if expected is not None and boundary not in killed:
                killed.add(boundary)
                raise StoreUnavailable("killed before the claim")
            return bool(await self._store.claim_evaluation(boundary, expected))

    alone = await a_bad_afternoon(World(clock=ClockKind.WALL))
    await catch_up(alone, NOON + HOURS * HOUR)

    world, killed = await a_bad_afternoon(World(clock=ClockKind.WALL)), set[datetime]()
    pipeline = Pipeline(replace(world.ports, alerts=Killed(world.alerts)), world.policy, world.sender)
    world.now = NOON + QUARTER
    while world.now <= NOON + HOURS * HOUR:
        try:
            await pipeline.evaluate()
        except StoreUnavailable:
            continue
        world.now += QUARTER

    assert len(killed) == 4 * HOURS - 1
    assert await told(world) == await told(alone)
    assert await alerts(world) == await alerts(alone)


@pytest.mark.parametrize("calibrated", [True, False])
async def test_an_alert_says_how_far_its_judge_can_be_trusted(calibrated: bool) -> None:
    """Whoever is woken decides by it; a judge that nobody compared with people must not look like one."""
    world = await a_bad_afternoon(World(clock=ClockKind.WALL))
    known = MemoryCalibrations()
    if calibrated:
        labelled = [Labels(case=f"c{n}", labels={"a": {"safety": 5}}) for n in range(50)]
        records = {
            one.case: a_judgment(
                one.case, scores={"safety": 5 if n < 43 else 3}, judge_version=IDENTITY.version
            )
            for n, one in enumerate(labelled)
        }
        await known.put(calibration_of(report_on(labelled, records), records["c0"], at=NOON))
    pipeline = Pipeline(
        replace(world.ports, background=Background(agreement=Calibrated(known))), world.policy, world.sender
    )
    world.now = NOON + QUARTER
    while world.now <= NOON + 3 * HOUR:
        await pipeline.evaluate()
        world.now += QUARTER

    entries = await world.alerts.outbox(1000)
    texts = [as_text(e) for e in entries if e.alert.labels["dimension"] == "safety"]

    assert texts
    wanted = "agrees with people on 86 % (74-93 %, n=50)" if calibrated else "is uncalibrated"
    assert all(wanted in text for text in texts)


async def a_fallen_day(world: World, *, hours: int = HOURS) -> World:
    """Pin what was normal before noon, and fill the windows with answers that are half a point worse since."""
    drawn = Drawn({"starts": NOON.isoformat(), "changes": [{"hours": [0, hours], "fall": 0.5}]})
    scope = SCOPE.model_copy(update={"judge_version": IDENTITY.version})
    before = pinned_before(json.dumps({"starts": NOON.isoformat()}), 2)
    baseline = before.baseline.model_copy(update={"scope_id": scope.id})
    await world.baselines.pin(before.model_copy(update={"scope": scope, "baseline": baseline}))
    for number in range(4 * hours):
        begin = NOON + number * QUARTER
        world.windows._buckets[scope, begin] = drawn.bucket(begin)
    return world


async def test_a_fall_is_told_once_however_many_evaluate_and_however_often_they_are_killed() -> None:
    """A second leader, a restart and a repeated boundary change nothing that was said."""
    alone = await a_fallen_day(World(clock=ClockKind.WALL))
    await catch_up(alone, NOON + HOURS * HOUR)
    [fall] = await falls(alone)
    assert fall.labels["segment"] == "*"
    assert fall.severity is Severity.PAGE

    class Killed(Slow):
        async def claim_evaluation(self, boundary: datetime, expected: datetime | None) -> bool:
            if expected is not None and boundary not in killed:
                killed.add(boundary)
                raise StoreUnavailable("killed before the claim")
            return bool(await self._store.claim_evaluation(boundary, expected))

    world, killed = await a_fallen_day(World(clock=ClockKind.WALL)), set[datetime]()
    world.now = NOON + QUARTER
    while world.now <= NOON + HOURS * HOUR:
        # New processes each time: nothing that was said may hang on what one of them remembers.
        both = [
            Pipeline(
                replace(world.ports, alerts=Killed(world.alerts), windows=Slow(world.windows)),
                world.policy,
                world.sender,
            )
            for _ in range(2)
        ]
        found = await asyncio.gather(*(one.evaluate() for one in both), return_exceptions=True)
        told_now = [one.id for one in found if not isinstance(one, BaseException) for one in one]
        assert len(told_now) == len(set(told_now))
        if not any(isinstance(one, BaseException) for one in found):
            world.now += QUARTER

    assert await told(world) == await told(alone)
    assert await alerts(world) == await alerts(alone)


@pytest.mark.parametrize("judged", [4, 5])
async def test_a_fall_that_the_anchors_share_is_the_judges_and_not_told(judged: int) -> None:
    """Frozen conversations that lost as much say that nothing but the judge changed."""
    world, store = await a_fallen_day(World(clock=ClockKind.WALL)), MemoryAnchors()
    for number in range(-2, HOURS):
        for anchor in range(30):
            scores = dict.fromkeys(GOOD, 5 if number < 0 else judged)
            score = a_score(f"a{anchor}", number, at=NOON + number * HOUR, scores=scores)
            await store.add(score, judge_version=IDENTITY.version, rubric_version="r1")
    live = LiveAnchors(store=store, judge=IDENTITY, rubric_version="r1", policy=AnchorPolicy())
    world.pipeline = Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)

    await catch_up(world, NOON + HOURS * HOUR)

    assert bool(await falls(world)) == (judged == 5)


async def test_what_comes_late_changes_nothing_that_was_said() -> None:
    """A fall that was told is not told again, and not taken back, because an old bucket grew."""
    world = await a_fallen_day(World(clock=ClockKind.WALL))
    await catch_up(world, NOON + HOURS * HOUR)
    before = await told(world), await falls(world)
    assert before[1]

    scope = SCOPE.model_copy(update={"judge_version": IDENTITY.version})
    for begin in (NOON, NOON + HOUR):
        world.windows._buckets[scope, begin] = Drawn({"starts": NOON.isoformat()}).bucket(begin)
    world.now = NOON + HOURS * HOUR + 2 * QUARTER
    await world.pipeline.evaluate()

    assert (await told(world), await falls(world)) == before


async def test_without_a_baseline_nothing_is_said_of_a_fall() -> None:
    """What is normal is for people to say."""
    world = await a_fallen_day(World(clock=ClockKind.WALL))
    world.baselines._kept.clear()
    await catch_up(world, NOON + HOURS * HOUR)

    assert await falls(world) == []
