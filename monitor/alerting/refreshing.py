"""What a receiver believes to fire in, the same told again out: its alerts die unless they are repeated."""

from collections.abc import Sequence
from datetime import datetime

from monitor.alerting.alert import AlertState
from monitor.alerting.group_store import GroupStore
from monitor.alerting.labels import LabelRule, routed
from monitor.alerting.notification import GroupAlert
from monitor.alerting.receiver import Delivery, Refreshed
from monitor.alerting.store import AlertStore


async def refresh(
    alerts: AlertStore,
    groups: GroupStore,
    labels: Sequence[LabelRule],
    receiver: Refreshed,
    *,
    now: datetime,
) -> Delivery | None:
    """Tell a receiver again of all that it was told and that still fires; None if that is nothing."""
    # What a group remembers may carry more than the fingerprint.
    told = {
        name.partition("/")[0]
        for group in await groups.groups()
        if group.receiver == receiver.name
        for name in group.told_firing
    }
    if not told:
        return None
    firing = [
        GroupAlert(alert=one.alert, status=one.status, labels=dict(one.labels))
        for one in (routed(alert, labels) for alert in await alerts.all([AlertState.FIRING]))
        if one.fingerprint in told
    ]
    return await receiver.refresh(firing, now) if firing else None
