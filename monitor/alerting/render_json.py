"""A group's notification in, JSON values out: the evidence as values, for receivers that know us."""

from typing import Any

from monitor.alerting.labels import alertname
from monitor.alerting.naming import runbook, title
from monitor.alerting.notification import GroupAlert, GroupNotification
from monitor.alerting.wording import stamp


def as_json(notification: GroupNotification) -> dict[str, Any]:
    """Return a notification as JSON values."""
    return {
        "id": notification.id,
        "group_id": notification.group_id,
        "group_key": notification.group_key,
        "group_labels": dict(sorted(notification.group_labels.items())),
        "receiver": notification.receiver,
        "status": str(notification.status),
        "reason": str(notification.reason),
        "at": stamp(notification.at),
        "firing": notification.firing,
        "resolved": notification.resolved,
        "truncated": notification.truncated,
        "suppressed": notification.suppressed,
        "alerts": [alert_json(one) for one in notification.alerts],
    }


def alert_json(one: GroupAlert) -> dict[str, Any]:
    """Return one alert of a group as JSON values."""
    alert = one.alert
    return {
        "fingerprint": alert.fingerprint,
        "alertname": alertname(alert.kind),
        "status": str(one.status),
        "severity": str(alert.severity),
        "title": title(alert),
        "reason": alert.finding.reason,
        "labels": dict(sorted(one.labels.items())),
        "since": stamp(alert.since),
        "resolved_at": stamp(alert.resolved_at) if alert.resolved_at else None,
        "cases_total": alert.total,
        "sustained": alert.finding.sustained.model_dump(mode="json") if alert.finding.sustained else None,
        "evidence": alert.evidence.model_dump(mode="json") if alert.evidence else None,
        "runbook": runbook(alert),
        "command": f"monitor alerts show {alert.fingerprint}",
    }
