"""What is watched no more neither stays open for ever nor stands for another thing each day."""

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import AlertState
from monitor.alerting.evaluation import evaluate
from monitor.alerting.regressions import Detection
from monitor.detection.policy import DetectionPolicy
from monitor.detection.sequential import SequentialDetector
from monitor.windows.bucket import OTHER, OVERALL
from monitor.windows.policy import WindowPolicy
from tests.drawn import MONDAY, QUARTER, Drawn
from tests.judgments import HOUR, NOON, a_judgment
from tests.sustained import WINDOWS, Sustained, pinned_before
from tests.unit.test_gates import a_policy

DIMENSION = "factual_correctness"
MILD = {"gates": {DIMENSION: {"mean_min": 1.0}}, "critical_rate": None}


def test_the_crowd_beyond_the_limit_is_no_series_of_its_own() -> None:
    """Which intents are `*other` depends on who came first that day, so its mean moves and nothing fell."""
    drawn = Drawn({"changes": [{"hours": [12, 24], "fall": 1.0}]})
    detector = SequentialDetector(DetectionPolicy(), 15)
    buckets = {}
    for n in range(96):
        cells = drawn.bucket(MONDAY + n * QUARTER)
        buckets[MONDAY + n * QUARTER] = {
            cell._replace(segment=f"intent={OTHER}") if cell.segment == "intent=returns" else cell: count
            for cell, count in cells.items()
        }
    detector.update(buckets, start=MONDAY)
    baseline = pinned_before("{}", 7).baseline
    other, end = (DIMENSION, f"intent={OTHER}"), MONDAY + 24 * HOUR

    found = detector.read(baseline, {}, end=end, shifts={})
    assert found[DIMENSION, OVERALL].speaks
    assert found[DIMENSION, "intent=billing"].speaks
    assert other not in found
    # An alert of an older version on it is read until it ends.
    assert other in detector.read(baseline, {other: MONDAY + HOUR}, end=end, shifts={})


async def test_a_fall_of_a_segment_that_is_watched_no_more_ends() -> None:
    """No data ends nothing, and of a key that was taken out of the configuration none ever comes."""
    story = {"changes": [{"hours": [4, 24], "fall": 1.5, "intent": "returns"}]}
    world = Sustained(story, a_policy(**MILD))
    await world.pin(7)
    now = MONDAY
    while now < MONDAY + 18 * HOUR:
        await world.happen(now)
        now += QUARTER
        await world.evaluate(now)
    firing = await world.alerts.all((AlertState.FIRING,))
    assert "intent=returns" in {alert.labels["segment"] for alert in firing}

    without = Detection(world.baselines, DetectionPolicy(segments=("prompt_hash",)), WINDOWS)
    (change,) = [
        one
        for one in await evaluate(world.windows, world.alerts, world.gates, now=now, detection=without)
        if one.alert.state is AlertState.RESOLVED
    ]
    assert change.reason == "detection.segments has no intent any more, so it is watched no more"
    assert change.notify


async def test_an_alert_of_a_gate_that_was_taken_out_ends() -> None:
    windows, alerts = MemoryWindowStore(WindowPolicy()), MemoryAlertStore()
    records = [
        a_judgment(f"c-{n}", at=NOON + n * 2 * QUARTER / 30, scores={DIMENSION: 3}) for n in range(120)
    ]
    await windows.apply(records, now=NOON + 2 * HOUR)
    asked = a_policy(gates={DIMENSION: {"mean_min": 4.0}}, critical_rate=None)
    for quarter in range(4, 10):
        await evaluate(windows, alerts, asked, now=NOON + quarter * QUARTER)
    (alert,) = await alerts.all((AlertState.FIRING,))
    assert alert.labels["segment"] == OVERALL

    other = a_policy(gates={"policy_adherence": {"mean_min": 1.0}}, critical_rate=None)
    changes = await evaluate(windows, alerts, other, now=NOON + 10 * QUARTER)
    (change,) = (one for one in changes if one.notify)
    assert (change.alert.state, change.alert.finding.reason) == (
        AlertState.RESOLVED,
        f"there is no gate on {DIMENSION} any more, so it is watched no more",
    )
    assert await evaluate(windows, alerts, other, now=NOON + 10 * QUARTER) == ()
