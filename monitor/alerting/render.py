"""One transition of an alert in, text or JSON for people out; whole groups are rendered in render_text and its kin."""

from typing import Any

from monitor.alerting.links import Links
from monitor.alerting.message import stamp, told
from monitor.alerting.naming import runbook, title
from monitor.alerting.receiver import Notification
from monitor.alerting.render_text import alert_lines

__all__ = ["as_json", "as_text", "runbook", "title"]


def as_text(notification: Notification, *, links: Links = Links()) -> str:
    """Return a notification as plain lines, in the order in which a person asks."""
    alert = notification.alert
    one = told(alert, reason=notification.reason, status=notification.status, links=links)
    head = f"[{one.status.upper()}] [{one.severity}] {one.title}"
    return "\n".join([head, *alert_lines(one), f"Id: {notification.id}"])


def as_json(notification: Notification) -> dict[str, Any]:
    """Return a notification as JSON values."""
    alert = notification.alert
    return {
        "id": notification.id,
        "status": notification.status,
        "severity": alert.severity,
        "title": title(alert),
        "reason": notification.reason,
        "at": stamp(notification.at),
        "labels": dict(sorted(alert.labels.items())),
        "since": stamp(alert.since),
        "resolved_at": stamp(alert.resolved_at) if alert.resolved_at else None,
        "cases_total": alert.total,
        "evidence": alert.evidence.model_dump(mode="json") if alert.evidence else None,
        "runbook": runbook(alert),
    }
