"""An alert in, its name, its title and its runbook out: none of them changes while it lives."""

import re

from monitor.alerting.alert import Alert
from monitor.detection.finding import FindingKind
from monitor.windows.bucket import OVERALL, readable

# Control characters would steer a terminal, and direction marks would make a text read as another one.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")

_SAID = {
    FindingKind.GATE: "{} misses its gate",
    FindingKind.SLO: "{} burns its budget of failures",
    FindingKind.REGRESSION: "{} fell below its baseline",
    FindingKind.SIGNAL: "{} became more frequent than in their baseline",
    FindingKind.CRITICAL_RATE: "{} failures rose above their baseline",
}


def plain(text: str) -> str:
    """Return a text as one line that steers no terminal and says what it seems to say."""
    return _UNPRINTABLE.sub(" ", text)


def runbook(alert: Alert) -> str:
    """Return the path of the runbook for this kind of alert."""
    return f"docs/runbooks/{alert.kind}.md"


def title(alert: Alert) -> str:
    """Return the alert in one line; it names no changing value, so that a resolve reads like its firing."""
    labels = alert.labels
    if alert.kind is FindingKind.JUDGE:
        return f"The judge {labels['judge']} (stage {labels['stage']}) is not well"
    if alert.kind is FindingKind.DELIVERY:
        return f"The receiver {labels['receiver']} takes no notifications"
    if alert.kind is FindingKind.WATCHDOG:
        return "Watchdog: the monitor is alive as long as this comes"
    where = f"{readable(labels['assistant'])} ({labels['environment']}{_variant(labels)})"
    if alert.kind is FindingKind.CRITICAL:
        return (
            f"Critical {labels['dimension']} failure of {where}, "
            f"intent {readable(labels['intent'])}, prompt {readable(labels['prompt_hash'])}"
        )
    segment = labels["segment"]
    part = "" if segment == OVERALL else f", {readable(segment)}"
    return f"{_SAID[alert.kind].format(labels['dimension'])} for {where}{part}"


def _variant(labels: dict[str, str]) -> str:
    return f", {readable(labels['variant'])}" if "variant" in labels else ""
