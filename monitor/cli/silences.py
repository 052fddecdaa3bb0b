"""`monitor silence add|list|expire`: who muted what, until when and why."""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table

from agents.services import wall_now
from monitor.alerting.alert import OPEN
from monitor.alerting.labels import routing_labels
from monitor.alerting.matchers import braced, matcher
from monitor.alerting.routes import duration
from monitor.alerting.silence import Silence, a_silence, expired
from monitor.cli.asking import JsonOption, NameOption, looking, minute, printed, show_table
from monitor.cli.context import EXIT_USAGE

app = typer.Typer(help="Mute notifications for a time; evaluation goes on.", no_args_is_help=True)
AuthorOption = Annotated[str, typer.Option("--by", "--author", help="Who answers for it.", envvar="USER")]


@app.command("add")
def add(  # noqa: PLR0917 - typer's options
    matchers: Annotated[list[str], typer.Argument(metavar="MATCHER...", help="Such as dimension=safety.")],
    reason: Annotated[str, typer.Option(help="Why; people will ask.")],
    author: AuthorOption,
    duration_text: Annotated[str, typer.Option("--for", help="How long: 30m, 2h, 1d.")] = "",
    until: Annotated[datetime | None, typer.Option(help="Or until when, UTC.")] = None,
    name: NameOption = None,
) -> None:
    """Mute what matches all of these; it says what that is now."""
    now = wall_now()
    try:
        silence = a_silence(
            tuple(map(matcher, matchers)),
            author=author,
            reason=reason,
            starts_at=now,
            ends_at=_end(now, duration_text, until),
        )
    except ValidationError as error:
        _refused("; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors()))
    except ValueError as error:
        _refused(str(error))
    with looking(name) as (_, policy, looks):
        looks.put_silence(silence)
        labels = [
            routing_labels(alert, policy.routing.labels) for alert in looks.alerts() if alert.state in OPEN
        ]
    muted = sum(silence.mutes(one, now) for one in labels)
    printed(
        f"{silence.id}: {braced(silence.matchers)} is muted until {minute(silence.ends_at)} UTC; "
        f"of {len(labels)} open alerts it mutes {muted}"
    )


@app.command("list")
def list_silences(
    every: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is muted."""
    now = wall_now()
    with looking(name) as (_, _, looks):
        chosen = [one for one in looks.silences() if every or one.ends_at > now]
    if as_json:
        printed(json.dumps([one.model_dump(mode="json") for one in chosen], indent=2))
        return
    table = Table(title=f"{len(chosen)} silences; times are UTC", title_justify="left")
    table.add_column("id", no_wrap=True)
    for column in ("mutes", "until", "author", "reason"):
        table.add_column(column, overflow="fold")
    for one in chosen:
        over = "" if one.ends_at > now else " (over)"
        row = (braced(one.matchers), minute(one.ends_at) + over, one.author, one.reason)
        table.add_row(one.id, *(text.replace("[", r"\[") for text in row))
    show_table(table, "Nothing is muted." if not every else "No silence is kept.")


@app.command("expire")
def expire(
    silence_id: Annotated[str, typer.Argument(metavar="ID", help="The silence's id, or how it begins.")],
    name: NameOption = None,
) -> None:
    """End a silence now; it stays in the list of those that are over."""
    now = wall_now()
    with looking(name) as (_, _, looks):
        found = [one for one in looks.silences() if one.id.startswith(silence_id)]
        if len(found) == 1:
            looks.put_silence(expired(found[0], now))
    if len(found) != 1:
        which = "no silence" if not found else f"{len(found)} silences"
        sys.stderr.write(
            f"monitor: {which} with an id that begins with {silence_id}; see `monitor silence list`\n"
        )
        raise SystemExit(1)
    printed(_ended(found[0], now))


def _end(now: datetime, text: str, until: datetime | None) -> datetime:
    if bool(text) == (until is not None):
        raise ValueError("a silence needs --for or --until, one of them")
    if until is not None:
        end = until if until.tzinfo else until.replace(tzinfo=UTC)
    else:
        length = duration(text)
        assert isinstance(length, timedelta)
        end = now + length
    if end <= now:
        raise ValueError("a silence must end in the future")
    return end


def _ended(silence: Silence, now: datetime) -> str:
    if silence.ends_at <= now:
        return f"{silence.id}: was over already, at {minute(silence.ends_at)} UTC"
    return f"{silence.id}: {braced(silence.matchers)} is told again from now on"


def _refused(sentence: str) -> None:
    sys.stderr.write(f"monitor: {sentence}\n")
    raise SystemExit(EXIT_USAGE)
