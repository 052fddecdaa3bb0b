"""Judges' counters in, transitions of their own alerts out. Doing it twice changes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict

from monitor.alerting.alert import OPEN, Alert, AlertState, Transition, changed
from monitor.alerting.life import advance
from monitor.alerting.store import AlertStore
from monitor.detection.finding import Failures, Finding, FindingKind, Outcome, Persistence
from monitor.detection.judge_drift import CHECK, Anchored, anchored, drift_finding, over
from monitor.detection.judge_health import failures_depend, health_finding, silent_finding
from monitor.detection.sequential import excuse
from monitor.intake.event import Environment
from monitor.judging.anchors import AnchorPolicy, AnchorReader, AnchorScore
from monitor.judging.drift import Shift, anchor_shift, shift_between
from monitor.judging.health import HealthPolicy, HealthStore, health_of, hour_of
from monitor.judging.judgment import JudgeIdentity
from monitor.judging.read_once import ReadOnce
from monitor.judging.rubric import TargetKind
from monitor.judging.shadow import SHADOW
from monitor.windows.store import WindowStore
from monitor.windows.window import window

AT_ONCE = Persistence(for_minutes=15, clear_minutes=60)
"""The counters look back over hours themselves; a quarter keeps one bad minute at an hour's beginning quiet."""
SILENT = timedelta(days=1)
"""After this a judge that is not asked, though others are, is taken for replaced; nothing else would end its alert."""
LOOK_BACK = timedelta(days=9)
"""How far back the onset of a drift is looked for."""


class Versions(TypedDict):
    """Whose scores."""

    judge_version: str
    rubric_version: str


@dataclass(frozen=True)
class LiveAnchors:
    """The anchors of the judge whose series speak."""

    store: AnchorReader
    judge: JudgeIdentity
    rubric_version: str
    policy: AnchorPolicy

    @property
    def versions(self) -> Versions:
        """Return whose scores they are."""
        return {"judge_version": self.judge.version, "rubric_version": self.rubric_version}

    def once(self) -> "LiveAnchors":
        """Return them as one evaluation reads them: nothing twice, and so nothing that comes while it goes on."""
        return replace(self, store=ReadOnce(self.store))

    async def scores(self, now: datetime) -> tuple[Mapping[str, AnchorScore], Sequence[AnchorScore]]:
        """Return the pinned scores and the newer ones up to `now`; raises StoreUnavailable."""
        pins = await self.store.pins(**self.versions)
        return pins, await self.store.scores(now - LOOK_BACK, now, **self.versions)

    async def read(self, now: datetime) -> Anchored:
        """Return what the anchors say at a time; raises StoreUnavailable."""
        pins = await self.store.pins(**self.versions)
        window = timedelta(hours=self.policy.window_hours)
        scores = await self.store.scores(now - window, now, **self.versions)
        known = anchored(pins, scores, self.policy, now=now, **self.versions)
        if scores and not known.drifted:
            return known
        # Where a drift began, or the last round was, lies further back, and that is many times as much to read.
        pins, scores = await self.scores(now)
        return anchored(pins, scores, self.policy, now=now, **self.versions)

    async def drift(
        self, dimension: str, *, judge_version: str, rubric_version: str, now: datetime
    ) -> Shift | None:
        """Return by how much the judge has drifted on a dimension, None where it has not; raises StoreUnavailable."""
        if (judge_version, rubric_version) != (self.judge.version, self.rubric_version):
            return None
        known = await self.read(now)
        return known.shifts[dimension] if dimension in known.drifted else None


@dataclass(frozen=True)
class Speaking:
    """The judges whose series speak, and where: their failures tell whether quality may still be told of."""

    windows: WindowStore
    judge_versions: Collection[str]
    environments: Collection[Environment]

    async def failures(self, judge_version: str, start: datetime, end: datetime) -> Failures | None:
        """Return whether a judge's failures have to do with what it is asked; None if it has no say in quality."""
        if judge_version not in self.judge_versions:
            return None
        scopes = [
            scope
            for scope in await self.windows.scopes()
            if scope.judge_version == judge_version
            and scope.target is TargetKind.CONVERSATION
            and scope.environment in self.environments
        ]
        for scope in scopes:
            counts = window(await self.windows.buckets(scope, start, end), start, end).counts
            if failures_depend(counts, among=len(scopes)):
                return Failures.CONCENTRATED
        return Failures.SPREAD


@dataclass(frozen=True)
class AnchorShifts:
    """By how much a judge moved since a baseline was taken: what a detector takes off before it speaks."""

    store: AnchorReader
    policy: AnchorPolicy

    async def shifts(
        self, *, judge_version: str, rubric_version: str, since: datetime, now: datetime
    ) -> Mapping[str, Shift]:
        """Return the shift of each dimension from the window that ends at `since` to one that ends at `now`.

        Of the long window, which sees a slow drift, and the recent one, which sees a sudden drift, the one that
        excuses more. Where no score of that time is kept, the pinned ones stand for it. Nothing where too few
        anchors tell; raises StoreUnavailable.
        """
        versions: Versions = {"judge_version": judge_version, "rubric_version": rubric_version}
        window = timedelta(hours=self.policy.window_hours)
        after = await self.store.scores(max(since, now - window), now, **versions)
        recent = [one for one in after if one.at >= now - self._recent]
        found: dict[str, Shift] = {}
        for scores in (after, recent):
            for name, shift in (await self._moved(versions, since, scores)).items():
                found[name] = min(found.get(name, shift), shift, key=excuse)
        return found

    async def since_onset(
        self, *, judge_version: str, rubric_version: str, since: datetime, onset: datetime, now: datetime
    ) -> Mapping[str, Shift] | None:
        """Return the shift of each dimension from the window that ends at `since` to the time from an onset to `now`.

        None where anchors are judged these hours, but since the onset too few yet: that is a matter of a round. One
        that does not come in the hours that count as recent is not waited for. Raises StoreUnavailable.
        """
        versions: Versions = {"judge_version": judge_version, "rubric_version": rubric_version}
        lately = await self.store.scores(min(onset, now - self._recent), now, **versions)
        found = await self._moved(versions, since, [one for one in lately if one.at >= onset])
        return None if lately and not found and now - onset < self._recent else found

    @property
    def _recent(self) -> timedelta:
        return timedelta(hours=self.policy.recent_hours)

    async def _moved(
        self, versions: Versions, since: datetime, scores: Sequence[AnchorScore]
    ) -> dict[str, Shift]:
        """Return the shift to these scores of each dimension that enough anchors tell of."""
        window = timedelta(hours=self.policy.window_hours)
        pins = await self.store.pins(**versions)
        before = [
            *(one for one in pins.values() if since - window <= one.at < since),
            *await self.store.scores(since - window, since, **versions),
        ]
        shifts = shift_between(before, scores) if before else anchor_shift(pins, scores)
        return {name: shift for name, shift in shifts.items() if shift.n >= self.policy.min_anchors}


async def evaluate_judges(
    health: HealthStore,
    alerts: AlertStore,
    policy: HealthPolicy,
    *,
    now: datetime,
    speaking: Speaking | None = None,
) -> tuple[Transition, ...]:
    """Look at every judge that spoke in the last hours, and at those that did not while their alerts are open."""
    findings = await findings_of(health, policy, now=now, speaking=speaking)
    known = {finding.fingerprint for finding in findings}
    silent = [
        alert
        for alert in await alerts.all(OPEN)
        if alert.kind is FindingKind.JUDGE and "check" not in alert.labels and alert.fingerprint not in known
    ]
    lately = await health.read(now - SILENT, now) if silent else {}
    asked = {tuple(name.split("|", 2)[:2]) for name in lately}
    for alert in silent:
        gone = bool(asked) and (alert.labels["judge"], alert.labels["stage"]) not in asked
        findings.append(silent_finding(alert.labels, now=now, gone=gone))
    return await _written(alerts, findings, now)


async def evaluate_drift(
    live: LiveAnchors | None, alerts: AlertStore, *, now: datetime
) -> tuple[Transition, ...]:
    """Look at the live judge's anchors and write what changes; without them, or their judge, a drift is over."""
    findings = [drift_finding(await live.read(now), live.judge, live.policy, now=now)] if live else []
    fingerprints = {finding.fingerprint for finding in findings}
    for alert in await alerts.all(OPEN):
        of_drift = alert.kind is FindingKind.JUDGE and alert.labels.get("check") == CHECK
        if of_drift and alert.fingerprint not in fingerprints:
            findings.append(over(alert.labels, now=now))
    return await _written(alerts, findings, now)


async def _written(alerts: AlertStore, findings: Sequence[Finding], now: datetime) -> tuple[Transition, ...]:
    opened = {alert.fingerprint for alert in await alerts.all(OPEN) if alert.kind is FindingKind.JUDGE}
    transitions = []
    for finding in findings:
        if finding.fingerprint not in opened and finding.outcome is not Outcome.FAIL:
            continue
        alert = await alerts.get(finding.fingerprint)
        transition = advance(alert, finding, now=now, persistence=AT_ONCE)
        if alert is not None and now >= alert.failed_at:
            transition = _told_of_failures(alert, transition, finding, now)
        if transition is not None and await alerts.commit(transition):
            transitions.append(transition)
    return tuple(transitions)


def _told_of_failures(
    alert: Alert, transition: Transition | None, finding: Finding, now: datetime
) -> Transition | None:
    """Keep what an alert says of its judge's failures up to date: by that it mutes, and only while it is seen."""
    after = transition.alert if transition else alert
    if after.state is not AlertState.FIRING or after.finding.failures is finding.failures:
        return transition
    same = Finding.model_validate(dict(after.finding) | {"failures": finding.failures})
    if transition is None:
        said = f"its failures are {finding.failures}" if finding.failures else "no failures are seen now"
        return changed(after, now, said, notify=False, finding=same)
    told = Alert.model_validate(dict(after) | {"finding": same})
    return Transition.model_validate(dict(transition) | {"alert": told})


async def findings_of(
    health: HealthStore, policy: HealthPolicy, *, now: datetime, speaking: Speaking | None = None
) -> list[Finding]:
    """Return one finding for each judge that spoke; one on trial is shown, and wakes nobody."""
    start = hour_of(now - timedelta(hours=policy.hours))
    counters = await health.read(start, now)
    found = []
    for one in (health_of(name, counts) for name, counts in counters.items()):
        if one.stage == SHADOW:
            continue
        finding = health_finding(one, policy, now=now)
        if speaking is not None and finding.outcome is Outcome.FAIL:
            failures = await speaking.failures(one.judge_version, start, now)
            finding = health_finding(one, policy, now=now, failures=failures)
        found.append(finding)
    return found
