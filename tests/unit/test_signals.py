"""Shares over all traffic: from the sampler's counts to a ticket that says since when."""

from collections import Counter
from datetime import timedelta

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.memory_sampling import MemoryCensus, MemorySampling
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import Transition
from monitor.alerting.evaluation import evaluate
from monitor.alerting.message import told
from monitor.alerting.notification import Status
from monitor.alerting.regressions import Detection
from monitor.alerting.signals import SignalReader
from monitor.detection.baseline import BaselinePolicy
from monitor.detection.census import census_series
from monitor.detection.finding import FindingKind, Severity
from monitor.detection.gates import GatePolicy
from monitor.detection.pinning import overall_series, pinned_of
from monitor.detection.policy import DetectionPolicy
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Source
from monitor.windows.bucket import OVERALL
from monitor.windows.policy import WindowPolicy
from tests.drawn import QUARTER, SCOPE, Drawn
from tests.judgments import HOUR, NOON

DAY = timedelta(days=1)
WINDOWS = WindowPolicy()
STRATA = ("intent", "channel")
SOURCE = Source("cluster", "conversation-events", "id-1", 0)


def counted(hour: float, *, escalated: int = 2) -> dict[tuple[str, str], int]:
    returns, billing = "support-bot|production|returns|web", "support-bot|production|billing|web"
    bad = escalated if hour >= 0 else 2
    return {
        (returns, "turn"): 60,
        (billing, "turn"): 140,
        (returns, "escalated"): bad,
        (billing, "escalated"): 2,
        (billing, "thumb_down"): 5,
        (billing, "thumb_up"): 9,
        ("shop|production|returns|web", "escalated"): 50,
        ("support-bot-2|production|returns|web", "turn"): 1000,
    }


def a_leader(baselines: MemoryBaselines, census: MemoryCensus) -> Detection:
    return Detection(baselines, DetectionPolicy(), WINDOWS, census=census, census_strata=STRATA)


async def play(escalated: int, *, bad_hours: float) -> list[tuple[float, Transition]]:
    """Pin two days, then watch eight hours, in whose first hours more of the returns are escalated."""
    sampling, windows, alerts = (
        MemorySampling(remember_hours=26),
        MemoryWindowStore(WINDOWS),
        MemoryAlertStore(),
    )
    census = MemoryCensus(sampling)
    baselines, drawn = MemoryBaselines(), Drawn({"starts": NOON.isoformat()})
    for number in range(-192, 60):
        hour = number / 4
        bad = 0 <= hour < bad_hours
        tally = PartitionTally(number + 192, number + 193)
        bucket = int((NOON + hour * HOUR).timestamp())
        tally.census[bucket] = Counter(counted(hour, escalated=escalated if bad else 2))
        assert sampling.record(SOURCE, tally, now=NOON)
    start = NOON - timedelta(days=2)
    series = overall_series(
        census_series(await census.counts(start, NOON), STRATA)[SCOPE.assistant, SCOPE.environment],
        start=start,
        end=NOON,
        bucket_minutes=15,
    )
    await baselines.pin(
        pinned_of(SCOPE, series, release="release 1", at=NOON, by="jo", policy=BaselinePolicy())
    )
    found: list[tuple[float, Transition]] = []
    leaders = [a_leader(baselines, census) for _ in range(2)]
    for number in range(60):
        begin = NOON + number * QUARTER
        windows._buckets[SCOPE, begin] = drawn.bucket(begin)
        if number % 20 == 10:
            leaders = [leaders[1], a_leader(baselines, census)]
        for leader in leaders:
            # Another process, or one that has just started: what was said is not said again.
            said = await evaluate(
                windows, alerts, GatePolicy(gates={}), now=begin + QUARTER, detection=leader
            )
            found += [(number / 4 + 0.25, one) for one in said]
    return found


async def test_a_rise_of_escalations_is_a_ticket_with_its_onset_and_its_intent() -> None:
    """Users' reactions need no judge, and are known to the last one."""
    (fired_hour, fired), (ended_hour, ended) = await play(12, bad_hours=5)

    alert = fired.alert
    assert alert.kind is FindingKind.SIGNAL
    assert (alert.labels["dimension"], alert.severity) == ("escalated", Severity.TICKET)
    assert 1.25 <= fired_hour <= 3
    assert 5 < ended_hour <= 12
    assert ended.reason.startswith("back to what the baseline calls normal")
    assert alert.finding.sustained is not None
    assert abs(alert.finding.sustained.onset - NOON) <= QUARTER
    message = told(alert, reason=fired.reason, status=Status.FIRING)
    assert (
        message.title
        == "escalations became more frequent than in their baseline for support-bot (production)"
    )
    assert message.runbook == "docs/runbooks/signal.md"
    assert "intent=returns: +" in message.where[1]
    assert message.cases == ()
    assert message.agreement is None


async def test_an_hour_of_escalations_is_forgiven() -> None:
    """A broken button that was mended at once is told by nobody at night."""
    assert await play(12, bad_hours=1) == []


async def test_an_event_that_comes_days_late_counts_from_midnight_on() -> None:
    """Evaluators that have run for a week and one that has just started must come to see the same."""
    sampling = MemorySampling(remember_hours=26)

    def happened(number: int, hour: float) -> None:
        tally = PartitionTally(number, number + 1)
        tally.census[int((NOON + hour * HOUR).timestamp())] = Counter(counted(hour))
        assert sampling.record(SOURCE, tally, now=NOON)

    for number in range(192):
        happened(number, number / 4 - 48)
    baseline = pinned_of(
        SCOPE,
        overall_series(
            census_series(await MemoryCensus(sampling).counts(NOON - 2 * DAY, NOON), STRATA)[
                SCOPE.assistant, SCOPE.environment
            ],
            start=NOON - 2 * DAY,
            end=NOON,
            bucket_minutes=15,
        ),
        release="release 1",
        at=NOON,
        by="jo",
        policy=BaselinePolicy(),
    ).baseline
    for number in range(192, 480):
        happened(number, number / 4 - 48)
    reader = SignalReader(DetectionPolicy(), MemoryCensus(sampling), STRATA)

    async def seen(hour: float) -> float:
        detector, end = await reader.read(SCOPE, baseline, NOON + hour * HOUR)
        found = detector.read(baseline, {}, end=end, shifts={})
        return float(found["escalated", OVERALL].series.n)

    an_hour = 800
    assert await seen(61) == 61 * an_hour
    happened(480, 20)
    assert await seen(62) == 62 * an_hour
    assert await seen(83.75) == 72 * an_hour
    assert await seen(84) == 72 * an_hour + 200
