"""Signs of life in, an alert that always fires out, as long as everything works: its absence is the alarm."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.labels import routing_labels
from monitor.alerting.notification import GroupAlert, GroupNotification, NotificationReason, Status
from monitor.detection.finding import Finding, FindingKind, Outcome, Severity
from monitor.intake.event import Moment, Value

STAGES = ("sample", "assemble", "judge", "aggregate", "changes", "evaluate", "notify")
"""The stages of a whole deployment; the last two are done by one worker of all, the one that leads."""
STANDBY = "-standby"
"""What stands behind the name of a stage in a process that waits to lead it."""


class WatchdogPolicy(BaseModel):
    """The part of config/routing.yaml that is about the watchdog."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    receiver: str
    every_seconds: Annotated[int, Field(ge=5, le=3600)] = 60
    stale_seconds: Annotated[int, Field(ge=20, le=3600)] = 60
    forget_minutes: Annotated[int, Field(ge=1, le=1440)] = 15
    stages: Annotated[tuple[str, ...], Field(min_length=1)] = STAGES


class Beat(Value):
    """The last sign of life of one stage in one process."""

    stage: str
    instance: str
    at: Moment


class Watched(Value):
    """Whether the watchdog may speak, and if not, why."""

    alive: bool
    reason: str


class Heartbeats(Protocol):
    """Whoever keeps the signs of life. It raises StoreUnavailable if it cannot."""

    async def beat(self, beats: Collection[Beat]) -> None:
        """Keep the newest sign of life of each stage and instance."""
        ...

    async def withdraw(self, stage: str, instance: str) -> None:
        """Forget one that has ended in order."""
        ...

    async def beats(self) -> tuple[Beat, ...]:
        """Return all that are kept, ordered by stage and instance."""
        ...


def watch(beats: Iterable[Beat], policy: WatchdogPolicy, *, now: datetime) -> Watched:
    """Tell whether every stage is run by somebody and nobody has fallen silent.

    A process that ended without a word holds the watchdog back until it is forgotten, or back under its name; one
    that ended in order has withdrawn.
    """
    stale, forget = timedelta(seconds=policy.stale_seconds), timedelta(minutes=policy.forget_minutes)
    known = [one for one in beats if now - one.at <= forget]
    for one in known:
        # A clock that is ahead would keep a dead process alive for as long.
        if abs(now - one.at) > stale:
            silent = round(abs(now - one.at).total_seconds())
            return Watched(
                alive=False, reason=f"{one.stage} on {one.instance} has given no sign of life for {silent} s"
            )
    running = {one.stage for one in known}
    for stage in policy.stages:
        if stage not in running:
            return Watched(alive=False, reason=f"no process runs {stage}")
    return Watched(alive=True, reason=f"{len(known)} signs of life from {len(running)} stages")


def watchdog_notification(policy: WatchdogPolicy, watched: Watched, *, now: datetime) -> GroupNotification:
    """Return what is told at each turn: the same group each time, an id of its own."""
    finding = Finding(
        kind=FindingKind.WATCHDOG,
        labels={"watchdog": "conversation-monitor"},
        severity=Severity.INFO,
        outcome=Outcome.FAIL,
        reason=watched.reason,
        since=now,
    )
    alert = Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.FIRING,
        version=1,
        severity=finding.severity,
        finding=finding,
        since=now,
        failed_at=now,
    )
    labels = routing_labels(alert)
    return GroupNotification(
        id=f"watchdog-{int(now.timestamp())}",
        group_id="watchdog",
        group_key='{}:{alertname="ConversationMonitorWatchdog"}',
        group_labels={"alertname": labels["alertname"]},
        receiver=policy.receiver,
        status=Status.FIRING,
        alerts=(GroupAlert(alert=alert, status=Status.FIRING, labels=labels),),
        firing=1,
        reason=NotificationReason.REPEAT,
        at=now,
    )
