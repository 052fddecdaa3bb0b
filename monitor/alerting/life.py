"""The life of an alert: findings in, transitions out. No data never ends anything."""

from datetime import datetime
from typing import assert_never

from monitor.alerting.alert import FIRINGS_MAX, Alert, AlertState, Transition, changed
from monitor.detection.finding import Finding, Outcome, Persistence


def advance(
    alert: Alert | None, finding: Finding, *, now: datetime, persistence: Persistence
) -> Transition | None:
    """Return what a finding changes, or None. Asked twice at one time, it changes nothing the second time."""
    if alert is not None and now < alert.failed_at:
        return None  # An evaluation that lags behind another leader's has nothing to say.
    match finding.outcome:
        case Outcome.FAIL:
            return _failing(alert, finding, now, persistence)
        case Outcome.PASS:
            return _passing(alert, finding, now, persistence)
        case Outcome.NO_DATA:
            return _unknown(alert, finding, now)
        case Outcome.EXCEPTED:
            return _excepted(alert, finding, now)
        case _:
            assert_never(finding.outcome)


def is_flapping(alert: Alert, *, now: datetime, persistence: Persistence) -> bool:
    """Tell whether it fired too often of late to be believed when it clears."""
    recent = [fired for fired in alert.firings if now - fired <= persistence.flapping_window]
    return len(recent) >= persistence.flapping_count


def opened(alert: Alert | None, finding: Finding, now: datetime, *, since: datetime | None = None) -> Alert:
    """Return an alert at the beginning of an episode, with the version before its first change."""
    return Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.PENDING,
        version=alert.version if alert else 0,
        severity=finding.severity,
        finding=finding,
        since=since or now,
        failed_at=now,
        firings=alert.firings if alert else (),
        notes=alert.notes if alert else (),
        decisions=alert.decisions if alert else (),
    )


def fired(alert: Alert, finding: Finding, now: datetime) -> Transition:
    """Return the transition that tells people of an alert."""
    return changed(
        alert,
        now,
        finding.reason,
        notify=True,
        state=AlertState.FIRING,
        finding=finding,
        severity=finding.severity,
        failed_at=now,
        fired_at=now,
        resolved_at=None,
        clear_since=None,
        firings=(*alert.firings, now)[-FIRINGS_MAX:],
    )


def ended(alert: Alert, finding: Finding, now: datetime, reason: str) -> Transition:
    """Return the transition that ends an alert."""
    # Whoever was never told of it need not hear that it is over.
    told = alert.state is AlertState.FIRING
    return changed(
        alert,
        now,
        reason,
        notify=told,
        state=AlertState.RESOLVED,
        finding=finding,
        resolved_at=now,
        clear_since=None,
    )


def _failing(
    alert: Alert | None, finding: Finding, now: datetime, persistence: Persistence
) -> Transition | None:
    if alert is None or alert.state is AlertState.RESOLVED:
        begun = opened(alert, finding, now)
        if not persistence.hold:
            return fired(begun, finding, now)
        return changed(begun, now, finding.reason, notify=False)
    if alert.state is AlertState.PENDING:
        return _still_pending(alert, finding, now, persistence)
    if alert.clear_since is None:
        return None
    return changed(alert, now, "fails again", notify=False, clear_since=None, failed_at=now)


def _still_pending(
    alert: Alert, finding: Finding, now: datetime, persistence: Persistence
) -> Transition | None:
    if now - alert.failed_at > persistence.hold:
        # Nothing was seen for longer than it must hold: that is no sustained failure.
        return changed(alert, now, "fails anew", notify=False, since=now, failed_at=now, finding=finding)
    if now - alert.since >= persistence.hold:
        return fired(alert, finding, now)
    if now == alert.failed_at:
        return None
    return changed(alert, now, "still fails", notify=False, failed_at=now)


def _passing(
    alert: Alert | None, finding: Finding, now: datetime, persistence: Persistence
) -> Transition | None:
    if alert is None or alert.state is AlertState.RESOLVED:
        return None
    if alert.state is AlertState.PENDING:
        return ended(alert, finding, now, "it passed before it fired")
    if not finding.clear:
        return _unclear(alert, finding, now)
    clear_since = alert.clear_since or now
    needed = persistence.clearance(flapping=is_flapping(alert, now=now, persistence=persistence))
    if now - clear_since >= needed:
        return ended(alert, finding, now, finding.reason)
    if alert.clear_since is not None:
        return None
    return changed(alert, now, "begins to clear", notify=False, clear_since=now)


def _unknown(alert: Alert | None, finding: Finding, now: datetime) -> Transition | None:
    if alert is None or alert.state is not AlertState.FIRING:
        return None
    return _unclear(alert, finding, now)


def _unclear(alert: Alert, finding: Finding, now: datetime) -> Transition | None:
    if alert.clear_since is None:
        return None
    # A recovery is counted over data that was seen to pass by the margin; a gap begins the count anew.
    return changed(alert, now, finding.reason, notify=False, clear_since=None)


def _excepted(alert: Alert | None, finding: Finding, now: datetime) -> Transition | None:
    if alert is None or alert.state is AlertState.RESOLVED:
        return None
    return ended(alert, finding, now, finding.reason)
