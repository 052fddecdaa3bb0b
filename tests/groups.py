"""Firing alerts with any labels, and rules, for tests of routes and groups."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import yaml

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.group import Group, GroupChange, Routed, Rules
from monitor.alerting.grouping import plan
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.silence import Silence
from monitor.detection.finding import Finding, FindingKind, Outcome, Severity
from tests.judgments import NOON

SECOND = timedelta(seconds=1)
RECEIVERS = "receivers: {a: {type: console}, b: {type: console}, c: {type: console}, d: {type: console}}\n"


def a_firing(
    labels: Mapping[str, str], *, resolved: bool = False, news: str = "", at: datetime = NOON
) -> Routed:
    """Return an alert with these labels, which are what routes see too."""
    said = labels.get("severity", "")
    severity = Severity(said) if said in set(Severity) else Severity.TICKET
    finding = Finding(
        kind=FindingKind.GATE,
        labels=dict(labels),
        severity=severity,
        outcome=Outcome.FAIL,
        reason="fails",
        since=at,
    )
    alert = Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.RESOLVED if resolved else AlertState.FIRING,
        version=1,
        severity=severity,
        finding=finding,
        since=at,
        failed_at=at,
    )
    status = Status.RESOLVED if resolved else Status.FIRING
    return Routed(alert=alert, status=status, labels=labels, news=news)


def routing(text: str) -> RoutingPolicy:
    """Return a policy of the receivers a to d and what the text adds."""
    values: dict[str, Any] = yaml.safe_load(RECEIVERS + text)
    return RoutingPolicy.model_validate(values)


class Notifier:
    """The engine with its state, as a notifier runs it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.groups: dict[str, Group] = {}
        self.told: list[GroupNotification] = []
        self.silences: list[Silence] = []
        self.alerts: dict[str, Routed] = {}

    def fire(self, *labels: Mapping[str, str], at: datetime = NOON, news: str = "") -> None:
        for one in labels:
            routed = a_firing(one, at=at, news=news)
            self.alerts[routed.fingerprint] = routed

    def resolve(self, *labels: Mapping[str, str]) -> None:
        for one in labels:
            routed = a_firing(one, resolved=True)
            self.alerts[routed.fingerprint] = routed

    def tick(self, now: datetime) -> list[GroupNotification]:
        """Run one tick; return what is told."""
        changes = plan(self.rules, list(self.alerts.values()), self.groups.values(), self.silences, now=now)
        self.apply(changes)
        told = [change.notification for change in changes if change.notification is not None]
        self.told += told
        return told

    def apply(self, changes: tuple[GroupChange, ...]) -> None:
        for change in changes:
            if change.forget:
                self.groups.pop(change.group.id, None)
            else:
                self.groups[change.group.id] = change.group

    def run(self, start: datetime, end: datetime, step: timedelta = SECOND) -> list[GroupNotification]:
        """Tick from start to before end; return what is told."""
        told: list[GroupNotification] = []
        while start < end:
            told += self.tick(start)
            start += step
        return told
