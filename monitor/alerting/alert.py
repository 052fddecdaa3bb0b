"""The values of an alert: one finding's life for one label set, and its recorded changes."""

from datetime import datetime
from enum import StrEnum

from monitor.alerting.decision import Decision, Note
from monitor.alerting.evidence import Evidence
from monitor.detection.finding import Finding, FindingKind, Severity
from monitor.intake.event import Moment, Value

FIRINGS_MAX = 20
"""Firings remembered, to tell flapping; it bounds the alert's size."""
SEEN_MAX = 500
"""Judgments that a critical alert remembers, so that none counts twice; it bounds the alert's size."""


class AlertState(StrEnum):
    """Where an alert is in its life."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


OPEN = (AlertState.PENDING, AlertState.FIRING)


class Alert(Value):
    """One finding's life. Its version rises by one with each change, from 1."""

    fingerprint: str
    state: AlertState
    version: int
    severity: Severity
    finding: Finding
    """What the detector said at the last change of state."""
    since: Moment
    """When the condition began, in this episode."""
    failed_at: Moment
    """When it was last seen to fail."""
    clear_since: Moment | None = None
    fired_at: Moment | None = None
    resolved_at: Moment | None = None
    notified_at: Moment | None = None
    firings: tuple[Moment, ...] = ()
    evidence: Evidence | None = None
    total: int = 0
    """Critical cases counted in this episode."""
    notified_total: int = 0
    """Critical cases that people have been told of."""
    seen: tuple[str, ...] = ()
    acknowledged_by: str | None = None
    """Who looks after this episode."""
    acknowledged_at: Moment | None = None
    notes: tuple[Note, ...] = ()
    """What people did and said, over all episodes."""
    decisions: tuple[Decision, ...] = ()
    """What its firings turned out to be, one each."""

    @property
    def kind(self) -> FindingKind:
        """Return what kind of detector it came from."""
        return self.finding.kind

    @property
    def labels(self) -> dict[str, str]:
        """Return its identity."""
        return self.finding.labels


class Transition(Value):
    """A change of an alert, to be written once by compare-and-set; `alert` is the new state."""

    alert: Alert
    at: Moment
    reason: str
    notify: bool
    """People are told. A silent change only keeps the books."""
    by: str | None = None
    """Who made it; None for the monitor itself. What people do is on record, told or not."""

    @property
    def expected_version(self) -> int:
        """Return the version that must still be stored; 0 for none."""
        return self.alert.version - 1

    @property
    def id(self) -> str:
        """Return the id under which receivers may tell a repetition."""
        return f"{self.alert.fingerprint}-{self.alert.version}"


def changed(alert: Alert, at: datetime, reason: str, *, notify: bool, **changes: object) -> Transition:
    """Return the transition that changes these fields of an alert."""
    fields = dict(alert) | changes | {"version": alert.version + 1}
    if notify:
        fields["notified_at"] = at
    return Transition(alert=Alert.model_validate(fields), at=at, reason=reason, notify=notify)
