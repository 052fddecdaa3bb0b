"""The values of grouping: what is remembered of a group, an alert as routes see it, and what changes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from monitor.alerting.alert import Alert
from monitor.alerting.inhibition import InhibitRule
from monitor.alerting.notification import ALERTS_MAX, GroupNotification, Status
from monitor.alerting.routes import Node
from monitor.alerting.times import NamedTimes
from monitor.intake.event import Moment, Value

GROUPS_MAX = 200
"""Groups of one route; more would be a storm of messages, so that what comes then shares one group."""


class Group(Value):
    """What is remembered of one group at one receiver. Its version rises by one with each change, from 1."""

    id: str
    version: int
    route: str
    """The key of its route, in Alertmanager's form."""
    receiver: str
    key: str
    labels: dict[str, str]
    next_at: Moment
    """When it is looked at next."""
    members: tuple[str, ...] = ()
    """Fingerprints that fired in it and were not yet told to be over."""
    told_firing: tuple[str, ...] = ()
    """What the receiver believes to fire; with Alertmanager, its notification log."""
    told_resolved: tuple[str, ...] = ()
    told_at: Moment | None = None
    suppressed: tuple[str, ...] = ()
    """Fingerprints held back since it was last told."""


@dataclass(frozen=True)
class Routed:
    """An alert as routes see it."""

    alert: Alert
    status: Status
    labels: Mapping[str, str]
    news: str = ""
    """What makes an alert that goes on firing worth telling again, such as its count of critical cases."""

    @property
    def is_acknowledged(self) -> bool:
        """Tell whether somebody looks after it."""
        return self.alert.acknowledged_at is not None

    @property
    def fingerprint(self) -> str:
        """Return the identity of its alert."""
        return self.alert.fingerprint

    @property
    def told_as(self) -> str:
        """Return what the group remembers of having told it."""
        return f"{self.fingerprint}/{self.news}" if self.news else self.fingerprint


@dataclass(frozen=True)
class Rules:
    """What the configuration says, as the engine reads it."""

    root: Node
    receivers: Collection[str]
    inhibit: Sequence[InhibitRule] = ()
    times: Mapping[str, NamedTimes] = field(default_factory=dict)
    firing_only: Collection[str] = ()
    """Receivers that are not told of an end."""
    nobody: Collection[str] = ()
    """Receivers that are nobody: their alerts are listed, and no group is kept for them."""
    groups_max: int = GROUPS_MAX
    alerts_max: int = ALERTS_MAX


@dataclass(frozen=True)
class GroupChange:
    """The next state of a group, to be written by compare-and-set with what is told."""

    group: Group
    notification: GroupNotification | None = None
    forget: bool = False
    """Nothing of the group need be remembered."""
