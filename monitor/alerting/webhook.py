"""A notification in, Alertmanager's webhook body (version 4) and its signature out."""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from monitor.alerting.links import Links
from monitor.alerting.message import message_of, stamp
from monitor.alerting.naming import runbook, title
from monitor.alerting.notification import GroupAlert, GroupNotification, Status
from monitor.alerting.render_json import as_json
from monitor.alerting.render_text import as_text

ID_HEADER = "Idempotency-Key"
SIGNATURE_HEADER = "X-Monitor-Signature"
NEVER = "0001-01-01T00:00:00Z"
"""Alertmanager's way to say that a firing alert has no end yet."""


def body(notification: GroupNotification, *, links: Links = Links()) -> bytes:
    """Return the body; the same notification gives the same bytes."""
    return json.dumps(
        payload(notification, links=links),
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode()


def payload(notification: GroupNotification, *, links: Links = Links()) -> dict[str, Any]:
    """Return the body as JSON values. Labels are the identity; what changes stands in the annotations."""
    alerts = [_alert(one, links) for one in notification.alerts]
    return {
        "version": "4",
        "groupKey": notification.group_key,
        "truncatedAlerts": notification.truncated,
        "status": str(notification.status),
        "receiver": notification.receiver,
        "groupLabels": dict(notification.group_labels),
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": links.external_url,
        "notification_reason": str(notification.reason),
        "alerts": alerts,
        # Beyond Alertmanager's fields: receivers that know us read the evidence as values, people the text.
        "notification": as_json(notification),
        "text": as_text(message_of(notification, links=links)),
    }


def headers(
    content: bytes, notification: GroupNotification, *, secret: bytes | None, now: datetime
) -> dict[str, str]:
    """Return the headers of a body: its id, and with a secret its signature at this time."""
    fields = {"Content-Type": "application/json", ID_HEADER: notification.id}
    if secret is None:
        return fields
    return fields | {SIGNATURE_HEADER: signature(content, secret=secret, timestamp=int(now.timestamp()))}


def signature(content: bytes, *, secret: bytes, timestamp: int) -> str:
    """Return `t=<seconds>,v1=<hex>`: HMAC-SHA256 of the time, a dot and the body."""
    digest = hmac.new(secret, str(timestamp).encode() + b"." + content, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def annotations(one: GroupAlert, links: Links) -> dict[str, str]:
    """Return what changes of an alert, as Alertmanager's annotations."""
    return {
        "summary": title(one.alert),
        "reason": one.alert.finding.reason,
        "runbook_url": links.runbook(runbook(one.alert)),
    }


def _alert(one: GroupAlert, links: Links) -> dict[str, Any]:
    alert = one.alert
    over = one.status is Status.RESOLVED and alert.resolved_at is not None
    return {
        "status": str(one.status),
        "labels": dict(one.labels),
        "annotations": annotations(one, links),
        "startsAt": stamp(alert.since),
        "endsAt": stamp(alert.resolved_at) if over and alert.resolved_at else NEVER,
        "generatorURL": links.external_url,
        "fingerprint": alert.fingerprint,
    }


def _common(each: Sequence[Mapping[str, str]]) -> dict[str, str]:
    if not each:
        return {}
    shared = set(each[0].items()).intersection(*(one.items() for one in each[1:]))
    return dict(sorted(shared))
