"""Findings and transitions for tests: a test states what it is about."""

from datetime import datetime

from monitor.alerting.alert import Alert, Transition
from monitor.alerting.life import advance
from monitor.detection.finding import Finding, FindingKind, Outcome, Persistence, Severity
from tests.judgments import NOON

AT_ONCE = Persistence(for_minutes=0, clear_minutes=0)


def a_finding(
    outcome: Outcome = Outcome.FAIL,
    *,
    dimension: str = "safety",
    severity: Severity = Severity.PAGE,
    clear: bool = True,
) -> Finding:
    """Return a gate's finding."""
    return Finding(
        kind=FindingKind.GATE,
        labels={"assistant": "bot", "environment": "production", "dimension": dimension, "segment": "*"},
        severity=severity,
        outcome=outcome,
        clear=clear and outcome is Outcome.PASS,
        reason=str(outcome),
        since=NOON,
    )


def step(alert: Alert | None, found: Finding, now: datetime = NOON) -> Transition:
    """Return the transition of a policy that waits for nothing."""
    transition = advance(alert, found, now=now, persistence=AT_ONCE)
    assert transition is not None
    return transition
