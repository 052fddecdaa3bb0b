"""Alerts and the state of groups in, their next state and what is told now out: Alertmanager's timing, as values.

Time is an argument and state is a value, so that a restart forgets nothing and of two notifiers one wins.
Deviations, each to the good of whoever is told: group_wait counts from when an alert reaches the notifier
(an evaluation is minutes old when it speaks); a group that ran empty keeps its pace until its next turn (a flapping
alert is told at most once each group_interval); a route with too many groups puts the rest into one;
what is acknowledged is not repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from monitor.alerting.group import Group, GroupChange, Routed, Rules
from monitor.alerting.inhibition import Inhibition
from monitor.alerting.notification import GroupAlert, GroupNotification, NotificationReason, Status
from monitor.alerting.routes import Node, matching
from monitor.alerting.silence import Silence

Member = tuple[str, Routed | None]
"""A fingerprint, and what is still known of its alert."""


def plan(
    rules: Rules,
    alerts: Sequence[Routed],
    groups: Iterable[Group],
    silences: Sequence[Silence],
    *,
    now: datetime,
) -> tuple[GroupChange, ...]:
    """Return every group that changes now. `alerts` are those that fire, and what is known of other members."""
    known = {group.id: group for group in groups}
    by_fingerprint = {one.fingerprint: one for one in alerts}
    firing = [one for one in alerts if one.status is Status.FIRING]
    taken = _assign(rules, firing, known)
    nodes = {(node.key, node.receiver): node for node in rules.root.walk()}
    inhibition = Inhibition(rules.inhibit, [one.labels for one in firing])
    active = [silence for silence in silences if silence.is_active(now)]
    changes = []
    for group_id in sorted({*known, *taken}):
        before = known.get(group_id)
        node, labels, inside = taken.get(group_id) or (None, {}, {})
        if before is not None and (node is None or node.receiver != before.receiver):
            node = nodes.get((before.route, before.receiver))
        group = _joined(before or _opened(node, labels, now), inside, node, now)
        if now < group.next_at:
            change = GroupChange(group)
        else:
            members = _members(group, inside, by_fingerprint)
            muted = _muted(rules, node, members, inhibition, active, now=now)
            change = _turn(_Turn(rules, group, node, now), members, muted)
        if change.forget or change.group != before:
            changes.append(_numbered(change))
    return tuple(changes)


def is_off_hours(rules: Rules, node: Node, now: datetime) -> bool:
    """Tell whether a route is quiet by its hours."""
    if any(rules.times[name].contains(now) for name in node.mute_times):
        return True
    return bool(node.active_times) and not any(rules.times[name].contains(now) for name in node.active_times)


@dataclass(frozen=True)
class _Turn:
    """One group whose time has come."""

    rules: Rules
    group: Group
    node: Node | None
    """None if the configuration knows its route no more: what it told is over."""
    now: datetime


Taken = dict[str, tuple[Node, dict[str, str], dict[str, Routed]]]


def _assign(rules: Rules, firing: Sequence[Routed], known: Mapping[str, Group]) -> Taken:
    """Return, by group, its route, its labels and what fires in it."""
    taken: Taken = {}
    counts: dict[str, int] = {}
    for group in known.values():
        counts[group.route] = counts.get(group.route, 0) + 1
    members = {group.id: set(group.members) for group in known.values()}
    for one in firing:
        for node in matching(rules.root, one.labels):
            if node.receiver in rules.nobody:
                continue
            labels = node.group_labels(one.labels)
            group_id = node.group_id(labels)
            if group_id not in known and group_id not in taken:
                rest = node.group_id({})
                crowded = counts.get(node.key, 0) >= rules.groups_max
                if crowded or one.fingerprint in members.get(rest, ()):
                    group_id, labels = rest, {}
            if group_id not in known and group_id not in taken:
                counts[node.key] = counts.get(node.key, 0) + 1
            _, _, inside = taken.setdefault(group_id, (node, labels, {}))
            inside[one.fingerprint] = one
    return taken


def _opened(node: Node | None, labels: dict[str, str], now: datetime) -> Group:
    if node is None:
        raise ValueError("a group that is new has its route")
    return Group(
        id=node.group_id(labels),
        version=0,
        route=node.key,
        receiver=node.receiver,
        key=node.group_key(labels),
        labels=labels,
        next_at=now + node.group_wait,
    )


def _joined(group: Group, inside: Mapping[str, Routed], node: Node | None, now: datetime) -> Group:
    changes: dict[str, object] = {}
    if not group.members and inside and now >= group.next_at and group.version and node is not None:
        # It ran empty and its turn is over: what comes now begins with a wait, as a new group does.
        changes["next_at"] = now + node.group_wait
    latest = now + max(node.group_wait, node.group_interval) if node else now
    if group.next_at > latest:
        # The clock was set back; nobody waits for it to come round again.
        changes["next_at"] = latest
    if group.told_at is not None and group.told_at > now:
        changes["told_at"] = now
    if set(inside) - set(group.members):
        changes["members"] = tuple(sorted({*group.members, *inside}))
    return _with(group, **changes) if changes else group


def _members(group: Group, inside: Mapping[str, Routed], known: Mapping[str, Routed]) -> list[Member]:
    """Return each member as it is told: what left for another group is over here."""
    found: list[Member] = []
    for fingerprint in group.members:
        one = inside.get(fingerprint)
        if one is None and fingerprint in known:
            other = known[fingerprint]
            one = Routed(other.alert, Status.RESOLVED, other.labels)
        found.append((fingerprint, one))
    return found


def _muted(
    rules: Rules,
    node: Node | None,
    members: Sequence[Member],
    inhibition: Inhibition,
    active: Sequence[Silence],
    *,
    now: datetime,
) -> frozenset[str]:
    if node is not None and is_off_hours(rules, node, now):
        return frozenset(fingerprint for fingerprint, _ in members)
    return frozenset(
        fingerprint
        for fingerprint, one in members
        if one is not None
        and (inhibition.muted_by(one.labels) or any(silence.mutes(one.labels, now) for silence in active))
    )


def _turn(turn: _Turn, members: Sequence[Member], muted: frozenset[str]) -> GroupChange:
    """Take a group's turn: decide whether its receiver is told, and what is remembered."""
    group, node, now = turn.group, turn.node, turn.now
    if not members:
        return (
            GroupChange(group) if _is_remembered(turn) else GroupChange(_with(group, members=()), forget=True)
        )
    shown = [(name, one) for name, one in members if name not in muted]
    firing = [one for _, one in shown if one is not None and one.status is Status.FIRING]
    over = [one for _, one in shown if one is not None and one.status is Status.RESOLVED]
    suppressed = tuple(sorted({*group.suppressed, *muted}))
    following = _with(
        group,
        next_at=now + (node.group_interval if node else timedelta(0)),
        members=tuple(name for name, one in members if one is not None and one.status is Status.FIRING),
        suppressed=suppressed,
    )
    reason = _reason(turn, firing, over) if shown else None
    if reason is None:
        return GroupChange(following)
    told = _with(
        following,
        told_firing=tuple(sorted(one.told_as for one in firing)),
        told_resolved=tuple(sorted(one.told_as for one in over)),
        told_at=now,
        suppressed=(),
    )
    if group.receiver not in turn.rules.receivers:
        return GroupChange(told)
    if not firing and group.receiver in turn.rules.firing_only:
        return GroupChange(told)
    unknown = sum(one is None for _, one in shown)
    notification = _notification(turn, firing, over, reason)
    counted = {
        "resolved": notification.resolved + unknown,
        "truncated": notification.truncated + unknown,
        "suppressed": len(set(suppressed) - {name for name, _ in shown}),
    }
    return GroupChange(told, notification.model_copy(update=counted))


def _reason(turn: _Turn, firing: Sequence[Routed], over: Sequence[Routed]) -> NotificationReason | None:
    """Return why a receiver is told now; None if it knows already. Alertmanager's DedupStage."""
    group, node = turn.group, turn.node
    if not firing:
        # Whoever was never told of them need not hear that they are over.
        return NotificationReason.ALL_RESOLVED if group.told_firing else None
    if group.told_at is None or not group.told_firing:
        return NotificationReason.FIRST
    if not {one.told_as for one in firing} <= set(group.told_firing):
        return NotificationReason.MORE_FIRING
    tells_ends = group.receiver not in turn.rules.firing_only
    if tells_ends and not {one.told_as for one in over} <= set(group.told_resolved):
        return NotificationReason.SOME_RESOLVED
    acknowledged = all(one.is_acknowledged for one in firing)
    repeats = node is not None and not acknowledged and turn.now - group.told_at >= node.repeat_interval
    return NotificationReason.REPEAT if repeats else None


def _is_remembered(turn: _Turn) -> bool:
    """Tell whether an empty group is kept: its receiver was not told of an end that came while it was muted."""
    group, node = turn.group, turn.node
    if node is None or group.told_at is None or not group.told_firing:
        return False
    return turn.now - group.told_at < 2 * node.repeat_interval


def _notification(
    turn: _Turn, firing: Sequence[Routed], over: Sequence[Routed], reason: NotificationReason
) -> GroupNotification:
    group = turn.group
    resolved = () if group.receiver in turn.rules.firing_only else over
    ordered = [*sorted(firing, key=_gravest_first), *sorted(resolved, key=_gravest_first)]
    shown = ordered[: turn.rules.alerts_max]
    return GroupNotification(
        # A group that was forgotten counts its versions anew; with the time no id comes twice.
        id=f"{group.id}-{group.version + 1}-{turn.now.timestamp() * 1000:.0f}",
        group_id=group.id,
        group_key=group.key,
        group_labels=group.labels,
        receiver=group.receiver,
        status=Status.FIRING if firing else Status.RESOLVED,
        alerts=tuple(
            GroupAlert(alert=one.alert, status=one.status, labels=dict(one.labels)) for one in shown
        ),
        firing=len(firing),
        resolved=len(resolved),
        truncated=len(ordered) - len(shown),
        reason=reason,
        at=turn.now,
    )


def _gravest_first(one: Routed) -> tuple[int, datetime, str]:
    return (-one.alert.severity.weight, one.alert.since, one.fingerprint)


def _numbered(change: GroupChange) -> GroupChange:
    return replace(change, group=_with(change.group, version=change.group.version + 1))


def _with(group: Group, **changes: object) -> Group:
    return Group.model_validate(dict(group) | changes)
