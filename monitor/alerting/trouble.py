"""A round of deliveries in, alerts on receivers that fail out: people hear of it by another route."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from monitor.alerting.alert import FIRINGS_MAX, Alert, AlertState, Transition, changed
from monitor.alerting.delivery import Attempt, Round
from monitor.alerting.group_store import GroupStore
from monitor.alerting.naming import title
from monitor.alerting.notification import WaitingNotification
from monitor.alerting.receiver import Delivered
from monitor.alerting.store import AlertStore
from monitor.alerting.wording import duration
from monitor.detection.finding import Finding, FindingKind, Outcome, Severity, fingerprint

NAMED_MAX = 5
"""Lost notifications that an alert names; of the rest it tells how many."""


async def record_trouble(
    alerts: AlertStore, groups: GroupStore, done: Round, *, now: datetime, alert_after: timedelta
) -> tuple[Transition, ...]:
    """Write what a round changes in the alerts on receivers, and only then let go of what is given up.

    Killed in between, the notifier gives it up once more, and the alert fires already.
    """
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in done.attempts:
        attempts[attempt.waiting.notification.receiver].append(attempt)
    waiting: dict[str, list[WaitingNotification]] = defaultdict(list)
    for one in done.waiting:
        if one.attempts:
            waiting[one.notification.receiver].append(one)
    committed = []
    for receiver in sorted({*attempts, *waiting}):
        alert = await alerts.get(fingerprint(FindingKind.DELIVERY, {"receiver": receiver}))
        transition = trouble_of(
            alert, receiver, attempts[receiver], waiting[receiver], now=now, alert_after=alert_after
        )
        if transition is not None and await alerts.commit(transition):
            committed.append(transition)
    await groups.finish_notifications([one.waiting.id for one in done.attempts if one.given_up])
    return tuple(committed)


def trouble_of(
    alert: Alert | None,
    receiver: str,
    attempts: Sequence[Attempt],
    failing: Collection[WaitingNotification],
    *,
    now: datetime,
    alert_after: timedelta,
) -> Transition | None:
    """Return what a round says of one receiver.

    It is in trouble when something was given up or has been failing for a while; it is well again when it took
    something and nothing has been failing for that long.
    """
    lost = [attempt for attempt in attempts if attempt.given_up]
    late = [one for one in failing if now - one.notification.at >= alert_after]
    fires = alert is not None and alert.state is AlertState.FIRING
    if lost or (late and not fires):
        return _fired(alert, receiver, _reason(lost, late, now), now, fires=fires)
    took = any(isinstance(attempt.delivery, Delivered) for attempt in attempts)
    if alert is not None and fires and took and not late:
        return changed(
            alert,
            now,
            "it takes notifications again",
            notify=True,
            state=AlertState.RESOLVED,
            resolved_at=now,
        )
    return None


def _fired(alert: Alert | None, receiver: str, reason: str, now: datetime, *, fires: bool) -> Transition:
    finding = Finding(
        kind=FindingKind.DELIVERY,
        labels={"receiver": receiver},
        severity=Severity.PAGE,
        outcome=Outcome.FAIL,
        reason=reason,
        since=now,
    )
    if alert is not None and fires:
        return changed(alert, now, reason, notify=False, finding=finding, failed_at=now)
    opened = Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.PENDING,
        version=alert.version if alert else 0,
        severity=finding.severity,
        finding=finding,
        since=now,
        failed_at=now,
        fired_at=now,
        firings=(*(alert.firings if alert else ()), now)[-FIRINGS_MAX:],
    )
    return changed(opened, now, reason, notify=True, state=AlertState.FIRING)


def _reason(lost: Sequence[Attempt], late: Sequence[WaitingNotification], now: datetime) -> str:
    if not lost:
        oldest = min(late, key=lambda one: one.notification.at)
        waited = duration(now - oldest.notification.at)
        return f"{len(late)} notifications wait, the oldest for {waited}: {oldest.last_error}"
    errors = dict.fromkeys(attempt.waiting.last_error or "" for attempt in lost)
    named = "; ".join(_named(attempt.waiting for attempt in lost[:NAMED_MAX]))
    more = f"; {len(lost) - NAMED_MAX} more" if len(lost) > NAMED_MAX else ""
    return f"{len(lost)} notifications given up ({', '.join(errors)}): {named}{more}"


def _named(lost: Iterable[WaitingNotification]) -> Iterable[str]:
    for one in lost:
        members = one.notification.alerts
        told = title(members[0].alert) if members else f"{one.notification.firing} alerts"
        yield f"{one.id} ({one.notification.status}: {told})"
