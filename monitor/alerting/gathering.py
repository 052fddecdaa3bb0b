"""A transition that people will be told of in, the same with its evidence out; read once, when it is needed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from monitor.alerting.agreement import AgreementSource, Uncalibrated
from monitor.alerting.alert import Alert, Transition
from monitor.alerting.changes import ChangeLog, Changes, changes_near
from monitor.alerting.evidence import Evidence, Point, concerns, explain, pick_cases
from monitor.detection.finding import FindingKind
from monitor.detection.gates import GatePolicy
from monitor.intake.event import Environment
from monitor.judging.drift import Shift
from monitor.judging.rubric import CRITICAL_MAX
from monitor.windows.bucket import CRITICAL, BucketCounts, Scope
from monitor.windows.store import WindowStore
from monitor.windows.window import Window, all_stats, window

POINTS_MAX = 24
"""Points of the small plot; more are not seen in a message."""
COURSE = timedelta(hours=24)
"""How much of the past the plot shows; more, if the alert has been pending or firing for longer."""
RUN_UP = timedelta(hours=6)
"""How much the plot shows of the time before an onset that lies long ago."""


class DriftSource(Protocol):
    """Whoever knows whether a judge has drifted since its anchors were pinned."""

    async def drift(
        self, dimension: str, *, judge_version: str, rubric_version: str, now: datetime
    ) -> Shift | None:
        """Return by how much, None where it has not, or nobody knows; raises StoreUnavailable."""
        ...


class ShiftSource(Protocol):
    """Whoever knows how a judge's scores moved since a baseline, by dimension."""

    async def shifts(
        self, *, judge_version: str, rubric_version: str, since: datetime, now: datetime
    ) -> Mapping[str, Shift]:
        """Return what is known of the judge between two times; nothing where nothing is."""
        ...

    async def since_onset(
        self, *, judge_version: str, rubric_version: str, since: datetime, onset: datetime, now: datetime
    ) -> Mapping[str, Shift] | None:
        """Return the same of the time from an onset on; None while that is still to be known."""
        ...


@dataclass(frozen=True)
class Background:
    """What is known beside the windows: what changed, and how far the judge may be believed."""

    changes: ChangeLog | None = None
    agreement: AgreementSource = field(default_factory=Uncalibrated)
    anchors: DriftSource | None = None
    shifts: ShiftSource | None = None


async def with_gate_evidence(
    windows: WindowStore,
    scope: Scope,
    now: Window,
    transition: Transition,
    *,
    policy: GatePolicy,
    background: Background,
) -> Transition:
    """Return a gate's transition with what stands behind it, from the window that speaks."""
    alert = transition.alert
    dimension, segment = alert.labels["dimension"], alert.labels["segment"]
    recent = await _window(windows, scope, alert.since, now.end)
    # Before the onset, with a window's distance from it; a young stream has less past to offer.
    earlier = await _window(windows, scope, alert.since - 2 * policy.window, alert.since - policy.window)
    if not earlier.counts:
        earlier = await _window(windows, scope, alert.since - policy.window, alert.since - policy.window / 2)
    wanted = None if dimension == CRITICAL else dimension
    worst = await windows.worst(scope, now.start, now.end, dimension=wanted)
    begin, step = course_of(alert.since, now.end)
    changes = await _changes(background, alert, now.end)
    evidence = Evidence(
        start=now.start,
        end=now.end,
        figures=alert.finding.figures,
        changes=explain(recent if recent.counts else now, earlier, dimension),
        cases=pick_cases(
            case
            for case in worst
            # Too many critical failures are shown by critical ones, not by whatever else did not pass.
            if concerns(case, segment) and (wanted or case.score <= CRITICAL_MAX)
        ),
        happened=changes.events,
        sightings=changes.sightings,
        course=points(
            await windows.buckets(scope, begin, now.end),
            (dimension, segment),
            begin=begin,
            end=now.end,
            step=step,
        ),
        agreement=await background.agreement.agreement(
            judge_version=scope.judge_version, rubric_version=scope.rubric_version, dimension=dimension
        ),
        judge_drift=await _drift(background, alert, scope, now.end),
    )
    return _with(transition, evidence)


async def with_critical_evidence(
    background: Background, transition: Transition, *, judge_version: str, rubric_version: str
) -> Transition:
    """Return a critical alert's transition with what changed before its first case."""
    alert = transition.alert
    if alert.evidence is None or not transition.notify:
        return transition
    changes = await _changes(background, alert, transition.at)
    agreement = await background.agreement.agreement(
        judge_version=judge_version, rubric_version=rubric_version, dimension=alert.labels["dimension"]
    )
    fields = dict(alert.evidence) | {
        "happened": changes.events,
        "sightings": changes.sightings,
        "agreement": agreement,
    }
    return _with(transition, Evidence.model_validate(fields))


async def with_changes(background: Background, transition: Transition) -> Transition:
    """Return a transition with what changed near its onset, where windows have nothing to show."""
    alert = transition.alert
    changes = await _changes(background, alert, transition.at)
    evidence = Evidence(
        start=alert.since,
        end=transition.at,
        figures=alert.finding.figures,
        happened=changes.events,
        sightings=changes.sightings,
    )
    return _with(transition, evidence)


def course_of(since: datetime, end: datetime) -> tuple[datetime, timedelta]:
    """Return where a plot begins and how much time one point stands for: full hours, at most 24 points."""
    span = max(COURSE, end - since + RUN_UP)
    step = timedelta(hours=math.ceil(span / timedelta(hours=1) / POINTS_MAX))
    return end - step * POINTS_MAX, step


def points(
    buckets: Mapping[datetime, BucketCounts],
    series: tuple[str, str],
    *,
    begin: datetime,
    end: datetime,
    step: timedelta,
) -> tuple[Point, ...]:
    """Return the course of a series; a point without data has no value, which is not zero."""
    found = []
    while begin < end:
        stats = all_stats(window(buckets, begin, begin + step).counts).get(series)
        value = None if stats is None else stats.critical_rate if series[0] == CRITICAL else stats.mean
        found.append(Point(at=begin, value=value, n=stats.n if stats else 0))
        begin += step
    return tuple(found)


async def _changes(background: Background, alert: Alert, until: datetime) -> Changes:
    if background.changes is None:
        return Changes()
    return await changes_near(
        background.changes,
        assistant=alert.labels["assistant"],
        environment=Environment(alert.labels["environment"]),
        onset=alert.since,
        until=until,
    )


async def _drift(background: Background, alert: Alert, scope: Scope, now: datetime) -> Shift | None:
    # A sustained change is told with the judge's shift taken off; a gate is held against the score as it is.
    if background.anchors is None or alert.kind not in {FindingKind.GATE, FindingKind.SLO}:
        return None
    return await background.anchors.drift(
        alert.labels["dimension"],
        judge_version=scope.judge_version,
        rubric_version=scope.rubric_version,
        now=now,
    )


async def _window(windows: WindowStore, scope: Scope, start: datetime, end: datetime) -> Window:
    return window(await windows.buckets(scope, start, end), start, end)


def _with(transition: Transition, evidence: Evidence) -> Transition:
    fields = dict(transition) | {
        "alert": Alert.model_validate(dict(transition.alert) | {"evidence": evidence})
    }
    return Transition.model_validate(fields)
