"""How often somebody is woken: pages a shift, as the shipped routes make them of a record of alerts."""

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.receiver import Notification
from monitor.alerting.routing import DEFAULT_INHIBIT_RULES
from monitor.alerting.shifts import Paging, paging, played
from monitor.detection.finding import Failures, Finding, FindingKind, Outcome, Severity
from monitor.policy import load_policy
from tests.groups import routing
from tests.judgments import HOUR, MINUTE, NOON

SHIPPED = load_policy().routing


def told(
    hour: float,
    *,
    dimension: str = "safety",
    segment: str = "*",
    kind: FindingKind = FindingKind.GATE,
    severity: Severity = Severity.PAGE,
    over: bool = False,
    assistant: str = "shop",
    check: str = "",
    failures: Failures | None = None,
) -> Notification:
    labels = {
        FindingKind.DELIVERY: {"receiver": "chat"},
        FindingKind.JUDGE: {"judge": "j1", "stage": "first"},
        FindingKind.CRITICAL: {"dimension": dimension, "intent": segment, "prompt_hash": "p"},
    }.get(kind, {"dimension": dimension, "segment": segment})
    if kind not in {FindingKind.DELIVERY, FindingKind.JUDGE}:
        labels |= {"assistant": assistant, "environment": "production"}
    if check:
        labels |= {"check": check}
    at = NOON + hour * HOUR
    finding = Finding(
        kind=kind,
        labels=labels,
        severity=severity,
        outcome=Outcome.FAIL,
        reason="fails",
        since=at,
        failures=failures,
    )
    alert = Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.RESOLVED if over else AlertState.FIRING,
        version=round(hour * 60) + 1,
        severity=severity,
        finding=finding,
        since=at,
        failed_at=at,
    )
    return Notification(id=f"{finding.fingerprint}-{hour}", alert=alert, reason="fails", at=at)


def rung(*record: Notification) -> Paging:
    [one] = paging(played(SHIPPED, record))
    return one


def test_a_release_that_breaks_three_gates_rings_once() -> None:
    """The second gate is more of what is being looked at already."""
    one = rung(told(0), told(1, dimension="policy_adherence"), told(3, dimension="critical"))

    assert (len(one.pages), one.busiest) == (1, 1)
    assert one.messages >= 3, "each of them is told"


def test_a_critical_failure_rings_beside_an_open_page() -> None:
    """Somebody who looks into a slow decline must hear of the answer that harms."""
    one = rung(told(0), told(2, kind=FindingKind.CRITICAL, segment="returns"))

    assert (len(one.pages), one.busiest) == (2, 2)


def test_a_second_kind_of_critical_failure_joins_the_first() -> None:
    """Critical failures of ten intents are one incident."""
    one = rung(*(told(n, kind=FindingKind.CRITICAL, segment=f"intent{n}") for n in range(10)))

    assert one.busiest == 1


def test_what_fires_again_after_its_end_rings_again() -> None:
    """An end closes the incident; a shift is any twelve hours, not those of the calendar."""
    one = rung(told(0), told(3, over=True), told(11), told(13, over=True), told(23.5))

    assert [round((at - NOON) / HOUR, 1) for at in one.pages] == [0, 11, 23.5]
    assert one.busiest == 2


def test_a_ticket_never_rings_and_a_page_that_joins_it_does() -> None:
    """A route may put both into one group; the first page in it is the one that wakes."""
    mixed = routing("route: {receiver: a, group_by: [assistant]}")
    record = [told(0, severity=Severity.TICKET), told(1, dimension="other")]

    for policy in (SHIPPED, mixed):
        [one] = paging(played(policy, record))
        assert [at >= NOON + HOUR for at in one.pages] == [True]


def test_a_judge_that_is_not_well_mutes_quality_and_no_critical_failure() -> None:
    """What it says of means is no news; an answer with its quotation is."""
    judge = told(0, kind=FindingKind.JUDGE, severity=Severity.TICKET, failures=Failures.SPREAD)
    one = rung(judge, told(1), told(2, kind=FindingKind.CRITICAL, segment="returns"))

    assert [round((at - NOON) / HOUR) for at in one.pages] == [2]


def test_a_judge_that_has_drifted_mutes_nothing() -> None:
    """Its shift is taken off the figures, and a step that remains beside it still pages."""
    drift = told(0, kind=FindingKind.JUDGE, severity=Severity.TICKET, check="drift")

    assert [round((at - NOON) / HOUR) for at in rung(drift, told(1)).pages] == [1]


def test_a_ticket_on_all_traffic_does_not_mute_a_page_on_a_segment() -> None:
    """Otherwise the graver would hide behind the milder."""
    overall = told(0, severity=Severity.TICKET)

    assert rung(overall, told(1, segment="intent=returns")).busiest == 1


def test_a_page_on_all_traffic_mutes_its_segments_and_counts_them() -> None:
    """Evidence of the same, and nothing is hidden: the next message says how many were held back."""
    one = rung(
        told(0), told(1, segment="intent=returns"), told(2, segment="intent=billing"), told(3, dimension="x")
    )

    assert (one.busiest, one.held_back) == (1, 2)


def test_nothing_recorded_tells_nothing() -> None:
    """A quiet month is no error."""
    assert paging(played(SHIPPED, [])) == ()


def test_reminders_do_not_ring_and_are_as_many_as_the_routes_say() -> None:
    """The play follows the record's time: a page that stays open for a day is repeated every four hours."""
    one = rung(told(0), told(24, over=True))

    assert len(one.pages) == 1
    assert 6 <= one.messages <= 8


def test_the_shipped_file_states_the_rules_that_hold_without_it() -> None:
    """Whoever deletes the key must not get other rules than those that he read."""
    assert SHIPPED.inhibit_rules == DEFAULT_INHIBIT_RULES


def test_a_group_that_waits_is_told_after_the_last_record() -> None:
    """The play goes on until whatever waits has had its turn."""
    [first] = played(SHIPPED, [told(0)])

    assert first.at == NOON + MINUTE / 2
