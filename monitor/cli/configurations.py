"""`monitor configurations add|list|remove`: what was evaluated offline, what serves, and what serves unevaluated."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError
from rich.table import Table

from agents.services import wall_now
from monitor.alerting.changes import Aspect, combined
from monitor.cli.asking import (
    JsonOption,
    Looks,
    NameOption,
    latest,
    looking,
    minute,
    printed,
    screen,
    show_table,
)
from monitor.cli.context import refused
from monitor.detection.registry import (
    NOTHING,
    VARIOUS,
    ConfigurationPolicy,
    Registered,
    Served,
    Tally,
    is_registered,
)
from monitor.intake.event import Environment, Moment, Value
from monitor.windows.policy import ConfigurationKey

ENTRIES_MAX = 5000
"""Configurations that a registry holds; it bounds what each evaluation reads."""
UNKNOWN = "unknown"
"""How an entry says that producers send no such value."""

app = typer.Typer(help="The configurations that were evaluated offline.", no_args_is_help=True)


class Line(Value):
    """One configuration: what the registry says of it, and what serves."""

    id: str | None
    assistant: str
    environment: Environment | None
    """Where it serves; None where it does not."""
    values: dict[str, str]
    by: str | None = None
    at: Moment | None = None
    evaluation: str = ""
    conversations: int = 0
    share: float = 0.0
    """Of the traffic of its assistant and environment."""
    first_seen: Moment | None = None


@app.command("add")
def add(  # noqa: PLR0917 - typer's options
    pairs: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Such as prompt_hash=b70e44d1.")
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who evaluated it.", envvar="USER")] = "",
    evaluation: Annotated[str, typer.Option(help="Link to the evaluation, or its id.")] = "",
    assistant: Annotated[str, typer.Option(help="Whose configuration it is.")] = "default",
    file: Annotated[
        Path | None,
        typer.Option(help="JSON lines with these keys, and assistant, by, evaluation, at; - reads input."),
    ] = None,
    name: NameOption = None,
) -> None:
    """Register configurations that were evaluated; all of them or none. The same one again replaces its entry."""
    if bool(pairs) == (file is not None):
        refused("give KEY=VALUE pairs or --file, one of them")
    given = {"assistant": assistant, "by": by, "evaluation": evaluation, "at": wall_now()}
    with looking(name) as (_, policy, looks):
        keys = policy.gates.configurations.combination
        if file is None:
            entries = [_entry(given | _pairs(pairs or []), keys, "")]
        else:
            entries = [_entry(given | one, keys, where) for where, one in _lines(file)]
        known = {one.id for one in looks.registered()}
        if len(known | {one.id for one in entries}) > ENTRIES_MAX:
            refused(f"the registry would hold more than {ENTRIES_MAX}; take out what no longer serves")
        looks.register(entries)
    for one in entries:
        said = "replaced" if one.id in known else "added"
        printed(f"{one.id}: {said}, {one.assistant}: {_words(one.values)}")


@app.command("list")
def list_configurations(
    hours: Annotated[int, typer.Option(help="How far back to look for what serves.", min=1, max=216)] = 24,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what was evaluated and what serves; what serves and is not registered comes first."""
    with looking(name) as (_, policy, looks):
        found = lines_of(looks, policy.gates.configurations, latest(policy, looks), hours)
    if as_json:
        printed(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
        return
    nothing = (
        f"No configuration is registered, and none has served in the last {hours} h. "
        "The check begins with the first `monitor configurations add`."
    )
    show_table(_table(found, hours), nothing)
    console = screen()
    watched = {one.assistant for one in found if one.id}
    for assistant in sorted({one.assistant for one in found} - watched):
        told = f"{assistant}: no configuration is registered, so none of its answers raises an alert"
        console.print(told, soft_wrap=True, markup=False)


@app.command("remove")
def remove(
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="The entry's id, as `list` shows it.")],
    name: NameOption = None,
) -> None:
    """Take a configuration out; an assistant without any is not looked at any more."""
    with looking(name) as (_, _, looks):
        done = looks.unregister(entry_id)
    if not done:
        sys.stderr.write(f"monitor: no configuration {entry_id}; see `monitor configurations list`\n")
        raise SystemExit(1)
    printed(f"{entry_id}: removed")


def lines_of(looks: Looks, policy: ConfigurationPolicy, end: datetime, hours: int) -> list[Line]:
    """Return what serves, the unregistered and the most frequent first, then what is registered and does not serve."""
    registered = looks.registered()
    # By the policy's keys alone: the model that answered tells two of them apart only if the policy says so.
    tallies: dict[Served, Tally] = {}
    totals: dict[tuple[str, Environment], float] = {}
    for one, tally in looks.served(end, hours).items():
        kept = tuple((key, value) for key, value in one.values if key in policy.combination)
        served = one._replace(values=kept)
        tallies[served] = tallies.get(served, NOTHING).plus(tally)
        whose = (one.assistant, one.environment)
        totals[whose] = totals.get(whose, 0.0) + tally.weight
    firsts = {
        (*whose, sighting.value): sighting.first_at
        for whose in totals
        for sighting in looks.sightings(*whose)
        if sighting.aspect is Aspect.CONFIGURATION
    }
    found = []
    serving: set[str] = set()
    for served, tally in tallies.items():
        values = dict(served.values)
        entry = next(
            (
                one
                for one in registered
                if one.assistant == served.assistant and is_registered(values, [one], policy)
            ),
            None,
        )
        serving |= {entry.id} if entry else set()
        whose = (served.assistant, served.environment)
        found.append(
            Line(
                **_of_entry(entry),
                assistant=served.assistant,
                environment=served.environment,
                values=values,
                conversations=tally.n,
                share=tally.weight / totals[whose],
                first_seen=None
                if served.values == VARIOUS
                else firsts.get((*whose, combined(values, policy.combination))),
            )
        )
    found.sort(key=lambda one: (one.id is not None, one.assistant, -one.share))
    idle = [one for one in registered if one.id not in serving]
    return found + [
        Line(**_of_entry(one), assistant=one.assistant, environment=None, values=dict(one.values))
        for one in idle
    ]


def _of_entry(entry: Registered | None) -> dict[str, Any]:
    if entry is None:
        return {"id": None}
    return {"id": entry.id, "by": entry.by, "at": entry.at, "evaluation": entry.evaluation}


def _table(found: Sequence[Line], hours: int) -> Table:
    unknown = sum(one.id is None for one in found)
    table = Table(
        title=f"{len(found)} configurations, {unknown} of them not evaluated; served in the last {hours} h, UTC",
        title_justify="left",
    )
    table.add_column("id", no_wrap=True)
    for column in (
        "assistant",
        "configuration",
        "share",
        "judged",
        "first seen",
        "evaluated by",
        "evaluation",
    ):
        table.add_column(column, overflow="fold")
    for one in found:
        whose = one.assistant if one.environment is None else f"{one.assistant} ({one.environment})"
        row = (
            one.id or "NOT EVALUATED",
            whose,
            _words(one.values).replace(" ", "\n") or "various, too many to tell apart",
            f"{one.share:.1%}" if one.environment else "-",
            str(one.conversations),
            minute(one.first_seen),
            f"{one.by}, {minute(one.at)}" if one.by else "-",
            one.evaluation or "-",
        )
        table.add_row(*(text.replace("[", r"\[") for text in row))
    return table


def _words(values: dict[Any, str]) -> str:
    return " ".join(f"{key}={value or UNKNOWN}" for key, value in values.items())


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or key not in get_args(ConfigurationKey):
            refused(f"{text}: write KEY=VALUE with one of {', '.join(get_args(ConfigurationKey))}")
        found[key] = value
    return found


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refused(f"{file}: cannot be read: {error}")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}: "
        try:
            one = json.loads(line)
        except ValueError as error:
            refused(f"{where}not JSON: {error}")
        if not isinstance(one, dict):
            refused(f"{where}must be an object of keys and values")
        allowed = {*get_args(ConfigurationKey), "assistant", "by", "evaluation", "at"}
        if odd := sorted(set(one) - allowed):
            refused(f"{where}no such key: {', '.join(odd)}; there are {', '.join(sorted(allowed))}")
        yield where, one


def _entry(fields: dict[str, Any], keys: Sequence[ConfigurationKey], where: str) -> Registered:
    values = {key: fields[key] for key in get_args(ConfigurationKey) if key in fields}
    if missing := [key for key in keys if key not in values]:
        refused(
            f"{where}{', '.join(missing)} missing; gates.yaml's configurations.combination asks for it "
            f"(`{missing[0]}={UNKNOWN}` where producers send none)"
        )
    # What producers do not send is empty in what they send.
    values = {key: "" if value == UNKNOWN else value for key, value in values.items()}
    try:
        return Registered(
            values=values, **{key: fields[key] for key in ("assistant", "by", "at", "evaluation")}
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        cure = "; say who evaluated it: --by NAME" if key == "by" else ""
        refused(f"{where}{key}: {first['msg']}{cure}")
