"""An alert in, the labels that routes, silences and inhibition see out."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.group import Routed
from monitor.alerting.matchers import SomeMatchers, all_match
from monitor.alerting.notification import Status
from monitor.detection.finding import FindingKind
from monitor.windows.bucket import OVERALL

ALERTNAMES: Mapping[str, str] = {
    "gate": "ConversationQualityGate",
    "critical": "ConversationCriticalFailure",
    "slo": "ConversationQualityBudget",
    "regression": "ConversationQualityRegression",
    "signal": "ConversationSignalRate",
    "critical_rate": "ConversationCriticalRate",
    "delivery": "ConversationMonitorDelivery",
    "watchdog": "ConversationMonitorWatchdog",
}


FAILURES = "failures"
"""The one label that changes while an alert fires, for inhibition alone."""


class LabelRule(BaseModel):
    """Labels that the configuration adds, such as the team that owns an assistant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    matchers: SomeMatchers
    set: Annotated[dict[str, str], Field(min_length=1)]


def alertname(kind: FindingKind) -> str:
    """Return the name under which a kind of alert is known elsewhere."""
    return ALERTNAMES.get(kind, "Conversation" + "".join(part.capitalize() for part in kind.split("_")))


def routing_labels(alert: Alert, added: Sequence[LabelRule] = ()) -> dict[str, str]:
    """Return an alert's identity with its kind and severity; a segment `intent=returns` is a label intent too.

    `failures` (spread, concentrated) says of a judge that fails now whether that mutes what it says of quality.
    """
    labels = dict(alert.labels)
    key, is_pair, value = labels.get("segment", OVERALL).partition("=")
    if is_pair:
        labels.setdefault(key, value)
    labels |= {
        "alertname": alertname(alert.kind),
        "finding": str(alert.kind),
        "severity": str(alert.severity),
    }
    if alert.finding.failures is not None:
        labels[FAILURES] = str(alert.finding.failures)
    for rule in added:
        if all_match(rule.matchers, labels):
            labels |= rule.set
    return labels


def routed(alert: Alert, added: Sequence[LabelRule] = ()) -> Routed:
    """Return an alert as routes see it; only one that fires is firing."""
    fires = alert.state is AlertState.FIRING
    return Routed(
        alert=alert,
        status=Status.FIRING if fires else Status.RESOLVED,
        labels=routing_labels(alert, added),
        # Cases are added to a critical alert while it fires, and its policy says when people hear of them.
        news=str(alert.notified_total) if alert.kind is FindingKind.CRITICAL else "",
    )
