"""An alert in, text or JSON for people out: what changed, since when and how much, where, the worst cases."""

from datetime import datetime
from typing import Any

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.evidence import Change
from monitor.alerting.receiver import Notification
from monitor.detection.finding import Figure, FindingKind
from monitor.windows.bucket import OVERALL, readable
from monitor.windows.case import Case

_FIGURE = {"mean": "mean", "pass_at_4": "pass@4", "critical_rate": "critical rate"}


def runbook(alert: Alert) -> str:
    """Return the path of the runbook for this kind of alert."""
    return f"docs/runbooks/{alert.kind}.md"


def title(alert: Alert) -> str:
    """Return the alert in one line; it names no changing value, so that a resolve reads like its firing."""
    labels = alert.labels
    if alert.kind is FindingKind.JUDGE:
        return f"The judge {labels['judge']} (stage {labels['stage']}) is not well"
    where = f"{readable(labels['assistant'])} ({labels['environment']}{_variant(labels)})"
    if alert.kind is FindingKind.CRITICAL:
        return (
            f"Critical {labels['dimension']} failure of {where}, "
            f"intent {readable(labels['intent'])}, prompt {readable(labels['prompt_hash'])}"
        )
    segment = labels["segment"]
    part = "" if segment == OVERALL else f", {readable(segment)}"
    return f"{labels['dimension']} misses its gate for {where}{part}"


def as_text(notification: Notification) -> str:
    """Return a notification as plain lines, in the order in which a person asks."""
    alert = notification.alert
    lines = [f"[{notification.status.upper()}] [{alert.severity}] {title(alert)}", notification.reason]
    lines += ["", "What changed", *_what_changed(alert)]
    lines += ["", "Since when, how much", *_how_much(alert)]
    evidence = alert.evidence
    if evidence is not None and evidence.changes:
        lines += ["", "Where", *(f"  {_change(change)}" for change in evidence.changes)]
    if evidence is not None and evidence.judge_agreement:
        lines += ["", "How far to trust it", f"  the judge {evidence.judge_agreement}"]
    if evidence is not None and evidence.cases:
        lines += ["", "Worst cases", *(line for case in evidence.cases for line in _case(case))]
    lines += ["", f"Runbook: {runbook(alert)}", f"Id: {notification.id}"]
    return "\n".join(lines)


def as_json(notification: Notification) -> dict[str, Any]:
    """Return a notification as JSON values."""
    alert = notification.alert
    return {
        "id": notification.id,
        "status": notification.status,
        "severity": alert.severity,
        "title": title(alert),
        "reason": notification.reason,
        "at": _iso(notification.at),
        "labels": dict(sorted(alert.labels.items())),
        "since": _iso(alert.since),
        "resolved_at": _iso(alert.resolved_at) if alert.resolved_at else None,
        "cases_total": alert.total,
        "evidence": alert.evidence.model_dump(mode="json") if alert.evidence else None,
        "runbook": runbook(alert),
    }


def _variant(labels: dict[str, str]) -> str:
    return f", {readable(labels['variant'])}" if "variant" in labels else ""


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _what_changed(alert: Alert) -> list[str]:
    if alert.kind is FindingKind.JUDGE:
        return ["  look at `monitor judge-health`; figures of the assistant rest on this judge"]
    if alert.kind is FindingKind.CRITICAL:
        return [f"  prompt_hash={readable(alert.labels['prompt_hash'])} gave these answers"]
    new = alert.evidence.new_configurations if alert.evidence else ()
    if not new:
        return ["  nothing that the events tell: the same configurations served before"]
    return [f"  {readable(c.segment)} is new: {c.share:.0%} of the conversations, none before" for c in new]


def _how_much(alert: Alert) -> list[str]:
    end = (
        f", until {_iso(alert.resolved_at)}"
        if alert.state is AlertState.RESOLVED and alert.resolved_at
        else ""
    )
    lines = [f"  since {_iso(alert.since)}{end}"]
    if alert.kind is FindingKind.CRITICAL:
        return [*lines, f"  {alert.total} cases"]
    figures = alert.evidence.figures if alert.evidence else alert.finding.figures
    return [*lines, *(f"  {_figure(figure)}" for figure in figures if figure.limit is not None)]


def _figure(figure: Figure) -> str:
    value = "none" if figure.value is None else f"{figure.value:.3g}"
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f" (95 %: {figure.low:.3g} to {figure.high:.3g})"
    return f"{_FIGURE.get(figure.name, figure.name)} {value}{interval}, gate {figure.limit:.3g}, n={figure.n}"


def _change(change: Change) -> str:
    share = f"share {change.share:.0%}"
    if change.share_before is not None:
        share += f" (before {change.share_before:.0%})"
    figure = "" if change.figure is None else f", figure {change.figure:.3g}"
    if change.figure_before is not None:
        figure += f" (before {change.figure_before:.3g})"
    return f"{readable(change.segment)}: {share}{figure}, n={change.n}"


def _case(case: Case) -> list[str]:
    where = f"intent={case.intent} prompt={case.prompt_hash}"
    head = f"  {case.dimension} {case.score}  {case.conversation_id}  {where}"
    return [head, f"    {case.reason}", *(f'    "{quote}"' for quote in case.quotes)]
