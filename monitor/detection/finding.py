"""What a detector says of one label set: pass, fail or no data, with its reason and figures."""

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitor.detection.change import Sustained
from monitor.intake.event import Moment, Value
from monitor.windows.bucket import Scope
from monitor.windows.case import Case


class FindingKind(StrEnum):
    """What kind of detector spoke; each has its runbook, docs/runbooks/<kind>.md."""

    GATE = "gate"
    CRITICAL = "critical"
    SLO = "slo"
    DELIVERY = "delivery"
    """A receiver takes no notifications: the monitor itself is in trouble."""
    WATCHDOG = "watchdog"
    """Fires always, to show that everything works; its absence is the alarm."""
    JUDGE = "judge"
    REGRESSION = "regression"
    """Quality fell below the pinned baseline and stays there."""
    CRITICAL_RATE = "critical_rate"
    """Critical failures became more frequent than in the pinned baseline."""
    SIGNAL = "signal"
    """Escalations, thumbs down, fallbacks or refusals did, over all traffic."""
    CONFIGURATION = "configuration"
    """Something answers that nobody evaluated, or another model than was asked for."""


class Outcome(StrEnum):
    """What was found. `excepted`: it fails, under an exception that someone signed."""

    PASS = "pass"  # noqa: S105 - an outcome, no password
    FAIL = "fail"
    NO_DATA = "no_data"
    EXCEPTED = "excepted"


class Severity(StrEnum):
    """How much a person is disturbed: at once, in business hours, not at all."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"

    @property
    def weight(self) -> int:
        """Return its order, the gravest highest."""
        return {Severity.INFO: 0, Severity.TICKET: 1, Severity.PAGE: 2}[self]


class Failures(StrEnum):
    """Whether what a judge did not judge has to do with what was asked."""

    SPREAD = "spread"
    """Prompts and strata alike: the rest is a smaller picture of the same."""
    CONCENTRATED = "concentrated"
    """On some prompts or strata: they may hide the bad answers."""


class Figure(Value):
    """One number that was compared, with what it was compared to."""

    name: str
    value: float | None
    limit: float | None = None
    low: float | None = None
    high: float | None = None
    n: int


class Finding(Value):
    """One detector's word on one label set. The labels are its identity and never hold a changing value."""

    kind: FindingKind
    labels: dict[str, str]
    severity: Severity
    outcome: Outcome
    clear: bool = False
    """It passes by the margin that ends a firing alert."""
    reason: str
    since: Moment
    """Where what was looked at begins: the window's start, or the case's time."""
    figures: tuple[Figure, ...] = ()
    case: Case | None = None
    sustained: Sustained | None = None
    failures: Failures | None = None
    """Of a judge whose series speak and which fails now; no part of the identity, since it changes."""

    @property
    def fingerprint(self) -> str:
        """Return the identity of the finding's alert, 16 hex digits."""
        return fingerprint(self.kind, self.labels)


def fingerprint(kind: FindingKind, labels: Mapping[str, str]) -> str:
    """Return the hash of an alert's identity."""
    text = json.dumps([kind, sorted(labels.items())], ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def labels_of(scope: Scope, dimension: str, segment: str) -> dict[str, str]:
    """Return the identity of a gate's finding. Judge and rubric versions change and are no part of it."""
    labels = {
        "assistant": scope.assistant,
        "environment": str(scope.environment),
        "dimension": dimension,
        "segment": segment,
    }
    return labels | ({"variant": scope.variant} if scope.variant else {})


class Persistence(BaseModel):
    """How long a finding must hold before it is believed, and how long its end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    for_minutes: Annotated[int, Field(ge=0, le=10_080)] = 60
    clear_minutes: Annotated[int, Field(ge=0, le=10_080)] = 60
    flapping_count: Annotated[int, Field(ge=2, le=20)] = 3
    flapping_window_minutes: Annotated[int, Field(ge=1, le=43_200)] = 1440
    flapping_clear_minutes: Annotated[int, Field(ge=0, le=43_200)] = 360

    @property
    def hold(self) -> timedelta:
        """Return how long a failure must last before it fires."""
        return timedelta(minutes=self.for_minutes)

    def clearance(self, *, flapping: bool) -> timedelta:
        """Return how long a clear pass must last before the alert ends."""
        return timedelta(minutes=self.flapping_clear_minutes if flapping else self.clear_minutes)

    @property
    def flapping_window(self) -> timedelta:
        """Return the time within which repeated firing counts as flapping."""
        return timedelta(minutes=self.flapping_window_minutes)
