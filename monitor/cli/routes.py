"""`monitor routes test key=value ...`: who is told of an alert with these labels, and why."""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import typer

from agents.services import wall_now
from monitor.alerting.grouping import is_off_hours
from monitor.alerting.matchers import all_match
from monitor.alerting.routes import Node, explained, in_words, matching
from monitor.alerting.routing import NOBODY, RoutingPolicy
from monitor.cli.asking import JsonOption, printed
from monitor.cli.context import EXIT_USAGE, load, sentences

app = typer.Typer(help="Who is told of what.", no_args_is_help=True)


@app.command("show")
def show() -> None:
    """Print the tree of routes with everything inherited."""
    with sentences():
        _, policy = load()
    for node in policy.routing.tree.walk():
        printed(f"{'  ' * node.key.count('/{')}{_described(node)}")


@app.command("test")
def say_who_is_told(
    labels: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="Such as severity=page team=shop.")
    ],
    at: Annotated[datetime | None, typer.Option(help="At this time, UTC, for routes with hours.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say which receivers an alert with these labels reaches, in which group, and why."""
    given = dict(_pair(text) for text in labels)
    with sentences():
        _, policy = load()
    now = wall_now() if at is None else at.replace(tzinfo=wall_now().tzinfo)
    routing = policy.routing
    for added in routing.labels:
        if all_match(added.matchers, given):
            given |= added.set
    nodes = matching(routing.tree, given)
    if as_json:
        printed(json.dumps([_values(routing, node, given, now) for node in nodes], indent=2))
        return
    for line in explained(routing.tree, given):
        printed(line)
    printed("")
    for node in nodes:
        for line in _said(routing, node, given, now):
            printed(line)
    for rule in routing.inhibit_rules:
        if all_match(rule.target_matchers, given):
            printed(f"Muted while another alert fires: {rule}")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        sys.stderr.write(f"monitor: {text} is no label; write key=value, such as severity=page\n")
        raise SystemExit(EXIT_USAGE)
    return key, value


def _values(routing: RoutingPolicy, node: Node, labels: dict[str, str], now: datetime) -> dict[str, Any]:
    group = node.group_labels(labels)
    return {
        "receiver": node.receiver,
        "route": node.place,
        "group_labels": group,
        "group_key": node.group_key(group),
        "group_wait": in_words(node.group_wait),
        "group_interval": in_words(node.group_interval),
        "repeat_interval": in_words(node.repeat_interval),
        "quiet_now": is_off_hours(routing.rules, node, now),
    }


def _said(routing: RoutingPolicy, node: Node, labels: dict[str, str], now: datetime) -> Iterator[str]:
    if node.receiver == NOBODY:
        yield f"Told to nobody, by {node.place}; `monitor alerts list` shows it"
        return
    group = (
        ", ".join(f"{key}={value}" for key, value in node.group_labels(labels).items()) or "one group for all"
    )
    yield f"Told to {node.receiver}, by {node.place}; group: {group}; {_times(node)}"
    if is_off_hours(routing.rules, node, now):
        yield f"  not at {now:%Y-%m-%d %H:%M %Z}: {_hours(node)}"
    elif node.mute_times or node.active_times:
        yield f"  also at {now:%Y-%m-%d %H:%M %Z}: {_hours(node)}"


def _described(node: Node) -> str:
    conditions = ", ".join(map(str, node.matchers)) or "everything"
    by = ", ".join(node.group_by) or "nothing"
    onward = "; goes on to the next route" if node.continues else ""
    hours = f"; {_hours(node)}" if node.mute_times or node.active_times else ""
    return f"{conditions} -> {node.receiver}; grouped by {by}; {_times(node)}{hours}{onward}"


def _times(node: Node) -> str:
    first, then, again = map(in_words, (node.group_wait, node.group_interval, node.repeat_interval))
    return f"first after {first}, changes every {then}, again after {again}"


def _hours(node: Node) -> str:
    parts = [("only in", node.active_times), ("never in", node.mute_times)]
    return ", ".join(f"{word} {' or '.join(names)}" for word, names in parts if names)
