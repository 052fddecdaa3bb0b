"""What people say of an alert is kept, and counted into how often our pages were worth it."""

import pytest

from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.deciding import (
    Refused,
    acknowledged,
    commented,
    decided,
    excepted,
    exception_for,
    precision_of,
)
from monitor.alerting.decision import NOTES_MAX, Act, Verdict
from monitor.alerting.life import advance
from monitor.alerting.store import notification_of
from monitor.detection.finding import Outcome, Persistence, Severity
from tests.alerts import a_finding, step
from tests.judgments import HOUR, MINUTE, NOON


def fired() -> Alert:
    return step(None, a_finding()).alert


def done(said: Transition | Refused) -> Transition:
    assert isinstance(said, Transition), said
    return said


def test_an_acknowledgement_says_who_and_stays_out_of_the_alerts_life() -> None:
    """It goes on firing: to look after something does not mend it."""
    said = done(acknowledged(fired(), by="j.doe", at=NOON + MINUTE, text="looking"))

    assert said.alert.state is AlertState.FIRING
    assert (said.alert.acknowledged_by, said.notify, said.by) == ("j.doe", False, "j.doe")
    assert said.reason == "acknowledged by j.doe: looking"
    assert [note.act for note in said.alert.notes] == [Act.ACKNOWLEDGED]


def test_what_people_do_is_on_record_though_nobody_is_told() -> None:
    """The alerts topic has the whole life of an alert, people's part of it included."""
    record = notification_of(commented(fired(), by="j.doe", at=NOON, text="the index was rebuilt"))

    assert record is not None
    assert record.reason == "commented by j.doe: the index was rebuilt"


def test_the_next_episode_is_not_acknowledged_yet_and_remembers_the_last() -> None:
    """Whoever said yes to one fault did not say yes to the next."""
    alert = done(acknowledged(fired(), by="j.doe", at=NOON)).alert
    over = step(alert, a_finding(Outcome.PASS), NOON + HOUR).alert
    again = step(over, a_finding(), NOON + 2 * HOUR).alert

    assert again.acknowledged_by is None
    assert len(again.notes) == 1


def test_a_pending_or_resolved_alert_is_not_acknowledged() -> None:
    """There is nothing to look after."""
    pending = advance(None, a_finding(), now=NOON, persistence=Persistence())
    assert pending is not None

    assert isinstance(acknowledged(pending.alert, by="j", at=NOON), Refused)
    assert isinstance(decided(pending.alert, Verdict.GATE, by="j", at=NOON), Refused)


def test_a_decision_ends_what_fires_and_people_are_told() -> None:
    """The incident at the pager closes with it."""
    said = done(decided(fired(), Verdict.EXPECTED, by="j.doe", at=NOON + HOUR, text="new wording"))

    assert said.alert.state is AlertState.RESOLVED
    assert said.notify
    assert said.alert.decisions[0].verdict is Verdict.EXPECTED


def test_what_goes_on_failing_comes_back_after_a_decision() -> None:
    """A decision is no exception, and no lower gate."""
    over = done(decided(fired(), Verdict.REGRESSION, by="j", at=NOON + HOUR)).alert

    again = step(over, a_finding(), NOON + 2 * HOUR).alert

    assert again.state is AlertState.FIRING
    assert len(again.decisions) == 1


def test_the_last_word_on_a_firing_counts() -> None:
    """People think better of it."""
    alert = done(decided(fired(), Verdict.GATE, by="j", at=NOON)).alert
    alert = done(decided(alert, Verdict.JUDGE_ERROR, by="k", at=NOON + HOUR)).alert

    assert [one.verdict for one in alert.decisions] == [Verdict.JUDGE_ERROR]
    assert len(alert.notes) == 2


def test_precision_counts_regressions_among_what_was_decided() -> None:
    """An alert that nobody decided is neither good nor bad."""
    alerts = []
    verdicts = [Verdict.REGRESSION, Verdict.REGRESSION, Verdict.JUDGE_ERROR, None]
    for number, verdict in enumerate(verdicts):
        alert = step(None, a_finding(dimension=f"d{number}")).alert
        alerts.append(done(decided(alert, verdict, by="j", at=NOON + HOUR)).alert if verdict else alert)
    alerts.append(step(None, a_finding(dimension="ticket", severity=Severity.TICKET)).alert)

    pages, tickets = precision_of(alerts, since=NOON - HOUR)

    assert (pages.severity, pages.fired, pages.decided) == (Severity.PAGE, 4, 3)
    assert pages.precision == pytest.approx(2 / 3)
    assert (tickets.fired, tickets.decided, tickets.precision) == (1, 0, None)
    assert precision_of(alerts, since=NOON + HOUR) == ()


def test_an_exception_names_one_alert_and_a_day() -> None:
    """It needs an owner, a reason and an end, and no other assistant's gate is touched."""
    alert = fired()
    exception = exception_for(alert, owner="j.doe", reason="known", until=NOON + HOUR)

    assert (exception.gate, exception.segment, exception.alert) == ("safety", "*", alert.fingerprint)
    assert done(excepted(alert, exception, at=NOON)).alert.notes[0].by == "j.doe"
    assert isinstance(excepted(alert, exception, at=NOON + HOUR), Refused)


def test_notes_have_a_limit() -> None:
    """Everything has a limit; the topic has them all."""
    alert = fired()
    for number in range(NOTES_MAX + 5):
        alert = commented(alert, by="j", at=NOON, text=str(number)).alert

    assert len(alert.notes) == NOTES_MAX
    assert alert.notes[-1].text == str(NOTES_MAX + 4)
