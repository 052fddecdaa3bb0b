"""An alert in, its name, its title and its runbook out: none of them changes while it lives."""

import re
from typing import get_args

from monitor.alerting.alert import Alert
from monitor.detection.configurations import Check
from monitor.detection.finding import FindingKind
from monitor.detection.judge_drift import CHECK
from monitor.windows.bucket import CRITICAL, OVERALL, readable
from monitor.windows.policy import ConfigurationKey

# Control characters would steer a terminal, and direction marks would make a text read as another one.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def plain(text: str) -> str:
    """Return a text as one line that steers no terminal and says what it seems to say."""
    return _UNPRINTABLE.sub(" ", text)


def runbook(alert: Alert) -> str:
    """Return the path of the runbook for this kind of alert."""
    drifts = alert.kind is FindingKind.JUDGE and alert.labels.get("check") == CHECK
    return f"docs/runbooks/{alert.kind}{'_drift' if drifts else ''}.md"


def title(alert: Alert) -> str:
    """Return the alert in one line; it names no changing value, so that a resolve reads like its firing."""
    labels = alert.labels
    if alert.kind is FindingKind.JUDGE:
        said = "has drifted" if labels.get("check") == CHECK else "is not well"
        return f"The judge {labels['judge']} (stage {labels['stage']}) {said}"
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
    if alert.kind is FindingKind.CONFIGURATION:
        return f"{where} {_served(labels)}"
    segment = labels["segment"]
    part = "" if segment == OVERALL else f", {readable(segment)}"
    if alert.kind is FindingKind.SLO:
        said = f"{labels['dimension']} burns its budget of failures for"
    elif labels["dimension"] == CRITICAL:
        said = "Too many critical failures of"
    else:
        said = f"{labels['dimension']} misses its gate for"
    return f"{said} {where}{part}"


def _served(labels: dict[str, str]) -> str:
    if labels["check"] == Check.OTHER_MODEL:
        asked, answered = readable(labels["model_asked"]), readable(labels["model_answered"])
        return f"asks for the model {asked}, and {answered} answers"
    named = ", ".join(f"{key}={readable(labels[key])}" for key in get_args(ConfigurationKey) if key in labels)
    return (
        f"answers with a configuration that was never evaluated: {named}"
        if named
        else "answers with many configurations that were never evaluated, each seldom"
    )


def _variant(labels: dict[str, str]) -> str:
    return f", {readable(labels['variant'])}" if "variant" in labels else ""
