"""The life of an alert, boundary by boundary."""

from datetime import datetime, timedelta

from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.life import advance
from monitor.detection.finding import Finding, FindingKind, Outcome, Persistence, Severity
from tests.judgments import HOUR, MINUTE, NOON

QUARTER = 15 * MINUTE
POLICY = Persistence()


def found(outcome: Outcome, *, clear: bool = True) -> Finding:
    return Finding(
        kind=FindingKind.GATE,
        labels={"assistant": "bot", "environment": "production", "dimension": "safety", "segment": "*"},
        severity=Severity.TICKET,
        outcome=outcome,
        clear=clear and outcome is Outcome.PASS,
        reason=str(outcome),
        since=NOON,
    )


FAIL, PASS, NO_DATA, EXCEPTED = (
    found(outcome) for outcome in (Outcome.FAIL, Outcome.PASS, Outcome.NO_DATA, Outcome.EXCEPTED)
)
NEAR = found(Outcome.PASS, clear=False)


def live(
    *findings: Finding | None,
    alert: Alert | None = None,
    start: datetime = NOON,
    policy: Persistence = POLICY,
) -> tuple[Alert | None, list[Transition]]:
    """Give one finding each quarter of an hour; None is a boundary that was not evaluated."""
    transitions = []
    for step, finding in enumerate(findings):
        if finding is None:
            continue
        transition = advance(alert, finding, now=start + step * QUARTER, persistence=policy)
        if transition is not None:
            transitions.append(transition)
            alert = transition.alert
    return alert, transitions


def told(transitions: list[Transition]) -> list[AlertState]:
    return [transition.alert.state for transition in transitions if transition.notify]


def a_firing_alert() -> Alert:
    alert, _ = live(*[FAIL] * 5, start=NOON - HOUR)
    assert alert is not None
    assert alert.state is AlertState.FIRING
    return alert


def test_a_failure_fires_once_it_has_held() -> None:
    """S6: alert on sustained drops; one page, at the fifth boundary of an hour."""
    alert, transitions = live(*[FAIL] * 9)

    assert told(transitions) == [AlertState.FIRING]
    assert alert is not None
    assert (alert.since, alert.fired_at) == (NOON, NOON + HOUR)


def test_a_single_blip_fires_nothing() -> None:
    """Never on one noisy run."""
    alert, transitions = live(FAIL, PASS, PASS, FAIL, FAIL, PASS)

    assert told(transitions) == []
    assert alert is not None
    assert alert.state is AlertState.RESOLVED


def test_missing_data_never_resolves_a_firing_alert() -> None:
    """A judge outage must not look like a recovery."""
    assert live(*[NO_DATA] * 200, alert=a_firing_alert())[1] == []


def test_a_gap_in_a_recovery_begins_the_count_anew() -> None:
    """An hour of which three quarters were unseen is no hour of passing."""
    alert, transitions = live(PASS, NO_DATA, PASS, PASS, PASS, PASS, alert=a_firing_alert())
    assert told(transitions) == []

    _, transitions = live(PASS, alert=alert, start=NOON + 6 * QUARTER)
    assert told(transitions) == [AlertState.RESOLVED]


def test_a_near_pass_does_not_end_it() -> None:
    """Hysteresis: it ends by the margin, or it would be back at once."""
    assert told(live(*[NEAR] * 20, alert=a_firing_alert())[1]) == []
    assert told(live(PASS, PASS, NEAR, PASS, PASS, PASS, alert=a_firing_alert())[1]) == []
    assert told(live(*[PASS] * 5, alert=a_firing_alert())[1]) == [AlertState.RESOLVED]


def test_failures_with_a_long_silence_between_are_not_sustained() -> None:
    """One failure before the night and one after it are two blips."""
    alert, transitions = live(FAIL, *[NO_DATA] * 40, FAIL)

    assert told(transitions) == []
    assert alert is not None
    assert alert.since == NOON + 41 * QUARTER


def test_missing_data_between_failures_does_not_reset_them() -> None:
    """A short outage must not make a real drop wait another hour."""
    assert told(live(FAIL, FAIL, NO_DATA, FAIL, FAIL)[1]) == [AlertState.FIRING]


def test_an_alert_that_flaps_stays_open() -> None:
    """Three firings in a day: one long alert is better than the fourth page."""
    alert: Alert | None = None
    sent: list[AlertState] = []
    episode = [*[FAIL] * 5, *[PASS] * 6]
    for number in range(5):
        alert, transitions = live(*episode, alert=alert, start=NOON + number * 11 * QUARTER)
        sent += told(transitions)

    assert sent.count(AlertState.FIRING) == 3
    assert alert is not None
    assert alert.state is AlertState.FIRING
    _, transitions = live(*[PASS] * 25, alert=alert, start=NOON + 55 * QUARTER)
    assert told(transitions) == [AlertState.RESOLVED]


def test_an_exception_ends_an_alert_and_says_who_signed() -> None:
    """People asked for quiet, and the record says which people."""
    _, transitions = live(EXCEPTED, alert=a_firing_alert())

    assert told(transitions) == [AlertState.RESOLVED]
    assert transitions[0].reason == "excepted"
    assert live(EXCEPTED)[1] == []


def test_the_same_boundary_twice_changes_nothing_the_second_time() -> None:
    """Two leaders run it: leadership is not fenced."""
    for alert in (None, live(FAIL)[0], a_firing_alert()):
        for finding in (FAIL, PASS, NEAR, NO_DATA, EXCEPTED):
            now = NOON + HOUR
            first = advance(alert, finding, now=now, persistence=POLICY)
            after = first.alert if first else alert
            assert advance(after, finding, now=now, persistence=POLICY) is None


def test_a_leader_that_lags_behind_has_nothing_to_say() -> None:
    """It was stopped for a while and sees an old window."""
    assert advance(a_firing_alert(), EXCEPTED, now=NOON - timedelta(seconds=1), persistence=POLICY) is None


def test_versions_rise_by_one() -> None:
    """The compare-and-set stands on it."""
    _, transitions = live(*[FAIL] * 6, *[PASS] * 5, *[FAIL] * 5)

    assert [t.alert.version for t in transitions] == list(range(1, len(transitions) + 1))
    assert [t.expected_version for t in transitions] == list(range(len(transitions)))
    assert len({t.id for t in transitions}) == len(transitions)


def test_without_a_hold_it_fires_at_once() -> None:
    """Some gates are asked to."""
    at_once = Persistence(for_minutes=0, clear_minutes=0)

    assert told(live(FAIL, PASS, policy=at_once)[1]) == [AlertState.FIRING, AlertState.RESOLVED]
