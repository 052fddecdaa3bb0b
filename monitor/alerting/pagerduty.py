"""A notification in, the body of PagerDuty's Events API v2 out, within its limits whatever the texts hold."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from monitor.alerting.links import Links
from monitor.alerting.message import message_of, stamp
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.render_json import as_json
from monitor.alerting.render_text import as_text
from monitor.detection.finding import Severity

SUMMARY_MAX = 1024
DEDUP_KEY_MAX = 255
BODY_MAX = 500_000
"""PagerDuty refuses more than 512 KB; what is too much loses its evidence, never its summary."""
TEXT_MAX = 20_000
CLIENT = "conversation-monitor"


def body(
    notification: GroupNotification,
    *,
    routing_key: str,
    severities: Mapping[Severity, str],
    links: Links = Links(),
) -> bytes:
    """Return the body; the same notification gives the same bytes."""
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if notification.status is Status.RESOLVED else "trigger",
        "dedup_key": dedup_key(notification.group_id),
    }
    if notification.status is Status.RESOLVED:
        # PagerDuty reads nothing more of a resolve.
        return _json(event)
    message = message_of(notification, links=links)
    labels = notification.group_labels
    event |= {
        "client": CLIENT,
        "payload": {
            "summary": _cut(message.title, SUMMARY_MAX),
            "source": labels.get("assistant", CLIENT),
            "severity": severities[message.severity],
            "timestamp": stamp(
                min((one.alert.since for one in notification.alerts), default=notification.at)
            ),
            "component": labels.get("assistant", ""),
            "group": labels.get("environment", ""),
            "class": message.alerts[0].alertname if message.alerts else "",
            "custom_details": {
                "text": _cut(as_text(message), TEXT_MAX),
                "notification": as_json(notification),
            },
        },
    }
    if links.external_url.startswith(("http://", "https://")):
        event |= {"client_url": links.external_url}
        runbooks = dict.fromkeys(alert.runbook for alert in message.alerts)
        event["links"] = [{"href": address, "text": "Runbook"} for address in runbooks]
    return _fitting(event)


def dedup_key(group_id: str) -> str:
    """Return the key by which PagerDuty knows the incident: the group's id, or its hash if that is too long."""
    if len(group_id) <= DEDUP_KEY_MAX:
        return group_id
    return hashlib.blake2b(group_id.encode(), digest_size=32).hexdigest()


def _fitting(event: dict[str, Any]) -> bytes:
    content = _json(event)
    details = event["payload"]["custom_details"]
    if len(content) > BODY_MAX:
        for alert in details["notification"]["alerts"]:
            alert["evidence"] = None
        content = _json(event)
    if len(content) > BODY_MAX:
        del details["notification"]
        content = _json(event)
    return content


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
