"""A judge that has drifted is told of, once and by name; one that has not, or that nobody knows enough of, is not."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from monitor.adapters.memory_anchors import MemoryAnchors
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.judges import AnchorShifts, LiveAnchors
from monitor.alerting.naming import runbook, title
from monitor.alerting.render import as_text
from monitor.clock import ClockKind
from monitor.detection.finding import FindingKind, Outcome
from monitor.detection.judge_drift import anchored, drift_finding
from monitor.judging.anchors import AnchorPolicy, AnchorScore
from monitor.judging.drift import anchor_shift
from monitor.judging.judgment import JudgeIdentity
from monitor.pipeline import Pipeline
from monitor.windows.bucket import OVERALL
from tests.anchors import JUDGE, later, pinned
from tests.conversations import ROOT
from tests.drawn import SCOPE, Drawn
from tests.events import HOUR, MINUTE, NOON
from tests.judgments import a_judgment
from tests.sustained import pinned_before
from tests.unit.test_regression import DOWN, FAR_DOWN, GOOD, a_series, assessed, fires
from tests.world import IDENTITY, World

POLICY = AnchorPolicy(min_anchors=20)
PINS = pinned([4] * 30)


class Asked(MemoryAnchors):
    """Remembers what was read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.pins_read = 0
        self.read: list[tuple[datetime, datetime]] = []

    async def pins(self, **judge: str) -> Mapping[str, AnchorScore]:
        self.pins_read += 1
        return await super().pins(**judge)

    async def scores(self, start: datetime, end: datetime, **judge: str) -> Sequence[AnchorScore]:
        self.read.append((start, end))
        return await super().scores(start, end, **judge)


async def of_a_week(*, fell_at: int) -> tuple[Asked, LiveAnchors]:
    """Return the anchors of a judge that became a point stricter at an hour of the week."""
    store = Asked()
    rounds = (later([4 if number < fell_at else 3] * 30, number) for number in range(1, 169))
    for one in [*PINS.values(), *(score for scores in rounds for score in scores)]:
        await store.add(one, **JUDGE)
    judge = IDENTITY.model_copy(update={"version": JUDGE["judge_version"]})
    return store, LiveAnchors(store=store, judge=judge, rubric_version="r1", policy=POLICY)


def found(*rounds: list[int], hours: int = 24, pins: dict[str, AnchorScore] = PINS) -> tuple[Outcome, str]:
    scores = [one for number, values in enumerate(rounds, start=1) for one in later(values, number)]
    known = anchored(pins, scores, POLICY, now=NOON + hours * HOUR, **JUDGE)
    finding = drift_finding(known, IDENTITY, POLICY, now=NOON + hours * HOUR)
    assert bool(finding.figures) == (finding.outcome is Outcome.FAIL)
    return finding.outcome, finding.reason


def test_a_drift_says_how_much_how_sure_on_what_and_since_when() -> None:
    outcome, reason = found([4] * 30, [4] * 30, [3] * 20 + [4] * 10, [3] * 20 + [4] * 10)

    assert outcome is Outcome.FAIL
    # Rounds 1 and 2 are as pinned, 3 and 4 a point lower on twenty of thirty: on average a third of a point.
    assert reason.startswith("the judge has drifted by -0.33 [-0.4")
    assert reason.endswith("] points on safety since 2026-03-10 15:00 UTC (n=30)")


def test_a_shift_below_the_floor_is_no_drift_however_sure() -> None:
    """Whoever is told of every hundredth stops reading: 0.12 points, with an interval of 0.04."""
    assert found([3] * 36 + [4] * 264, pins=pinned([4] * 300))[0] is Outcome.PASS
    assert found([3] * 60 + [4] * 240, pins=pinned([4] * 300))[0] is Outcome.FAIL


def test_a_shift_that_may_be_chance_or_of_a_few_anchors_is_no_drift() -> None:
    """Five of thirty moved: 0.17 points, and 0 well within 99.9 %."""
    assert found([4] * 30)[0] is Outcome.PASS
    assert found([3] * 5 + [4] * 25)[0] is Outcome.PASS
    assert found([3] * 19) == (Outcome.NO_DATA, "19 anchors with a newer score of the 20 it needs")
    assert found()[0] is Outcome.NO_DATA


def test_only_the_newest_hours_count() -> None:
    """A judge that came back is well, though its bad day is still kept."""
    assert found([3] * 30, *([4] * 30 for _ in range(30)), hours=32)[0] is Outcome.PASS


async def test_more_than_the_window_is_read_only_to_find_where_a_drift_began() -> None:
    """It is read at each boundary, and nine days are many times as much as one."""
    now = NOON + 169 * HOUR
    store, steady = await of_a_week(fell_at=200)
    known = await steady.read(now)
    assert (known.drifted, known.last_round_at) == ({}, NOON + 168 * HOUR)
    assert store.read == [(now - timedelta(hours=24), now)]

    _, stricter = await of_a_week(fell_at=50)
    assert (await stricter.read(now)).drifted == {"safety": NOON + 50 * HOUR}


async def test_the_last_round_is_known_though_none_was_in_the_window() -> None:
    """Whoever asks why the anchors say nothing sees since when they are silent."""
    _, live = await of_a_week(fell_at=200)

    known = await live.read(NOON + 200 * HOUR)

    assert (known.last_round_at, known.shifts) == (NOON + 168 * HOUR, {})


async def test_an_evaluation_reads_the_scores_once_for_all_scopes_and_the_next_one_anew() -> None:
    """Ten assistants of one judge cost no ten times as much; and no boundary is told of a time before it."""
    world, store = World(clock=ClockKind.WALL), Asked()
    story = {"starts": NOON.isoformat()}
    before = pinned_before(json.dumps(story), 2)
    for assistant in ("web", "phone"):
        scope = SCOPE.model_copy(update={"judge_version": IDENTITY.version, "assistant": assistant})
        baseline = before.baseline.model_copy(update={"scope_id": scope.id})
        await world.baselines.pin(before.model_copy(update={"scope": scope, "baseline": baseline}))
        for quarter in range(8):
            begin = NOON + quarter * 15 * MINUTE
            world.windows._buckets[scope, begin] = Drawn(story).bucket(begin)
    live = LiveAnchors(store=store, judge=IDENTITY, rubric_version=SCOPE.rubric_version, policy=POLICY)
    pipeline = Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)
    await evaluated(world, pipeline, until=1, since=1)
    assert store.read == []

    for boundary in (1, 2):
        await pipeline.evaluate()
        world.now += 15 * MINUTE
        assert store.pins_read == boundary
        assert store.read.count((NOON.replace(hour=0), NOON.replace(hour=0) + timedelta(days=1))) == boundary
        assert len(store.read) == boundary * len(set(store.read))


async def evaluated(world: World, pipeline: Pipeline, *, until: float, since: float = 0) -> list[Alert]:
    world.now = NOON + since * HOUR
    while world.now <= NOON + until * HOUR:
        await pipeline.evaluate()
        world.now += 15 * MINUTE
    return list(await world.alerts.all())


async def test_a_drift_is_one_ticket_that_ends_when_its_judge_is_gone() -> None:
    """A new judge pins anew, and the drift of the old one is nobody's business any more."""
    world, store = World(clock=ClockKind.WALL), MemoryAnchors()
    for one in [*PINS.values(), *later([3] * 30, 1)]:
        await store.add(one, **JUDGE)

    def with_judge(version: str) -> Pipeline:
        judge = JudgeIdentity(stage="first", backend="fake", version=version, model_asked="fake")
        live = LiveAnchors(store=store, judge=judge, rubric_version="r1", policy=POLICY)
        return Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)

    (alert,) = await evaluated(world, with_judge("j"), until=6)
    assert (alert.state, len(alert.firings), alert.severity) == (AlertState.FIRING, 1, "ticket")
    assert title(alert) == "The judge j (stage first) has drifted"
    assert (ROOT / runbook(alert)).is_file()
    assert "-1.00" in alert.finding.reason

    (alert,) = await evaluated(world, with_judge("k"), since=6.25, until=9)
    assert alert.state is AlertState.RESOLVED


async def test_a_drift_ends_when_no_anchors_are_judged_any_more() -> None:
    """Nothing would ever be said of it again."""
    world, store = World(clock=ClockKind.WALL), MemoryAnchors()
    for one in [*PINS.values(), *later([3] * 30, 1)]:
        await store.add(one, judge_version=IDENTITY.version, rubric_version="r1")
    live = LiveAnchors(store=store, judge=IDENTITY, rubric_version="r1", policy=POLICY)
    with_anchors = Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)
    (alert,) = await evaluated(world, with_anchors, until=6)
    assert alert.state is AlertState.FIRING

    (alert,) = await evaluated(world, world.pipeline, since=6.25, until=9)
    assert alert.state is AlertState.RESOLVED


def test_a_drift_alone_is_no_fall_of_quality_and_a_step_beside_it_still_is() -> None:
    """The judge's share is taken off; what is left speaks for itself."""
    shift = anchor_shift(pinned([4] * 60), [*later([3] * 12 + [4] * 48, 1), *later([3] * 12 + [4] * 48, 2)])
    taken = shift["safety"]
    assert taken.mean == -0.2

    assert fires(assessed(a_series((96, GOOD), (24, DOWN))))
    assert not fires(assessed(a_series((96, GOOD), (24, DOWN)), judge_shift=taken.low))
    assert fires(assessed(a_series((96, GOOD), (24, FAR_DOWN)), judge_shift=taken.low))


async def test_a_shift_is_that_since_the_baseline_and_not_since_the_pin() -> None:
    """A baseline that was taken of the stricter judge holds its strictness already."""
    store = MemoryAnchors()
    for one in [*PINS.values(), *(s for n in range(1, 61) for s in later([4 if n < 20 else 3] * 30, n))]:
        await store.add(one, **JUDGE)

    async def mean(since: float, now: float) -> float | None:
        found = await AnchorShifts(store, POLICY).shifts(
            since=NOON + since * HOUR, now=NOON + now * HOUR, **JUDGE
        )
        return found["safety"].mean if found else None

    assert await mean(10, 18) == 0.0
    assert await mean(10, 60) == -1.0
    assert await mean(45, 60) == 0.0
    # Of a time before any score is kept, the pinned ones tell.
    assert await mean(-500, 60) == -1.0
    assert await mean(10, 10) is None


async def test_what_is_known_of_the_judge_since_an_onset_is_awaited_for_a_round_or_two() -> None:
    """A fall may be the judge's; the next round tells, and one that never comes must not hide the fall."""
    store = MemoryAnchors()
    for one in [*PINS.values(), *(s for n in range(1, 31) for s in later([4 if n < 20 else 3] * 30, n))]:
        await store.add(one, **JUDGE)
    shifts = AnchorShifts(store, POLICY)

    async def mean(onset: float, now: float) -> float | None:
        found = await shifts.since_onset(
            since=NOON + 10 * HOUR, onset=NOON + onset * HOUR, now=NOON + now * HOUR, **JUDGE
        )
        return found["safety"].mean if found else None if found is None else 0.0

    assert await mean(19.5, 22) == -1.0
    assert await mean(12, 18) == 0.0
    assert await mean(12, 28) == -0.5
    # The round of the hour is still to come.
    assert await mean(20.25, 20.75) is None
    # Anchors are not judged any more: nobody waits, and nothing is known.
    assert await mean(36, 36.5) == 0.0
    assert await mean(30.5, 36) == 0.0
    assert (
        await AnchorShifts(MemoryAnchors(), POLICY).since_onset(
            since=NOON, onset=NOON + HOUR, now=NOON + 2 * HOUR, **JUDGE
        )
        == {}
    )


async def test_a_gate_that_fires_while_its_judge_drifts_says_so() -> None:
    """Whoever is woken must know that part of the fall may be the judge's, and how much of it."""
    world, store = World(clock=ClockKind.WALL), MemoryAnchors()
    for one in [*PINS.values(), *later([3] * 30, 1)]:
        await store.add(one, judge_version=IDENTITY.version, rubric_version="r1")
    live = LiveAnchors(store=store, judge=IDENTITY, rubric_version="r1", policy=POLICY)
    pipeline = Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)
    for quarter in range(16):
        at = NOON + quarter * 15 * MINUTE
        scores = {"safety": 4, "policy_adherence": 3}
        records = [
            a_judgment(f"{quarter}-{n}", at=at, judge_version=IDENTITY.version, scores=scores)
            for n in range(20)
        ]
        await world.windows.apply(records, now=at)
    await evaluated(world, pipeline, until=4)

    told = {
        one.alert.labels["dimension"]: as_text(one)
        for one in await world.alerts.outbox(100)
        if one.alert.kind is FindingKind.GATE and one.alert.labels["segment"] == OVERALL
    }
    assert "the judge itself has drifted by -1.00 [-1.0" in told["safety"]
    assert "points, by 30 anchors; that is in the figures" in told["safety"]
    assert "drifted" not in told["policy_adherence"]
