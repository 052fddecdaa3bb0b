"""Judges' counters in, transitions of their own alerts out. Doing it twice changes nothing."""

from datetime import datetime, timedelta

from monitor.alerting.alert import OPEN, Transition
from monitor.alerting.life import advance
from monitor.alerting.store import AlertStore
from monitor.detection.finding import Finding, FindingKind, Outcome, Persistence
from monitor.detection.judge_health import health_finding
from monitor.judging.health import HealthPolicy, HealthStore, health_of

AT_ONCE = Persistence(for_minutes=15, clear_minutes=60)
"""The counters look back over hours themselves; a quarter keeps one bad minute at an hour's beginning quiet."""


async def evaluate_judges(
    health: HealthStore, alerts: AlertStore, policy: HealthPolicy, *, now: datetime
) -> tuple[Transition, ...]:
    """Look at every judge that spoke in the last hours and write what changes; the silent ones change nothing."""
    opened = {alert.fingerprint for alert in await alerts.all(OPEN) if alert.kind is FindingKind.JUDGE}
    transitions = []
    for finding in await findings_of(health, policy, now=now):
        if finding.fingerprint not in opened and finding.outcome is not Outcome.FAIL:
            continue
        alert = await alerts.get(finding.fingerprint)
        transition = advance(alert, finding, now=now, persistence=AT_ONCE)
        if transition is not None and await alerts.commit(transition):
            transitions.append(transition)
    return tuple(transitions)


async def findings_of(health: HealthStore, policy: HealthPolicy, *, now: datetime) -> list[Finding]:
    """Return one finding for each judge that spoke."""
    counters = await health.read(now - timedelta(hours=policy.hours), now)
    return [health_finding(health_of(name, one), policy, now=now) for name, one in counters.items()]
