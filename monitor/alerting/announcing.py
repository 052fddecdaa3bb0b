"""Alerts, groups and silences in the stores in; committed groups with what waits to be sent out."""

from collections.abc import Sequence
from datetime import datetime

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.group import Rules
from monitor.alerting.group_store import GroupStore
from monitor.alerting.grouping import plan
from monitor.alerting.labels import LabelRule, routed
from monitor.alerting.notification import GroupNotification
from monitor.alerting.store import AlertStore


async def announce(
    alerts: AlertStore,
    groups: GroupStore,
    rules: Rules,
    *,
    labels: Sequence[LabelRule] = (),
    more: Sequence[Alert] = (),
    now: datetime,
) -> tuple[GroupNotification, ...]:
    """Decide which groups are told now, and write each with its next state; return what this one wrote.

    `more` are alerts that live in no store, such as the watchdog. A group that another notifier wrote meanwhile
    is left to it. Called twice at one time, the second call finds nothing to do.
    """
    known = await groups.groups()
    firing = {alert.fingerprint: alert for alert in (*await alerts.all([AlertState.FIRING]), *more)}
    # Of the others only those matter that a receiver still believes to fire.
    for fingerprint in sorted({name for group in known for name in group.members} - set(firing)):
        alert = await alerts.get(fingerprint)
        if alert is not None:
            firing[fingerprint] = alert
    seen = [routed(alert, labels) for alert in firing.values()]
    changes = plan(rules, seen, known, await groups.silences(), now=now)
    written = [change.notification for change in changes if await groups.commit_group(change)]
    return tuple(notification for notification in written if notification is not None)
