"""Windows and alerts in, committed transitions out. Ports only; doing it twice changes nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from monitor.alerting.alert import OPEN, Alert, AlertState, Transition
from monitor.alerting.criticals import quiet_down, record_critical
from monitor.alerting.evidence import Evidence, concerns, explain, pick_cases
from monitor.alerting.life import advance
from monitor.alerting.store import AlertStore
from monitor.detection.critical import critical_findings
from monitor.detection.finding import Finding, FindingKind, Outcome
from monitor.detection.gates import GatePolicy, evaluate_gates
from monitor.detection.judge_health import failures_depend
from monitor.judging.calibration import Calibrations, quoted
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import CRITICAL, OVERALL, Scope
from monitor.windows.store import WindowStore
from monitor.windows.window import Window, WindowStats, all_stats, window

ATTEMPTS = 5
"""Tries to win a compare-and-set against another writer before the hop is asked to come again."""


class Contended(Exception):  # noqa: N818 - it states a condition
    """Others kept writing the same alert; what was asked may be asked again."""


@dataclass(frozen=True)
class Observed:
    """One assistant's window, in the one scope that speaks for it."""

    scope: Scope
    window: Window
    stats: Mapping[tuple[str, str], WindowStats]


async def evaluate(
    windows: WindowStore,
    alerts: AlertStore,
    policy: GatePolicy,
    *,
    now: datetime,
    judge_versions: Collection[str] | None = None,
    calibrations: Calibrations | None = None,
) -> tuple[Transition, ...]:
    """Judge every window that ends now and write what changes.

    `now` is a bucket's boundary. `judge_versions` are those whose series speak (the first LLM stage);
    without it the scope with the most units speaks for its assistant.
    """
    opened = {alert.fingerprint: alert for alert in await alerts.all(OPEN)}
    transitions: list[Transition] = []
    for observed in await _observe(windows, policy, now, judge_versions):
        transitions += await _evaluate_one(
            windows, alerts, policy, observed, opened=opened, now=now, calibrations=calibrations
        )
    return tuple(transitions)


async def record_criticals(
    alerts: AlertStore,
    records: Sequence[Judgment | JudgeFailure],
    *,
    policy: GatePolicy,
    now: datetime,
    calibrations: Calibrations | None = None,
) -> tuple[Transition, ...]:
    """Enter the critical failures of judgments; raise Contended when others keep writing the same alert."""
    groups: dict[str, list[Finding]] = {}
    judges: dict[str, Judgment] = {}
    for record in records:
        if isinstance(record, Judgment):
            for finding in critical_findings(record, policy.critical, policy.environments):
                groups.setdefault(finding.fingerprint, []).append(finding)
                judges[finding.fingerprint] = record
    transitions = []
    for fingerprint, findings in groups.items():
        for _ in range(ATTEMPTS):
            alert = await alerts.get(fingerprint)
            transition = record_critical(alert, findings, now=now, policy=policy.critical)
            if transition is None:
                break
            judge = judges[fingerprint]
            transition = await _with_agreement(
                transition, calibrations, judge.judge.version, judge.rubric_version
            )
            if await alerts.commit(transition):
                transitions.append(transition)
                break
        else:
            raise Contended(f"critical alert {fingerprint}")
    return tuple(transitions)


async def _observe(
    windows: WindowStore, policy: GatePolicy, now: datetime, judge_versions: Collection[str] | None
) -> Iterable[Observed]:
    start = now - policy.window
    best: dict[tuple[tuple[str, str], ...], tuple[int, str, Scope, Window]] = {}
    for scope in await windows.scopes():
        if scope.target is not TargetKind.CONVERSATION or scope.environment not in policy.environments:
            continue
        if judge_versions is not None and scope.judge_version not in judge_versions:
            continue
        seen = await _window(windows, scope, start, now)
        candidate = (seen.units, scope.id, scope, seen)
        key = tuple(sorted(_identity(scope).items()))
        if key not in best or candidate[:2] > best[key][:2]:
            best[key] = candidate
    return [Observed(scope, seen, all_stats(seen.counts)) for _, _, scope, seen in best.values()]


async def _evaluate_one(
    windows: WindowStore,
    alerts: AlertStore,
    policy: GatePolicy,
    observed: Observed,
    *,
    opened: dict[str, Alert],
    now: datetime,
    calibrations: Calibrations | None,
) -> list[Transition]:
    mine = [alert for alert in opened.values() if _belongs(alert, observed)]
    asked = {(a.labels["dimension"], a.labels["segment"]) for a in mine if a.kind is FindingKind.GATE}
    committed = []
    explained: set[str] = set()
    hold = not failures_depend(observed.window.counts)
    found = evaluate_gates(observed.stats, policy, scope=observed.scope, now=now, asked=asked, hold=hold)
    for finding in found:
        alert = opened.get(finding.fingerprint)
        if alert is None and finding.outcome is not Outcome.FAIL:
            continue
        if _is_explained(finding, alert, explained):
            continue
        alert = alert or await alerts.get(finding.fingerprint)
        transition = advance(alert, finding, now=now, persistence=policy.persistence)
        if transition is not None and transition.notify and transition.alert.state is AlertState.FIRING:
            transition = await _with_evidence(windows, observed, policy, transition)
            scope = observed.scope
            transition = await _with_agreement(
                transition, calibrations, scope.judge_version, scope.rubric_version
            )
        # A lost race is no loss: the other leader saw the same window.
        if transition is not None and await alerts.commit(transition):
            committed.append(transition)
        after = transition.alert if transition else alert
        if finding.labels["segment"] == OVERALL and after and after.state is AlertState.FIRING:
            explained.add(finding.labels["dimension"])
    for alert in mine:
        if alert.kind is FindingKind.CRITICAL:
            transition = quiet_down(alert, judged=_judged(observed, alert), now=now, policy=policy.critical)
            if transition is not None and await alerts.commit(transition):
                committed.append(transition)
    return committed


def _belongs(alert: Alert, observed: Observed) -> bool:
    identity = _identity(observed.scope)
    return all(alert.labels.get(key) == identity.get(key) for key in ("assistant", "environment", "variant"))


def _is_explained(finding: Finding, alert: Alert | None, explained: set[str]) -> bool:
    """Tell whether a failing segment is part of an overall alert that fires: evidence, not an alert."""
    if finding.outcome is not Outcome.FAIL or finding.labels["segment"] == OVERALL:
        return False
    fires = alert is not None and alert.state is AlertState.FIRING
    return finding.labels["dimension"] in explained and not fires


async def _with_evidence(
    windows: WindowStore, observed: Observed, policy: GatePolicy, transition: Transition
) -> Transition:
    alert = transition.alert
    dimension, segment = alert.labels["dimension"], alert.labels["segment"]
    scope, end = observed.scope, observed.window.end
    recent = await _window(windows, scope, alert.since, end)
    # Before the onset, with a window's distance from it; a young stream has less past to offer.
    earlier = await _window(windows, scope, alert.since - 2 * policy.window, alert.since - policy.window)
    if not earlier.counts:
        earlier = await _window(windows, scope, alert.since - policy.window, alert.since - policy.window / 2)
    wanted = None if dimension == CRITICAL else dimension
    worst = await windows.worst(scope, observed.window.start, end, dimension=wanted)
    evidence = Evidence(
        start=observed.window.start,
        end=end,
        figures=alert.finding.figures,
        changes=explain(recent if recent.counts else observed.window, earlier, dimension),
        cases=pick_cases(case for case in worst if concerns(case, segment)),
    )
    fields = dict(transition) | {"alert": Alert.model_validate(dict(alert) | {"evidence": evidence})}
    return Transition.model_validate(fields)


async def _with_agreement(
    transition: Transition, calibrations: Calibrations | None, judge_version: str, rubric_version: str
) -> Transition:
    """Write into the evidence how far the judge agrees with people; without calibrations nothing is said."""
    alert = transition.alert
    if calibrations is None or alert.evidence is None:
        return transition
    known = await calibrations.get(judge_version=judge_version, rubric_version=rubric_version)
    told = dict(alert.evidence) | {"judge_agreement": quoted(known, alert.labels["dimension"])}
    fields = dict(alert) | {"evidence": Evidence.model_validate(told)}
    return Transition.model_validate(dict(transition) | {"alert": Alert.model_validate(fields)})


async def _window(windows: WindowStore, scope: Scope, start: datetime, end: datetime) -> Window:
    return window(await windows.buckets(scope, start, end), start, end)


def _judged(observed: Observed, alert: Alert) -> int:
    """Return the units judged where a critical alert lives: its intent, if that has a series, or all."""
    intent = observed.stats.get((CRITICAL, f"intent={alert.labels['intent']}"))
    overall = observed.stats.get((CRITICAL, OVERALL))
    series = intent or overall
    return series.judged if series else 0


def _identity(scope: Scope) -> dict[str, str]:
    labels = {"assistant": scope.assistant, "environment": str(scope.environment)}
    return labels | ({"variant": scope.variant} if scope.variant else {})
