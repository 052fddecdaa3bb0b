"""The life of a critical alert: cases in, one ticket or page per kind out, never one per case."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from monitor.alerting.alert import FIRINGS_MAX, SEEN_MAX, Alert, AlertState, Transition, changed
from monitor.alerting.evidence import Evidence, Point, pick_cases
from monitor.detection.critical import CriticalPolicy
from monitor.detection.finding import Finding
from monitor.windows.case import Case

HOUR = timedelta(hours=1)
COURSE_HOURS = 24
"""Hours of the small plot; more are not seen in a message."""


def record_critical(
    alert: Alert | None, findings: Sequence[Finding], *, now: datetime, policy: CriticalPolicy
) -> Transition | None:
    """Add cases of one label set; people are told at the first, when it grows graver, and at intervals."""
    fresh = _fresh(alert, findings)
    if not fresh:
        return None
    worst = max(fresh, key=lambda finding: finding.severity.weight)
    cases = [finding.case for finding in fresh if finding.case is not None]
    if alert is None or alert.state is not AlertState.FIRING:
        opened = _opened(alert, worst, cases, now)
        return _added(opened, worst, cases, now, policy, notify=True)
    graver = worst.severity.weight > alert.severity.weight
    return _added(alert, worst, cases, now, policy, notify=graver or _may_repeat(alert, now, policy))


def quiet_down(alert: Alert, *, judged: int, now: datetime, policy: CriticalPolicy) -> Transition | None:
    """Resolve after a quiet period in which conversations were judged, or tell of cases held back.

    `judged` is how many were: silence of a judge that did not work is no recovery.
    """
    if alert.state is not AlertState.FIRING:
        return None
    if now - alert.failed_at >= timedelta(minutes=policy.quiet_minutes) and judged > 0:
        reason = (
            f"no case for {policy.quiet_minutes} minutes while {judged} were judged; {alert.total} in all"
        )
        return changed(
            alert,
            now,
            reason,
            notify=True,
            state=AlertState.RESOLVED,
            resolved_at=now,
            notified_total=alert.total,
        )
    if alert.total > alert.notified_total and _may_repeat(alert, now, policy):
        return changed(alert, now, _count(alert), notify=True, notified_total=alert.total)
    return None


def _fresh(alert: Alert | None, findings: Sequence[Finding]) -> list[Finding]:
    seen = set(alert.seen) if alert else set()
    fresh = []
    for finding in findings:
        if finding.case is not None and finding.case.judgment_id not in seen:
            seen.add(finding.case.judgment_id)
            fresh.append(finding)
    return fresh


def _opened(alert: Alert | None, finding: Finding, cases: Sequence[Case], now: datetime) -> Alert:
    return Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.PENDING,
        version=alert.version if alert else 0,
        severity=finding.severity,
        finding=finding,
        since=min(case.observed_at for case in cases),
        failed_at=now,
        fired_at=now,
        firings=(*(alert.firings if alert else ()), now)[-FIRINGS_MAX:],
        seen=alert.seen if alert else (),
        notes=alert.notes if alert else (),
        decisions=alert.decisions if alert else (),
    )


def _added(
    alert: Alert,
    finding: Finding,
    cases: Sequence[Case],
    now: datetime,
    policy: CriticalPolicy,
    *,
    notify: bool,
) -> Transition:
    total = alert.total + len(cases)
    kept = alert.evidence.cases if alert.evidence else ()
    times = [case.observed_at for case in (*kept, *cases)]
    graver = finding.severity.weight > alert.severity.weight
    return changed(
        alert,
        now,
        finding.reason,
        notify=notify,
        state=AlertState.FIRING,
        severity=finding.severity if graver else alert.severity,
        finding=finding if graver else alert.finding,
        failed_at=max(now, alert.failed_at),
        total=total,
        notified_total=total if notify else alert.notified_total,
        seen=(*alert.seen, *(case.judgment_id for case in cases))[-SEEN_MAX:],
        # What was found out about changes stays; it is looked up anew when people are told again.
        evidence=Evidence.model_validate(
            (dict(alert.evidence) if alert.evidence else {})
            | {
                "start": min(times),
                "end": max(times),
                "cases": pick_cases((*kept, *cases), policy.cases_max),
                "course": _course(alert.evidence.course if alert.evidence else (), cases),
            }
        ),
    )


def _course(before: Sequence[Point], cases: Sequence[Case]) -> tuple[Point, ...]:
    """Return how many cases each of the last hours had; an hour without one had none of this kind."""
    counts = {point.at: point.n for point in before}
    for case in cases:
        hour = case.observed_at.replace(minute=0, second=0, microsecond=0)
        counts[hour] = counts.get(hour, 0) + 1
    hours = [max(counts) - HOUR * ago for ago in reversed(range(COURSE_HOURS))]
    return tuple(Point(at=hour, value=counts.get(hour, 0), n=counts.get(hour, 0)) for hour in hours)


def _may_repeat(alert: Alert, now: datetime, policy: CriticalPolicy) -> bool:
    return alert.notified_at is None or now - alert.notified_at >= policy.repeat(alert.severity)


def _count(alert: Alert) -> str:
    return f"{alert.total - alert.notified_total} more cases, {alert.total} in all"
