"""Single critical failures: one ticket per kind, never one per case."""

from datetime import datetime, timedelta

import pytest

from monitor.alerting.alert import SEEN_MAX, Alert, AlertState, Transition
from monitor.alerting.criticals import quiet_down, record_critical
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_text
from monitor.detection.critical import CriticalPolicy, critical_findings
from monitor.detection.finding import Finding, Severity
from monitor.intake.event import Environment
from monitor.judging.judgment import Judgment, Quote
from tests.judgments import HOUR, MINUTE, NOON, a_judgment

POLICY = CriticalPolicy(page_at_or_below={"safety": 1})
WATCHED = (Environment.PRODUCTION,)
QUOTED = (Quote(text="just inhale it", verbatim=True),)


def of(judgment: Judgment) -> tuple[Finding, ...]:
    return critical_findings(judgment, POLICY, WATCHED)


def record(alert: Alert | None, *judgments: Judgment, now: datetime = NOON) -> Transition | None:
    return record_critical(alert, [f for j in judgments for f in of(j)], now=now, policy=POLICY)


def unsafe(conversation: str = "c-1", **more: object) -> Judgment:
    return a_judgment(conversation, scores={"safety": 2}, **more)  # type: ignore[arg-type]


def opened(*judgments: Judgment) -> Alert:
    transition = record(None, *(judgments or (unsafe(),)))
    assert transition is not None
    return transition.alert


@pytest.mark.parametrize(
    ("scores", "critical"), [((5, 5, 5, 5), 0), ((3, 3, 3, 3), 0), ((2, 5, 5, 5), 1), ((5, 1, 2, 1), 3)]
)
def test_a_dimension_at_one_or_two_is_a_finding(scores: tuple[int, ...], critical: int) -> None:
    """S2, the guide's own cases among them."""
    names = ("factual_correctness", "policy_adherence", "actionability", "safety")

    assert len(of(a_judgment(scores=dict(zip(names, scores, strict=True))))) == critical


def test_the_identity_is_the_kind_and_not_the_case() -> None:
    """One breach, one alert."""
    one, other = of(unsafe("a"))[0], of(a_judgment("b", scores={"safety": 1}, at=NOON + HOUR))[0]

    assert one.fingerprint == other.fingerprint
    assert set(one.labels) == {"assistant", "environment", "dimension", "intent", "prompt_hash"}
    assert of(unsafe(prompt_hash="bb22"))[0].fingerprint != one.fingerprint


@pytest.mark.parametrize(
    ("scores", "quotes", "severity"),
    [
        ({"safety": 1}, QUOTED, Severity.PAGE),
        ({"safety": 1}, (), Severity.TICKET),
        ({"safety": 1}, (Quote(text="made up", verbatim=False),), Severity.TICKET),
        ({"safety": 1}, (Quote(text="nowhere", source="none"),), Severity.TICKET),
        ({"safety": 2}, QUOTED, Severity.TICKET),
        ({"policy_adherence": 1}, QUOTED, Severity.TICKET),
    ],
)
def test_only_a_configured_kind_with_a_verbatim_quotation_pages(
    scores: dict[str, int], quotes: tuple[Quote, ...], severity: Severity
) -> None:
    """A judge that invents a quotation must wake nobody."""
    assert [f.severity for f in of(a_judgment(scores=scores, quotes=quotes))] == [severity]


def test_what_is_not_watched_is_no_finding() -> None:
    """Staging is there to fail."""
    assert of(unsafe(environment=Environment.STAGING)) == ()


def test_partial_conversations_still_have_critical_failures() -> None:
    """They stand for nobody in a mean; a forbidden promise is one all the same."""
    assert len(of(unsafe(rate=None))) == 1


def test_the_first_case_is_told_and_the_next_are_counted() -> None:
    """Later ones of the same kind are evidence, not messages."""
    first = record(None, unsafe("a"))
    assert first is not None
    second = record(first.alert, unsafe("b"), now=NOON + MINUTE)
    assert second is not None

    assert (first.notify, second.notify) == (True, False)
    assert (second.alert.total, second.alert.notified_total) == (2, 1)
    assert second.alert.evidence is not None
    assert {c.conversation_id for c in second.alert.evidence.cases} == {"a", "b"}


def test_the_plot_counts_the_cases_of_each_hour() -> None:
    """Whether it is one slip or a flood that began at nine is seen at a glance; a late case counts in its own hour."""
    alert = opened(unsafe("c-1", at=NOON))
    for number, (name, at) in enumerate([("c-2", 2 * HOUR), ("c-3", 2 * HOUR + MINUTE), ("c-4", -HOUR)]):
        transition = record(alert, unsafe(name, at=NOON + at), now=NOON + (3 + number) * HOUR)
        assert transition is not None
        alert = transition.alert

    assert alert.evidence is not None
    course = {point.at: point.value for point in alert.evidence.course}
    assert list(course) == [NOON + (hour - 21) * HOUR for hour in range(24)]
    assert {at - NOON: value for at, value in course.items() if value} == {-HOUR: 1, 0 * HOUR: 1, 2 * HOUR: 2}
    text = as_text(Notification(id="n", alert=alert, reason="r", at=NOON))
    assert "▅▅▁█  critical scores an hour between 0 and 2" in text


def test_a_judgment_that_comes_twice_counts_once() -> None:
    """The topic is at least once."""
    alert = opened(unsafe("a"), unsafe("a"))

    assert alert.total == 1
    assert record(alert, unsafe("a"), now=NOON + HOUR) is None


def test_a_case_that_was_pushed_out_of_the_evidence_still_counts_once() -> None:
    """What is shown is bounded, what is remembered is bounded further out."""
    alert = opened(*(unsafe(f"c-{i}") for i in range(60)))
    assert alert.evidence is not None

    assert (alert.total, len(alert.evidence.cases)) == (60, POLICY.cases_max)
    assert record(alert, *(unsafe(f"c-{i}") for i in range(60))) is None
    assert len(opened(*(unsafe(f"c-{i}") for i in range(SEEN_MAX + 9))).seen) == SEEN_MAX


def test_a_graver_case_is_told_at_once() -> None:
    """A ticket that becomes a page must not wait for tomorrow's summary."""
    transition = record(opened(), a_judgment("b", scores={"safety": 1}, quotes=QUOTED), now=NOON + MINUTE)

    assert transition is not None
    assert (transition.notify, transition.alert.severity) == (True, Severity.PAGE)


def test_pages_of_one_kind_come_once_an_hour_and_say_how_many() -> None:
    """Repeats are held back, never dropped."""
    page = a_judgment("a", scores={"safety": 1}, quotes=QUOTED)
    alert = opened(page)
    for minute in (10, 20):
        transition = record(alert, unsafe(f"m-{minute}"), now=NOON + minute * MINUTE)
        assert transition is not None
        assert not transition.notify
        alert = transition.alert

    assert quiet_down(alert, judged=9, now=NOON + 59 * MINUTE, policy=POLICY) is None
    told = quiet_down(alert, judged=9, now=NOON + HOUR, policy=POLICY)
    assert told is not None
    assert (told.notify, told.reason) == (True, "2 more cases, 3 in all")
    assert quiet_down(told.alert, judged=9, now=NOON + 3 * HOUR, policy=POLICY) is None


def test_quiet_ends_it_only_while_conversations_are_judged() -> None:
    """The silence of a judge that does not work is no recovery."""
    later = NOON + timedelta(minutes=POLICY.quiet_minutes)

    assert quiet_down(opened(), judged=0, now=later, policy=POLICY) is None
    assert quiet_down(opened(), judged=1, now=later - MINUTE, policy=POLICY) is None
    ended = quiet_down(opened(), judged=1, now=later, policy=POLICY)
    assert ended is not None
    assert (ended.notify, ended.alert.state) == (True, AlertState.RESOLVED)
    assert quiet_down(ended.alert, judged=1, now=later, policy=POLICY) is None


def test_an_ended_alert_opens_again_for_a_new_case_and_not_for_an_old_one() -> None:
    """A redelivered judgment from yesterday is no news."""
    ended = quiet_down(opened(), judged=1, now=NOON + 7 * HOUR, policy=POLICY)
    assert ended is not None
    assert record(ended.alert, unsafe(), now=NOON + 8 * HOUR) is None

    again = record(ended.alert, unsafe("new"), now=NOON + 8 * HOUR)

    assert again is not None
    assert (again.notify, again.alert.total, again.alert.version) == (True, 1, 3)
