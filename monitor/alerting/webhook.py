"""A notification in, Alertmanager's webhook body (version 4) and its signature out."""

import hashlib
import hmac
import json
from datetime import datetime
from typing import Any

from monitor.alerting.notification import Status
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_json, as_text, runbook, title

ALERTNAME = {"gate": "ConversationQualityGate", "critical": "ConversationCriticalFailure"}
ID_HEADER = "Idempotency-Key"
SIGNATURE_HEADER = "X-Monitor-Signature"
_NEVER = "0001-01-01T00:00:00Z"
"""Alertmanager's way to say that a firing alert has no end yet."""


def body(notification: Notification, *, receiver: str, external_url: str = "") -> bytes:
    """Return the body; the same notification gives the same bytes."""
    return json.dumps(
        payload(notification, receiver=receiver, external_url=external_url),
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    ).encode()


def payload(notification: Notification, *, receiver: str, external_url: str = "") -> dict[str, Any]:
    """Return the body as JSON values. Labels are the identity; what changes stands in the annotations."""
    alert = notification.alert
    labels = {"alertname": ALERTNAME[alert.kind], **alert.labels, "severity": str(alert.severity)}
    resolved = alert.resolved_at if notification.status is Status.RESOLVED else None
    annotations = {
        "summary": title(alert),
        "description": as_text(notification),
        "reason": notification.reason,
        "runbook_url": _joined(external_url, runbook(alert)),
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{labels["alertname"]}", fingerprint="{alert.fingerprint}"}}',
        "truncatedAlerts": 0,
        "status": notification.status,
        "receiver": receiver,
        "groupLabels": {"alertname": labels["alertname"]},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": external_url,
        "alerts": [
            {
                "status": notification.status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": _rfc3339(alert.since),
                "endsAt": _rfc3339(resolved) if resolved else _NEVER,
                "generatorURL": external_url,
                "fingerprint": alert.fingerprint,
            }
        ],
        # Beyond Alertmanager's fields: receivers that know us read the evidence as values.
        "notification": as_json(notification),
    }


def headers(
    content: bytes, notification: Notification, *, secret: bytes | None, now: datetime
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


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _joined(base: str, path: str) -> str:
    return f"{base.rstrip('/')}/{path}" if base else path
