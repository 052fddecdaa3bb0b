"""What a receiver is told: one group of alerts at one moment, under an id that stays the same when it is sent again."""

from enum import StrEnum

from monitor.alerting.alert import Alert
from monitor.intake.event import Moment, Value

ALERTS_MAX = 50
"""Alerts carried in one notification; the rest are counted. It bounds the size of an outbox entry."""


class Status(StrEnum):
    """What a notification says of an alert or a group, in Alertmanager's words."""

    FIRING = "firing"
    RESOLVED = "resolved"


class NotificationReason(StrEnum):
    """Why a group is told now."""

    FIRST = "first"
    MORE_FIRING = "more firing"
    SOME_RESOLVED = "some resolved"
    ALL_RESOLVED = "all resolved"
    REPEAT = "repeat"


class GroupAlert(Value):
    """One alert as its group tells it. `labels` are what routes, silences and inhibition saw."""

    alert: Alert
    status: Status
    labels: dict[str, str]


class GroupNotification(Value):
    """One message to one receiver. It is written with the state of its group, in one step."""

    id: str
    """The idempotency id: the group's id and version. Sending it again sends the same id."""
    group_id: str
    """The same for the whole life of the group at this receiver: what an incident is known by (a dedup key)."""
    group_key: str
    """Alertmanager's groupKey: the route's matchers and the group's labels."""
    group_labels: dict[str, str]
    receiver: str
    status: Status
    alerts: tuple[GroupAlert, ...] = ()
    """The firing ones first, the gravest first; each brings its evidence."""
    firing: int = 0
    resolved: int = 0
    truncated: int = 0
    """Alerts of the group that are not among `alerts`, for its length or since they are not kept any more."""
    suppressed: int = 0
    """Further alerts of the group that silences, inhibition or hours held back since it was last told."""
    reason: NotificationReason
    at: Moment


class WaitingNotification(Value):
    """A notification in the outbox, with what became of the attempts to deliver it."""

    notification: GroupNotification
    attempts: int = 0
    due_at: Moment
    """When it may be tried next; at first when it was written."""
    last_error: str | None = None

    @property
    def id(self) -> str:
        """Return the id of its notification."""
        return self.notification.id
