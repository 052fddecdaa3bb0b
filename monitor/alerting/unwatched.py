"""An open alert in, why nobody reads its series any more out: no data ends no alert, and then nothing ever would."""

from datetime import datetime

from monitor.alerting.alert import Alert, Transition
from monitor.alerting.life import ended
from monitor.detection.baseline import Baseline
from monitor.detection.gates import GatePolicy
from monitor.detection.policy import DetectionPolicy
from monitor.detection.slo import SloPolicy
from monitor.detection.sustained import over_finding
from monitor.windows.bucket import CRITICAL, OVERALL


def gate_unwatched(alert: Alert, policy: GatePolicy, *, now: datetime) -> Transition | None:
    """Return the end of a gate's alert whose gate, or whose kind of segment, was taken out of gates.yaml."""
    dimension, key = _series(alert)
    if dimension not in policy.gates and not (dimension == CRITICAL and policy.critical_rate):
        return _end(alert, f"there is no gate on {dimension} any more", now)
    if key is not None and key not in policy.segments:
        return _end(alert, f"gates look at no segment {key} any more", now)
    return None


def budget_unwatched(alert: Alert, policy: SloPolicy, *, now: datetime) -> Transition | None:
    """Return the end of a budget's alert whose objective, or whose burn, was taken out of gates.yaml."""
    dimension, burn = alert.labels["dimension"], alert.labels["burn"]
    if dimension not in policy.objectives:
        return _end(alert, f"there is no objective on {dimension} any more", now)
    if burn not in {one.name for one in policy.burns}:
        return _end(alert, f"there is no burn of {burn} any more", now)
    return None


def change_unwatched(
    alert: Alert, baseline: Baseline, policy: DetectionPolicy, *, now: datetime
) -> Transition | None:
    """Return the end of a sustained change's alert that neither the baseline nor the configuration knows."""
    dimension, key = _series(alert)
    if dimension not in baseline.dimensions and dimension not in baseline.shares:
        return _end(alert, f"the baseline {baseline.label} has no {dimension}", now)
    if key is not None and key not in policy.segments:
        return _end(alert, f"detection.segments has no {key} any more", now)
    return None


def _series(alert: Alert) -> tuple[str, str | None]:
    """Return the dimension, and the key of the segment; None for all traffic."""
    segment = alert.labels["segment"]
    return alert.labels["dimension"], None if segment == OVERALL else segment.partition("=")[0]


def _end(alert: Alert, why: str, now: datetime) -> Transition | None:
    if now < alert.failed_at:
        return None
    reason = f"{why}, so it is watched no more"
    return ended(alert, over_finding(alert.finding, reason=reason), now, reason)
