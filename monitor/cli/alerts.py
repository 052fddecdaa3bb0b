"""`monitor alerts list|show`: what fires, what fired, and the whole of one. What people say: alert_acts.py."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from agents.services import wall_now
from monitor.alerting.alert import OPEN, Alert
from monitor.alerting.muting import muted
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_json as notification_json
from monitor.alerting.render import as_text, title
from monitor.cli.asking import JsonOption, NameOption, looking, minute, printed, show_table

app = typer.Typer(help="What fires, and what fired.", no_args_is_help=True)


@app.command("list")
def list_alerts(
    recent: Annotated[int, typer.Option(help="Resolved ones to list, the newest.", min=0)] = 20,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the open alerts, the gravest first, and those that ended last."""
    with looking(name) as (_, policy, looks):
        alerts = looks.alerts()
        quiet = muted(alerts, policy.routing, looks.silences(), now=wall_now())
    chosen = ordered(alerts, recent)
    if as_json:
        listed = [values_of(alert) | {"muted_by": quiet.get(alert.fingerprint)} for alert in chosen]
        printed(json.dumps(listed, indent=2))
        return
    opened = sum(alert.state in OPEN for alert in chosen)
    table = Table(title=f"{opened} open alerts; times are UTC", title_justify="left")
    table.add_column("id", no_wrap=True)
    for column in ("state", "severity", "what", "since", "over", "by people"):
        table.add_column(column, overflow="fold")
    for one in chosen:
        times = (minute(one.since), minute(one.resolved_at))
        row = (one.state, one.severity, title(one).replace("[", r"\["), *times, by_people(one))
        table.add_row(one.fingerprint, *row)
    show_table(table, "No alert is open, and none has ended of late.")
    for why in dict.fromkeys(quiet.values()):
        ids = [fingerprint for fingerprint, own in quiet.items() if own == why]
        printed(f"Muted, their receivers are not told: {', '.join(ids)}. By {why}")


@app.command()
def show(
    fingerprint: Annotated[str, typer.Argument(metavar="ID", help="The alert's id, or how it begins.")],
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one alert: what changed, since when and how much, where, the worst cases."""
    with looking(name) as (_, policy, looks):
        alerts = looks.alerts()
        quiet = muted(alerts, policy.routing, looks.silences(), now=wall_now())
    found = the_one(alerts, fingerprint)
    told = notification_of(found)
    if as_json:
        notes = {"notes": [note.model_dump(mode="json") for note in found.notes]}
        decisions = {"decisions": [one.model_dump(mode="json") for one in found.decisions]}
        muting = {"muted_by": quiet.get(found.fingerprint)}
        printed(json.dumps(notification_json(told) | notes | decisions | muting, indent=2))
        return
    printed(as_text(told, links=policy.routing.links))
    if found.fingerprint in quiet:
        printed(f"Muted, its receivers are not told: {quiet[found.fingerprint]}")
    if found.notes:
        printed("")
        printed("What people did")
    for note in found.notes:
        printed(f"  {minute(note.at)} UTC  {note.by} {note.act}" + (f": {note.text}" if note.text else ""))


def the_one(alerts: Sequence[Alert], beginning: str) -> Alert:
    """Return the alert whose id begins so; leave the command with a sentence if it is none or several."""
    found = [alert for alert in alerts if alert.fingerprint.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    which = "no alert" if not found else f"{len(found)} alerts"
    sys.stderr.write(f"monitor: {which} with an id that begins with {beginning}; see `monitor alerts list`\n")
    raise SystemExit(1)


def ordered(alerts: Sequence[Alert], recent: int) -> list[Alert]:
    """Return the open alerts, the gravest first, then the newest of those that fired and are over."""
    newest = sorted(alerts, key=lambda alert: alert.resolved_at or alert.since, reverse=True)
    resolved = [alert for alert in newest if alert.state not in OPEN and alert.firings]
    opened = [alert for alert in newest if alert.state in OPEN]
    return sorted(opened, key=lambda alert: -alert.severity.weight) + resolved[:recent]


def by_people(alert: Alert) -> str:
    """Return what people made of its last firing."""
    last = alert.decisions[-1] if alert.decisions else None
    if last is not None and last.fired_at == alert.fired_at:
        return f"{last.verdict}, {last.by}"
    return f"acknowledged, {alert.acknowledged_by}" if alert.acknowledged_by else ""


def notification_of(alert: Alert) -> Notification:
    """Return an alert as people would be told of it now."""
    return Notification(
        id=f"{alert.fingerprint}-{alert.version}",
        alert=alert,
        reason=alert.finding.reason,
        at=alert.resolved_at or alert.failed_at,
    )


def values_of(alert: Alert) -> dict[str, Any]:
    """Return an alert in a line, as JSON values."""
    return {
        "id": alert.fingerprint,
        "state": alert.state,
        "severity": alert.severity,
        "kind": alert.kind,
        "title": title(alert),
        "labels": alert.labels,
        "since": alert.since.isoformat(),
        "fired_at": alert.fired_at.isoformat() if alert.fired_at else None,
        "resolved_at": alert.resolved_at.isoformat() if alert.resolved_at else None,
        "cases_total": alert.total,
        "acknowledged_by": alert.acknowledged_by,
        "decision": alert.decisions[-1].verdict if alert.decisions else None,
    }
