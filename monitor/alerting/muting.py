"""Alerts, routing and silences in, why each muted one is not told out: nothing is hidden from whoever looks."""

from collections.abc import Sequence
from datetime import datetime

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.inhibition import Inhibition
from monitor.alerting.labels import routing_labels
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.silence import Silence


def muted(
    alerts: Sequence[Alert], policy: RoutingPolicy, silences: Sequence[Silence], *, now: datetime
) -> dict[str, str]:
    """Return, by fingerprint, what holds back an alert that fires: a silence, or a rule while another fires."""
    labels = {
        alert.fingerprint: routing_labels(alert, policy.labels)
        for alert in alerts
        if alert.state is AlertState.FIRING
    }
    inhibition = Inhibition(policy.inhibit_rules, list(labels.values()))
    found: dict[str, str] = {}
    for fingerprint, own in labels.items():
        silence = next((one for one in silences if one.mutes(own, now)), None)
        rule = inhibition.muted_by(own)
        if silence is not None:
            found[fingerprint] = f"silence {silence.id}: {silence.reason} ({silence.author})"
        elif rule is not None:
            found[fingerprint] = f"inhibition: {rule}"
    return found
