"""Labels in, the routes that they take out, with why: Alertmanager's tree of routes."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from monitor.alerting.matchers import Labels, Matchers, all_match, braced, first_refusal, quoted

ALL_LABELS = "..."
"""Group by every label: one group an alert."""
DEPTH_MAX = 20
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(value: object) -> object:
    """Read a duration such as 30s, 5m, 1h30m or 0s; raise ValueError with the cure."""
    if not isinstance(value, str):
        return value
    left, seconds = value.strip(), 0.0
    while left:
        digits = len(left) - len(left.lstrip("0123456789"))
        unit = next((u for u in ("ms", *"smhdw") if left[digits:].startswith(u)), None)
        if digits == 0 or unit is None:
            raise ValueError(f"{value!r} is no duration; write 30s, 5m, 4h or 1h30m")
        seconds += int(left[:digits]) * _UNITS[unit]
        left = left[digits + len(unit) :]
    return timedelta(seconds=seconds)


def in_words(value: timedelta) -> str:
    """Return a duration as it stands in the file."""
    seconds = value.total_seconds()
    for unit in ("h", "m", "s"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:.0f}{unit}"
    return f"{seconds * 1000:.0f}ms"


Duration = Annotated[timedelta, BeforeValidator(duration), PlainSerializer(in_words)]
Wait = Annotated[Duration, Field(ge=timedelta(0), le=timedelta(days=1))]
Interval = Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=31))]


class Route(BaseModel):
    """One node of the tree, as it stands in the file. What is not given comes from the node above."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    receiver: str | None = None
    matchers: Matchers = ()
    group_by: tuple[str, ...] | None = None
    group_wait: Wait | None = None
    group_interval: Interval | None = None
    repeat_interval: Interval | None = None
    continue_: Annotated[bool, Field(alias="continue")] = False
    mute_time_intervals: tuple[str, ...] = ()
    active_time_intervals: tuple[str, ...] = ()
    routes: "tuple[Route, ...]" = ()

    @model_validator(mode="after")
    def _groups_make_sense(self) -> Self:
        names = self.group_by or ()
        if len(set(names)) != len(names):
            raise ValueError("group_by names a label twice")
        if ALL_LABELS in names and len(names) > 1:
            raise ValueError(f"group_by: {ALL_LABELS} means all labels and stands alone")
        return self


@dataclass(frozen=True)
class Node:
    """One node with what it inherits."""

    key: str
    """The matchers from the root down, as in Alertmanager's groupKey."""
    place: str
    """Where it stands in the file, such as route.routes.0."""
    receiver: str
    matchers: Matchers
    group_by: tuple[str, ...]
    group_wait: timedelta
    group_interval: timedelta
    repeat_interval: timedelta
    continues: bool
    mute_times: tuple[str, ...]
    active_times: tuple[str, ...]
    children: "tuple[Node, ...]"

    def group_labels(self, labels: Labels) -> dict[str, str]:
        """Return the labels that make the group; a label that is absent has no place in it."""
        names = sorted(labels) if self.group_by == (ALL_LABELS,) else sorted(self.group_by)
        return {name: labels[name] for name in names if name in labels}

    def group_key(self, group_labels: Labels) -> str:
        """Return Alertmanager's key of a group."""
        inner = ", ".join(f"{name}={quoted(value)}" for name, value in sorted(group_labels.items()))
        return f"{self.key}:{{{inner}}}"

    def group_id(self, group_labels: Labels) -> str:
        """Return the identity of a group at its receiver, 16 hex digits."""
        text = json.dumps([self.receiver, self.group_key(group_labels)], ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def walk(self) -> "Iterator[Node]":
        """Yield this node and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def tree(root: Route) -> Node:
    """Return the tree with everything inherited; the root must name a receiver."""
    if root.receiver is None:
        raise ValueError("the top of the tree needs a receiver, for what no other route takes")
    if root.matchers or root.continue_ or root.mute_time_intervals or root.active_time_intervals:
        raise ValueError("the top of the tree takes everything: no matchers, continue or times there")
    return _node(root, None, "route")


def matching(node: Node, labels: Labels) -> tuple[Node, ...]:
    """Return the nodes that take an alert: the deepest that match, more than one where `continue` says so."""
    if not all_match(node.matchers, labels):
        return ()
    found: list[Node] = []
    for child in node.children:
        taken = matching(child, labels)
        found += taken
        if taken and not child.continues:
            break
    return tuple(found) or (node,)


def explained(node: Node, labels: Labels, depth: int = 0) -> Iterator[str]:
    """Yield, a line a node, what the tree makes of these labels."""
    indent = "  " * depth
    name = f"{indent}{braced(node.matchers)} -> {node.receiver}"
    refusal = first_refusal(node.matchers, labels)
    if refusal is not None:
        has = quoted(labels[refusal.name]) if refusal.name in labels else "absent"
        yield f"{name}: no, {refusal} and {refusal.name} is {has}"
        return
    yield f"{name}: {'takes it' if matching(node, labels) == (node,) else 'matches, and asks below'}"
    for number, child in enumerate(node.children):
        yield from explained(child, labels, depth + 1)
        if matching(child, labels) and not child.continues:
            left = len(node.children) - number - 1
            if left:
                yield f"{indent}  {left} more not asked: the route above does not continue"
            return


def _node(route: Route, above: Node | None, place: str) -> Node:
    if place.count("routes.") > DEPTH_MAX:
        raise ValueError(f"routes are nested deeper than {DEPTH_MAX}")

    key = braced(route.matchers)
    node = Node(
        key=f"{above.key}/{key}" if above else key,
        place=place,
        receiver=route.receiver or (above.receiver if above else ""),
        matchers=route.matchers,
        group_by=route.group_by if route.group_by is not None else above.group_by if above else (),
        group_wait=_first(route.group_wait, above.group_wait if above else None, timedelta(seconds=30)),
        group_interval=_first(
            route.group_interval, above.group_interval if above else None, timedelta(minutes=5)
        ),
        repeat_interval=_first(
            route.repeat_interval, above.repeat_interval if above else None, timedelta(hours=4)
        ),
        continues=route.continue_,
        # As in Alertmanager, hours are not inherited.
        mute_times=route.mute_time_intervals,
        active_times=route.active_time_intervals,
        children=(),
    )
    children = tuple(_node(child, node, f"{place}.routes.{i}") for i, child in enumerate(route.routes))
    return Node(**{**node.__dict__, "children": children})


def _first(own: timedelta | None, inherited: timedelta | None, default: timedelta) -> timedelta:
    return next((one for one in (own, inherited) if one is not None), default)
