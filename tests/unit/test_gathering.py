"""What is looked up when people will be told: changes near the onset, the course, the judge's standing."""

from datetime import timedelta

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_changes import MemoryChanges
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.agreement import UNCALIBRATED
from monitor.alerting.changes import sightings_of
from monitor.alerting.evaluation import evaluate, record_criticals
from monitor.alerting.gathering import Background, course_of
from monitor.detection.finding import FindingKind, Persistence
from monitor.detection.gates import CriticalRateGate, Gate, GatePolicy
from monitor.intake.event import ChangeEvent, ChangeKind
from monitor.windows.policy import WindowPolicy
from tests.judgments import HOUR, MINUTE, NOON, a_judgment

POLICY = GatePolicy(
    gates={"safety": Gate(mean_min=4.5)},
    min_count=5,
    segments=(),
    persistence=Persistence(for_minutes=0, clear_minutes=0),
)
RELEASE = ChangeEvent(
    event_id="r", kind=ChangeKind.DEPLOY, occurred_at=NOON, title="release 42", assistant="support-bot"
)
OLD = [a_judgment(f"old-{n}", at=NOON - n * 20 * MINUTE, prompt_hash="old") for n in range(1, 60)]
NEW = [
    a_judgment(f"new-{n}", at=NOON + n * MINUTE, prompt_hash="new", scores={"safety": 1})
    for n in range(1, 60)
]


async def test_a_gates_evidence_names_the_release_the_prompt_and_the_course() -> None:
    """The first question is what changed, the second since when."""
    windows, alerts, changes = MemoryWindowStore(WindowPolicy()), MemoryAlertStore(), MemoryChanges()
    await windows.apply([*OLD, *NEW], now=NOON)
    await changes.sight(sightings_of([*OLD, *NEW]))
    await changes.record([RELEASE])

    [transition] = [
        one
        for one in await evaluate(
            windows, alerts, POLICY, now=NOON + HOUR, background=Background(changes=changes)
        )
        if one.alert.labels["dimension"] == "safety"
    ]

    evidence = transition.alert.evidence
    assert evidence is not None
    assert evidence.happened == (RELEASE,)
    assert [(one.aspect, one.value, one.first_at) for one in evidence.sightings] == [
        ("prompt_hash", "new", NOON + MINUTE)
    ]
    assert len(evidence.course) == 24
    assert (evidence.course[0].at, evidence.course[-1].at) == (NOON - 23 * HOUR, NOON)
    assert (evidence.course[0].value, evidence.course[-2].value, evidence.course[-1].value) == (None, 5, 1)
    assert evidence.agreement is not None
    assert (evidence.agreement.calibrated, evidence.agreement.statement) == (False, UNCALIBRATED)


async def test_too_many_critical_failures_are_shown_by_critical_ones() -> None:
    """An answer that is merely vague is no evidence for it, however different in kind."""
    windows, alerts = MemoryWindowStore(WindowPolicy()), MemoryAlertStore()
    rate = CriticalRateGate(max=0.02, min_count=5)
    policy = POLICY.model_copy(update={"gates": {}, "critical_rate": rate})
    vague = [
        a_judgment(f"vague-{n}", at=NOON + n * MINUTE, scores={"actionability": 3}) for n in range(1, 30)
    ]
    await windows.apply([*vague, *NEW[:3]], now=NOON)

    [transition] = await evaluate(windows, alerts, policy, now=NOON + HOUR)

    evidence = transition.alert.evidence
    assert evidence is not None
    assert {(case.dimension, case.score) for case in evidence.cases} == {("safety", 1)}


async def test_a_critical_alert_names_what_changed_and_keeps_it() -> None:
    """A silent change of an alert must not lose what was found out when people were told."""
    alerts, changes = MemoryAlertStore(), MemoryChanges()
    background = Background(changes=changes)
    await changes.record([RELEASE])
    await record_criticals(alerts, NEW[:1], policy=POLICY, now=NOON + HOUR, background=background)
    [silent] = await record_criticals(
        alerts, NEW[1:3], policy=POLICY, now=NOON + HOUR + MINUTE, background=background
    )

    assert not silent.notify
    [alert] = [one for one in await alerts.all() if one.kind is FindingKind.CRITICAL]
    assert alert.evidence is not None
    assert alert.evidence.happened == (RELEASE,)
    assert len(alert.evidence.cases) == 3


def test_a_plot_has_a_bounded_number_of_full_hours() -> None:
    """An alert that fired for a week is not 168 bars."""
    assert course_of(NOON, NOON + HOUR) == (NOON + HOUR - timedelta(hours=24), HOUR)
    begin, step = course_of(NOON - 100 * HOUR, NOON)
    assert step == 5 * HOUR
    assert begin == NOON - 120 * HOUR
