"""`monitor alerts list|show`: what fires, what fired, and the whole of one."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from monitor.alerting.alert import OPEN, Alert
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_json as notification_json
from monitor.alerting.render import as_text, title
from monitor.cli.asking import JsonOption, NameOption, looking, minute, printed, screen

app = typer.Typer(help="What fires, and what fired.", no_args_is_help=True)


@app.command("list")
def list_alerts(
    recent: Annotated[int, typer.Option(help="Resolved ones to list, the newest.", min=0)] = 20,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the open alerts and those that ended last."""
    with looking(name) as (_, _, looks):
        chosen = ordered(looks.alerts(), recent)
    if as_json:
        printed(json.dumps([values_of(alert) for alert in chosen], indent=2))
        return
    opened = sum(alert.state in OPEN for alert in chosen)
    table = Table(title=f"{opened} open alerts; times are UTC", title_justify="left")
    table.add_column("id", no_wrap=True)
    for column in ("state", "severity", "what", "since", "fired", "resolved"):
        table.add_column(column, overflow="fold")
    for one in chosen:
        times = (minute(one.since), minute(one.fired_at), minute(one.resolved_at))
        table.add_row(one.fingerprint, one.state, one.severity, title(one).replace("[", r"\["), *times)
    screen().print(table)


@app.command()
def show(
    fingerprint: Annotated[str, typer.Argument(metavar="ID", help="The alert's id, or how it begins.")],
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one alert: what changed, since when and how much, where, the worst cases."""
    with looking(name) as (_, _, looks):
        found = [alert for alert in looks.alerts() if alert.fingerprint.startswith(fingerprint)]
    if len(found) != 1:
        which = "no alert" if not found else f"{len(found)} alerts"
        sys.stderr.write(
            f"monitor: {which} with an id that begins with {fingerprint}; see `monitor alerts list`\n"
        )
        raise SystemExit(1)
    told = notification_of(found[0])
    printed(json.dumps(notification_json(told), indent=2) if as_json else as_text(told))


def ordered(alerts: Sequence[Alert], recent: int) -> list[Alert]:
    """Return the open alerts, newest first, then the newest of the resolved ones."""
    newest = sorted(alerts, key=lambda alert: alert.resolved_at or alert.since, reverse=True)
    resolved = [alert for alert in newest if alert.state not in OPEN]
    return [alert for alert in newest if alert.state in OPEN] + resolved[:recent]


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
    }
