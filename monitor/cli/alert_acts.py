"""`monitor alerts ack|comment|except|resolve|precision|pages`: what people say of alerts, and what it comes to."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table

from agents.services import wall_now
from monitor.alerting.alert import Alert, Transition
from monitor.alerting.deciding import (
    Precision,
    Refused,
    acknowledged,
    commented,
    decided,
    excepted,
    exception_for,
    precision_of,
)
from monitor.alerting.decision import TEXT_MAX, Verdict
from monitor.alerting.render import title
from monitor.cli.alerts import the_one
from monitor.cli.asking import JsonOption, Looks, NameOption, latest, looking, minute, printed, show_table
from monitor.cli.context import EXIT_USAGE
from monitor.cli.pages import pages

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The alert's id, or how it begins.")]
ByOption = Annotated[str, typer.Option("--by", help="Who you are.", envvar="USER")]
NoteOption = Annotated[str, typer.Option("--note", help="What you found out.")]


def attach(app: typer.Typer) -> None:
    """Add the commands to `monitor alerts`."""
    app.command("ack")(acknowledge)
    app.command("comment")(comment)
    app.command("except")(except_until)
    app.command("resolve")(resolve)
    app.command("precision")(precision)
    app.command("pages")(pages)


def acknowledge(alert_id: IdArgument, by: ByOption, note: NoteOption = "", name: NameOption = None) -> None:
    """Say that you look after it; it is not repeated any more."""
    _act(alert_id, name, lambda alert: acknowledged(alert, by=by, at=wall_now(), text=_short(note)))


def comment(
    alert_id: IdArgument,
    text: Annotated[str, typer.Argument(help="What you found out.")],
    by: ByOption,
    name: NameOption = None,
) -> None:
    """Note what you found out; it stays with the alert."""
    _act(alert_id, name, lambda alert: commented(alert, by=by, at=wall_now(), text=_short(text)))


def except_until(
    alert_id: IdArgument,
    owner: Annotated[str, typer.Option(help="Who answers for it.")],
    reason: Annotated[str, typer.Option(help="Why it may fail, and what happens until then.")],
    until: Annotated[datetime, typer.Option(help="Until when it may fail, UTC.")],
    name: NameOption = None,
) -> None:
    """Let this gate fail until a day, with an owner; the gate itself stays as it is."""
    end = until if until.tzinfo else until.replace(tzinfo=UTC)

    def act(looks: Looks, found: Alert) -> Transition | Refused:
        exception = exception_for(found, owner=owner, reason=_short(reason), until=end)
        if isinstance(exception, Refused):
            return exception
        refused = excepted(found, exception, at=wall_now())
        if isinstance(refused, Refused):
            return refused
        # The exception first: a note of one that is not there would put people to sleep.
        looks.put_exception(exception)
        return looks.change(found.fingerprint, lambda alert: excepted(alert, exception, at=wall_now()))

    _acted(alert_id, name, act)


def resolve(
    alert_id: IdArgument,
    verdict: Annotated[Verdict, typer.Option("--as", help="What it turned out to be.")],
    by: ByOption,
    note: NoteOption = "",
    name: NameOption = None,
) -> None:
    """Close it with what it was. It comes back by itself if it goes on failing."""
    _act(alert_id, name, lambda alert: decided(alert, verdict, by=by, at=wall_now(), text=_short(note)))


def precision(
    days: Annotated[int, typer.Option(help="Over what fired in the last days.", min=1)] = 30,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how often our alerts were worth it, of those that somebody decided."""
    with looking(name) as (_, policy, looks):
        found = precision_of(looks.alerts(), since=latest(policy, looks) - timedelta(days=days))
    if as_json:
        printed(json.dumps([_values(one) for one in found], indent=2))
        return
    table = Table(title=f"What fired in the last {days} days", title_justify="left")
    for column in ("severity", "kind", "fired", "decided", *Verdict, "precision"):
        table.add_column(column, justify="left" if column in {"severity", "kind"} else "right")
    for one in found:
        share = "-" if one.precision is None else f"{one.precision:.0%}"
        counts = (str(one.verdicts.get(verdict, 0)) for verdict in Verdict)
        table.add_row(one.severity, one.kind, str(one.fired), str(one.decided), *counts, share)
    show_table(table, f"Nothing fired in the last {days} days.")


def _act(alert_id: str, name: str | None, act: Callable[[Alert], Transition | Refused]) -> None:
    _acted(alert_id, name, lambda looks, found: looks.change(found.fingerprint, act))


def _acted(alert_id: str, name: str | None, act: Callable[[Looks, Alert], Transition | Refused]) -> None:
    with looking(name) as (_, _, looks):
        found = the_one(looks.alerts(), alert_id)
        said = act(looks, found)
    if isinstance(said, Refused):
        sys.stderr.write(f"monitor: {found.fingerprint}: {said.reason}\n")
        raise SystemExit(1)
    printed(f"{found.fingerprint}: {said.reason} ({minute(said.at)} UTC); {title(found)}")


def _short(text: str) -> str:
    if len(text) <= TEXT_MAX:
        return text
    sys.stderr.write(f"monitor: a note has at most {TEXT_MAX} characters; this has {len(text)}\n")
    raise SystemExit(EXIT_USAGE)


def _values(one: Precision) -> dict[str, object]:
    return {
        "severity": one.severity,
        "kind": one.kind,
        "fired": one.fired,
        "decided": one.decided,
        "verdicts": {verdict: one.verdicts.get(verdict, 0) for verdict in Verdict},
        "precision": one.precision,
    }
