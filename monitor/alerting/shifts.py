"""The record of alerts and the routing in, what rang when out: pages a shift, counted as a pager counts them.

The routing is played at the record's own time, so that eight days in a minute, or last month under other routes,
ring exactly as they would have.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitor.alerting.group import Group, GroupChange, Routed
from monitor.alerting.grouping import plan
from monitor.alerting.labels import routed
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.receiver import Notification
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.silence import Silence
from monitor.detection.finding import Severity

SHIFT = timedelta(hours=12)
PAGES_MAX = 2
"""What a person on call can look into in one shift; more, and pages are no longer read."""


@dataclass(frozen=True)
class Paging:
    """What one receiver was told, and how often that woke somebody."""

    receiver: str
    pages: tuple[datetime, ...]
    """When it rang: a group came to have an alert of page severity, and had none before."""
    messages: int
    """All that it was told, reminders, growth and ends among them."""
    held_back: int
    """Alerts that its messages say were held back by inhibition, silences or hours."""

    @property
    def busiest(self) -> int:
        """Return the most pages in any stretch as long as a shift, whenever shifts begin."""
        return max(
            (bisect_left(self.pages, at + SHIFT) - number for number, at in enumerate(self.pages)), default=0
        )


def played(
    policy: RoutingPolicy, record: Iterable[Notification], silences: Sequence[Silence] = ()
) -> tuple[GroupNotification, ...]:
    """Return what the routing tells of a record of alerts, in the order of its time."""
    coming = sorted(record, key=lambda one: (one.at, one.alert.fingerprint, one.alert.version))
    alerts: dict[str, Routed] = {}
    groups: dict[str, Group] = {}
    told: list[GroupNotification] = []
    place = 0
    for now in _ticks(policy, coming, groups):
        while place < len(coming) and coming[place].at <= now:
            alert = coming[place].alert
            alerts[alert.fingerprint] = routed(alert, policy.labels)
            place += 1
        for change in plan(policy.rules, list(alerts.values()), groups.values(), silences, now=now):
            _apply(groups, change)
            if change.notification is not None:
                told.append(change.notification)
    return tuple(told)


def paging(told: Iterable[GroupNotification]) -> tuple[Paging, ...]:
    """Return, for each receiver that was told anything, how often it rang; the one that rang most comes first."""
    by_receiver: dict[str, list[GroupNotification]] = {}
    for one in told:
        by_receiver.setdefault(one.receiver, []).append(one)
    found = [
        Paging(
            receiver=name,
            pages=tuple(one.at for one in _ringing(messages)),
            messages=len(messages),
            held_back=sum(one.suppressed for one in messages),
        )
        for name, messages in by_receiver.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.busiest, -len(one.pages), one.receiver)))


def _ringing(messages: Iterable[GroupNotification]) -> Iterator[GroupNotification]:
    """Yield what opens an incident; what is added to one that is open, repeats it or ends it does not ring."""
    open_groups: set[str] = set()
    for one in messages:
        pages = any(
            each.status is Status.FIRING and each.alert.severity is Severity.PAGE for each in one.alerts
        )
        if pages and one.group_id not in open_groups:
            yield one
        (open_groups.add if pages else open_groups.discard)(one.group_id)


def _ticks(
    policy: RoutingPolicy, coming: Sequence[Notification], groups: dict[str, Group]
) -> Iterator[datetime]:
    """Yield each moment at which something is recorded or a group's turn has come, until the last is told."""
    if not coming:
        return
    slowest = max(node.group_wait + node.group_interval for node in policy.tree.walk())
    now, end = coming[0].at, coming[-1].at + slowest
    times = sorted({one.at for one in coming})
    while now <= end:
        yield now
        place = bisect_left(times, now + timedelta.resolution)
        turns = [group.next_at for group in groups.values() if group.next_at > now]
        following = [*times[place : place + 1], *turns]
        if not following:
            return
        now = min(following)


def _apply(groups: dict[str, Group], change: GroupChange) -> None:
    if change.forget:
        groups.pop(change.group.id, None)
    else:
        groups[change.group.id] = change.group
