"""Where nothing happens, neither markers nor evaluations are paid for, and nothing comes out differently."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.replay_producer import MARKER_EVERY, marks
from monitor.alerting.evaluation import evaluate, record_criticals
from monitor.clock import ClockKind, ClockPolicy
from monitor.detection.finding import Persistence
from monitor.detection.gates import Gate, GatePolicy
from monitor.hops.evaluate import Evaluate, next_filled
from monitor.windows.policy import WindowPolicy
from tests.judgments import HOUR, NOON, a_judgment

QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)
GATES = GatePolicy(
    window_minutes=60,
    min_count=2,
    gates={"safety": Gate(mean_min=4.0)},
    persistence=Persistence(for_minutes=30, clear_minutes=30),
)


class Counting(MemoryWindowStore):
    """Windows that count how often they were evaluated."""

    evaluations = 0

    async def scopes(self):  # noqa: ANN201 - as its parent
        self.evaluations += 1
        return await super().scopes()


class Clock:
    def __init__(self, time: datetime) -> None:
        self.time = time

    async def advance(self, *_: object) -> dict[str, datetime]:
        return {}

    async def read(self, _: str) -> dict[int, datetime]:
        return {0: self.time}


def the_hop(windows: MemoryWindowStore, alerts: MemoryAlertStore, clock: Clock) -> Evaluate:
    return Evaluate(
        windows=windows,
        alerts=alerts,
        clock=clock,
        clock_policy=ClockPolicy(kind=ClockKind.STREAM, settle_minutes=0),
        gates=GATES,
        bucket_minutes=15,
        partitions=1,
        judge_versions=("j1",),
        now=lambda: NOON,
    )


async def filled(windows: MemoryWindowStore, alerts: MemoryAlertStore, at: Sequence[tuple[int, int]]) -> None:
    for number, (quarter, score) in enumerate(at):
        moment = NOON + quarter * QUARTER
        judgments = [a_judgment(f"c{number}-{one}", at=moment, scores={"safety": score}) for one in range(2)]
        await windows.apply(judgments, now=NOON)
        await record_criticals(alerts, judgments, policy=GATES, now=moment)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 120), st.sampled_from([1, 2, 3, 5])), min_size=1, max_size=8).map(
        sorted
    )
)
async def test_jumping_changes_nothing(at: list[tuple[int, int]]) -> None:
    """Boundary by boundary or over the gaps: the same alerts with the same times and versions."""
    end = NOON + 160 * QUARTER
    slow_windows, slow_alerts = MemoryWindowStore(WindowPolicy()), MemoryAlertStore()
    await filled(slow_windows, slow_alerts, at)
    boundary = NOON - QUARTER
    while boundary + QUARTER <= end:
        boundary += QUARTER
        await evaluate(slow_windows, slow_alerts, GATES, now=boundary, judge_versions=("j1",))
    fast_windows, fast_alerts = MemoryWindowStore(WindowPolicy()), MemoryAlertStore()
    await filled(fast_windows, fast_alerts, at)
    await fast_alerts.claim_evaluation(NOON - QUARTER, None)
    await the_hop(fast_windows, fast_alerts, Clock(end))()

    assert await fast_alerts.all() == await slow_alerts.all()
    assert await fast_alerts.evaluated_through() == end


@pytest.mark.parametrize("score", [5, 1])
async def test_two_empty_years_are_a_few_evaluations(score: int) -> None:
    """70,000 boundaries at 25 ms are half an hour; an alert that fires across the gap changes nothing of it."""
    windows, alerts = Counting(WindowPolicy(retention_days=90)), MemoryAlertStore()
    await filled(windows, alerts, [(0, score), (2, score), (4, score)])
    await alerts.claim_evaluation(NOON, None)
    windows.evaluations = 0

    await the_hop(windows, alerts, Clock(NOON + 730 * DAY))()

    assert await alerts.evaluated_through() == NOON + 730 * DAY
    assert windows.evaluations < 20


def test_the_next_filled_window_is_the_first_that_holds_the_bucket() -> None:
    """One boundary later would alarm late, one earlier would be empty."""

    def after(boundary: datetime, *begins: datetime) -> datetime:
        return next_filled(begins, boundary, NOON + DAY, window=HOUR, bucket=QUARTER)

    assert after(NOON) == NOON + DAY
    assert after(NOON, NOON + 5 * HOUR) == NOON + 5 * HOUR + QUARTER
    assert after(NOON, NOON - HOUR) == NOON
    assert after(NOON, NOON - HOUR - QUARTER) == NOON + DAY
    assert after(NOON, NOON + 2 * DAY) == NOON + DAY


def test_a_quiet_stretch_has_few_markers_and_the_last_step_of_it() -> None:
    """The clock must stand right before the next event, and everything open must have ended by its own time."""
    told = list(marks(NOON, NOON, NOON + 730 * DAY + timedelta(minutes=7), quiet_after=HOUR))

    assert told == [NOON + step * MARKER_EVERY for step in range(1, 5)] + [NOON + 730 * DAY]


def test_busy_traffic_has_every_marker() -> None:
    """The demo's clock goes in steps of a bucket."""
    told = list(marks(NOON, NOON + HOUR, NOON + HOUR, quiet_after=QUARTER))

    assert told == [NOON + step * MARKER_EVERY for step in range(1, 5)]
