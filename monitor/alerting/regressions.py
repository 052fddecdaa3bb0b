"""Windows and baselines in, committed transitions of sustained changes out. Doing it twice changes nothing.

An alert is the whole state of its series: whether it fires, since when, against which baseline, and when it last
ended, from where evidence counts anew. All else is computed from the buckets each time.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import get_args

from monitor.alerting.alert import Alert, AlertState, Transition, changed
from monitor.alerting.gathering import Background, with_changes, with_gate_evidence
from monitor.alerting.life import ended, fired, opened
from monitor.alerting.observing import Observed
from monitor.alerting.signals import SignalReader
from monitor.alerting.store import AlertStore
from monitor.alerting.unwatched import change_unwatched
from monitor.alerting.vouching import is_vouched_for, shifts_of
from monitor.detection.baseline import Baseline
from monitor.detection.census import CENSUS
from monitor.detection.counts import SeriesKey
from monitor.detection.finding import Finding, FindingKind, Severity
from monitor.detection.gates import GatePolicy
from monitor.detection.judge_health import failures_depend
from monitor.detection.multiplicity import Incident, incidents
from monitor.detection.pinning import BaselineStore
from monitor.detection.policy import DetectionPolicy
from monitor.detection.sequential import Reading, SequentialDetector, excuse
from monitor.detection.settling import AwaitedStore, recent_begins, unsettled_from
from monitor.detection.sustained import SUSTAINED, over_finding, sustained_finding
from monitor.sampling.census import CensusStore
from monitor.windows.bucket import CRITICAL, OVERALL, Scope
from monitor.windows.policy import ConfigurationKey, StratumKey, WindowPolicy
from monitor.windows.store import WindowStore

_CAUSE_SHARE = 0.7
"""Of the evidence of all traffic: a part with so much of it is what fell."""


class Detection:
    """The sequential detectors of all scopes that have a baseline."""

    def __init__(
        self,
        baselines: BaselineStore,
        policy: DetectionPolicy,
        windows: WindowPolicy,
        *,
        awaited: AwaitedStore | None = None,
        census: CensusStore | None = None,
        census_strata: Sequence[str] = (),
    ) -> None:
        """Take what is normal, what the judge has still to answer, and the census."""
        self._census_strata = census_strata
        self._awaited = awaited
        self._baselines = baselines
        self._policy = policy
        self._windows = windows
        self._detectors: dict[str, SequentialDetector] = {}
        self._signals = SignalReader(policy, census, census_strata)

    @property
    def policy(self) -> DetectionPolicy:
        """Return the configuration."""
        return self._policy

    async def evaluate(
        self,
        windows: WindowStore,
        alerts: AlertStore,
        gates: GatePolicy,
        observed: Observed,
        *,
        background: Background,
        open_alerts: Mapping[str, Alert],
        now: datetime,
        share_of_budget: float = 1.0,
    ) -> list[Transition]:
        """Read every series of one assistant and write what changes; nothing without a baseline."""
        pinned = await self._baselines.current(observed.scope.id)
        if pinned is None:
            return []
        baseline = pinned.baseline
        mine = [one for one in open_alerts.values() if observed.owns(one) and one.state is AlertState.FIRING]
        firing = {_key(alert): alert for alert in mine if alert.kind in SUSTAINED}
        shifts = await shifts_of(background, observed.scope, baseline, now)
        ended_before: dict[SeriesKey, Alert] = {}
        readings: dict[SeriesKey, Reading] = {}
        for detector, end in (
            await self._filled(windows, observed.scope, baseline, now),
            await self._signals.read(observed.scope, baseline, now),
        ):
            told_before, found_there = await _read(
                partial(detector.read, baseline, end=end, shifts=shifts, share_of_budget=share_of_budget),
                alerts,
                observed,
                {key: one for key, one in firing.items() if (key[0] in CENSUS) is detector.counts_signals},
            )
            ended_before |= told_before
            readings |= found_there
        found = _ends(firing, readings, observed, now)
        unread = (
            change_unwatched(firing[key], baseline, self._policy, now=now) for key in firing.keys() - readings
        )
        found += [transition for transition in unread if transition is not None]
        over = {one.alert.fingerprint for one in found}
        held = _is_held(observed, gates)
        for incident in _incidents(readings, firing):
            key, reading = incident.series, readings[incident.series]
            alert = firing.get(key) or ended_before.get(key)
            is_over = alert is not None and alert.fingerprint in over
            waits = held and key not in firing and key[0] not in CENSUS
            excused = excuse(shifts.get(key[0]))
            if not reading.speaks or is_over or waits:
                continue
            vouched = key in firing or await is_vouched_for(
                reading,
                background,
                observed.scope,
                baseline,
                policy=self._policy.baseline,
                excused=excused,
                now=now,
            )
            if not vouched:
                continue
            finding = sustained_finding(
                reading,
                scope=observed.scope,
                baseline=baseline,
                severity=self._severity(reading, firing, mine),
                strata=self._census_strata if key[0] in CENSUS else self._windows.strata,
                excused=excused,
                explained_by=[segment for _, segment in incident.explained_by],
            )
            transition = advance_sustained(alert, finding, now=now)
            if transition is not None:
                found.append(transition)
        committed = []
        for transition in found:
            told = transition
            if transition.alert.state is AlertState.FIRING:
                told = await self._with_evidence(windows, observed, transition, gates, background)
            # A lost race is no loss: the other leader read the same series.
            if await alerts.commit(told):
                committed.append(told)
        return committed

    async def _with_evidence(
        self,
        windows: WindowStore,
        observed: Observed,
        transition: Transition,
        gates: GatePolicy,
        background: Background,
    ) -> Transition:
        if transition.alert.kind is FindingKind.SIGNAL:
            return await with_changes(background, transition)
        return await with_gate_evidence(
            windows,
            observed.scope,
            observed.window,
            transition,
            policy=gates,
            background=background,
        )

    async def _filled(
        self, windows: WindowStore, scope: Scope, baseline: Baseline, now: datetime
    ) -> tuple[SequentialDetector, datetime]:
        """Return the detector with all that is kept, and the end of what may be believed."""
        policy, minutes = self._policy, self._windows.bucket_minutes
        detector = self._detectors.get(scope.id)
        if detector is None:
            detector = self._detectors[scope.id] = SequentialDetector(policy, minutes)
        start = max(now - policy.window, min(baseline.end, now))
        buckets = await windows.buckets(scope, start, now)
        detector.update(buckets, start=start)
        if self._awaited is None:
            return detector, now
        begins = recent_begins(now, bucket_minutes=minutes, bound_minutes=policy.settle_max_minutes)
        waiting = await self._awaited.waiting(begins)
        return detector, unsettled_from(buckets, waiting, scope=scope, end=now, share=policy.settled_share)

    def _severity(
        self, reading: Reading, firing: Mapping[SeriesKey, Alert], mine: Collection[Alert]
    ) -> Severity:
        dimension, segment = reading.key
        wanted = Severity.PAGE if reading.pages else Severity.TICKET
        if dimension in CENSUS:
            return self._policy.signal_severity
        if dimension == CRITICAL:
            wanted = self._policy.critical_severity
        overall = firing.get((dimension, OVERALL))
        if segment != OVERALL and overall is not None and overall.severity.weight < wanted.weight:
            return overall.severity
        # A person who was woken for a gate of this dimension is not woken for its cause as well.
        woken = any(
            alert.severity is Severity.PAGE
            and alert.kind in {FindingKind.GATE, FindingKind.SLO}
            and alert.labels["dimension"] == dimension
            and alert.labels["segment"] in {OVERALL, segment}
            for alert in mine
        )
        return Severity.TICKET if woken and wanted is Severity.PAGE else wanted


def advance_sustained(alert: Alert | None, finding: Finding, *, now: datetime) -> Transition | None:
    """Return what a series that speaks changes: it fires once, and is told again only when it grows to a page."""
    if alert is not None and now < max(alert.failed_at, alert.resolved_at or alert.failed_at):
        return None  # An evaluation that lags behind another leader's has nothing to say.
    if alert is None or alert.state is not AlertState.FIRING:
        return fired(opened(alert, finding, now, since=finding.since), finding, now)
    if finding.severity.weight <= alert.severity.weight:
        return None
    return changed(
        alert,
        now,
        f"grew to a {finding.severity}: {finding.reason}",
        notify=True,
        severity=finding.severity,
        finding=finding,
        since=finding.since,
        failed_at=now,
    )


async def _read(
    read: Callable[[Mapping[SeriesKey, datetime]], dict[SeriesKey, Reading]],
    alerts: AlertStore,
    observed: Observed,
    firing: Mapping[SeriesKey, Alert],
) -> tuple[dict[SeriesKey, Alert], dict[SeriesKey, Reading]]:
    """Return the ended alerts by series, and all readings, evidence counted from where each may begin.

    Ended alerts are read only where a series speaks: what it had before an end could only make it speak too much.
    """
    since = {key: _begun(alert) for key, alert in firing.items()}
    readings = read(since)
    speaking = [
        key for key, one in readings.items() if one.speaks and not {key, (key[0], OVERALL)} & set(firing)
    ]
    if not speaking:
        return {}, readings
    ended_before = {
        _key(alert): alert
        for alert in await alerts.all((AlertState.RESOLVED,))
        if alert.kind in SUSTAINED and observed.owns(alert)
    }
    anew = {key: at for key in readings if key not in firing and (at := _anew(key, ended_before))}
    return ended_before, read(since | anew) if anew else readings


def _anew(key: SeriesKey, ended_before: Mapping[SeriesKey, Alert]) -> datetime | None:
    """Return from when the evidence of a series counts anew: the last end of an alert that told of it too.

    That of all traffic tells of each segment, that of a segment of all traffic and of what else it was served
    with; only another value of the same key (another intent) is a thing of its own.
    """
    dimension, segment = key
    name = segment.partition("=")[0]
    times = [
        alert.resolved_at
        for (other, other_segment), alert in ended_before.items()
        if other == dimension
        and alert.resolved_at is not None
        and (other_segment == segment or other_segment.partition("=")[0] != name)
    ]
    return max(times, default=None)


def _ends(
    firing: Mapping[SeriesKey, Alert],
    readings: Mapping[SeriesKey, Reading],
    observed: Observed,
    now: datetime,
) -> list[Transition]:
    found = []
    for key, alert in firing.items():
        reading = readings.get(key)
        if reading is None or now < alert.failed_at:
            continue
        reason = _end_of(key, reading, readings, observed)
        if reason is not None:
            found.append(ended(alert, over_finding(alert.finding, reason=reason), now, reason))
    return found


def _end_of(
    key: SeriesKey, reading: Reading, readings: Mapping[SeriesKey, Reading], observed: Observed
) -> str | None:
    if reading.recovered and reading.judged and not _cause_is_down(key, readings):
        return f"back to what the baseline calls normal (n={reading.judged} in the newest stretch)"
    whole = readings.get((key[0], OVERALL))
    served = observed.stats.get(key)
    is_configuration = key[1].partition("=")[0] in get_args(ConfigurationKey)
    if is_configuration and served is None and not reading.judged and whole is not None and whole.judged:
        return f"{key[1]} serves nobody; {whole.judged} others were judged"
    return None


def _cause_is_down(key: SeriesKey, readings: Mapping[SeriesKey, Reading]) -> bool:
    """Tell whether the part that made nearly all of a fall of all traffic is not back: at night nobody may ask for it.

    A prompt or a model may be gone for good; what people ask about comes again.
    """
    return key[1] == OVERALL and any(
        one.evidence >= max(one.threshold, _CAUSE_SHARE * readings[key].evidence) and not one.recovered
        for (dimension, segment), one in readings.items()
        if dimension == key[0] and segment.partition("=")[0] in get_args(StratumKey)
    )


def _incidents(
    readings: Mapping[SeriesKey, Reading], firing: Mapping[SeriesKey, Alert]
) -> tuple[Incident, ...]:
    """Return the incidents; what fires already goes on leading, so that no cause is told under two names."""
    speaks = {key for key, one in readings.items() if one.speaks or key in firing}
    most = max((one.evidence for one in readings.values()), default=0.0)
    ranked = {key: readings[key].evidence + (most + 1 if key in firing else 0) for key in speaks}
    return incidents(speaks, ranked)


def _is_held(observed: Observed, gates: GatePolicy) -> bool:
    """Tell whether so much could not be judged that what could be is no picture of all."""
    critical = observed.stats.get((CRITICAL, OVERALL))
    coverage = critical.coverage if critical is not None else None
    low = coverage is not None and coverage < gates.coverage_min
    return low and not failures_depend(observed.window.counts)


def _begun(alert: Alert) -> datetime:
    known = alert.finding.sustained
    return known.onset_low if known is not None else alert.since


def _key(alert: Alert) -> SeriesKey:
    return alert.labels["dimension"], alert.labels["segment"]
