"""Windows and alerts in, committed transitions out. Ports only; doing it twice changes nothing."""

from collections.abc import Collection, Sequence
from datetime import datetime

from monitor.alerting.alert import OPEN, Alert, AlertState, Transition
from monitor.alerting.budgets import slo_findings
from monitor.alerting.criticals import quiet_down, record_critical
from monitor.alerting.gathering import Background, with_critical_evidence, with_gate_evidence
from monitor.alerting.life import advance
from monitor.alerting.observing import Observed, observe
from monitor.alerting.regressions import Detection
from monitor.alerting.store import AlertStore
from monitor.alerting.unwatched import budget_unwatched, gate_unwatched
from monitor.detection.critical import critical_findings
from monitor.detection.finding import Finding, FindingKind, Outcome
from monitor.detection.gates import GatePolicy, evaluate_gates
from monitor.detection.judge_health import failures_depend
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import CRITICAL, OVERALL
from monitor.windows.store import WindowStore

ATTEMPTS = 5
"""Tries to win a compare-and-set against another writer before the hop is asked to come again."""


class Contended(Exception):  # noqa: N818 - it states a condition
    """Others kept writing the same alert; what was asked may be asked again."""


async def evaluate(
    windows: WindowStore,
    alerts: AlertStore,
    policy: GatePolicy,
    *,
    now: datetime,
    judge_versions: Collection[str] | None = None,
    background: Background = Background(),
    detection: Detection | None = None,
) -> tuple[Transition, ...]:
    """Judge every window that ends now, and every series that has a baseline, and write what changes.

    `now` is a bucket's boundary; for `judge_versions` see `observe`.
    """
    opened = {alert.fingerprint: alert for alert in await alerts.all(OPEN)}
    policy = policy.with_exceptions(await alerts.exceptions())
    transitions: list[Transition] = []
    assistants = await observe(windows, policy, now, judge_versions)
    for observed in assistants:
        transitions += await _evaluate_one(
            windows, alerts, policy, observed, background=background, opened=opened, now=now
        )
    if detection is not None:
        # Gates first: what they page for is not paged for a second time.
        opened |= {one.alert.fingerprint: one.alert for one in transitions}
        for observed in assistants:
            transitions += await detection.evaluate(
                windows,
                alerts,
                policy,
                observed,
                background=background,
                open_alerts=opened,
                now=now,
                share_of_budget=1 / len(assistants),
            )
    return tuple(transitions)


async def record_criticals(
    alerts: AlertStore,
    records: Sequence[Judgment | JudgeFailure],
    *,
    policy: GatePolicy,
    now: datetime,
    background: Background = Background(),
) -> tuple[Transition, ...]:
    """Enter the critical failures of judgments; raise Contended when others keep writing the same alert."""
    groups: dict[str, list[Finding]] = {}
    judged_by: dict[str, Judgment] = {}
    for record in records:
        if isinstance(record, Judgment):
            for finding in critical_findings(record, policy.critical, policy.environments):
                groups.setdefault(finding.fingerprint, []).append(finding)
                judged_by[finding.fingerprint] = record
    transitions = []
    for fingerprint, findings in groups.items():
        for _ in range(ATTEMPTS):
            alert = await alerts.get(fingerprint)
            transition = record_critical(alert, findings, now=now, policy=policy.critical)
            if transition is None:
                break
            judgment = judged_by[fingerprint]
            transition = await with_critical_evidence(
                background,
                transition,
                judge_version=judgment.judge.version,
                rubric_version=judgment.rubric_version,
            )
            if await alerts.commit(transition):
                transitions.append(transition)
                break
        else:
            raise Contended(f"critical alert {fingerprint}")
    return tuple(transitions)


async def _evaluate_one(
    windows: WindowStore,
    alerts: AlertStore,
    policy: GatePolicy,
    observed: Observed,
    *,
    background: Background,
    opened: dict[str, Alert],
    now: datetime,
) -> list[Transition]:
    mine = [alert for alert in opened.values() if observed.owns(alert)]
    asked = {(a.labels["dimension"], a.labels["segment"]) for a in mine if a.kind is FindingKind.GATE}
    committed = []
    explained: set[str] = set()
    hold = not failures_depend(observed.window.counts)
    gates = evaluate_gates(observed.stats, policy, scope=observed.scope, now=now, asked=asked, hold=hold)
    for finding in (*gates, *await slo_findings(windows, policy, observed.scope, now=now, hold=hold)):
        alert = opened.get(finding.fingerprint)
        if alert is None and finding.outcome is not Outcome.FAIL:
            continue
        if _is_explained(finding, alert, explained):
            continue
        alert = alert or await alerts.get(finding.fingerprint)
        transition = advance(alert, finding, now=now, persistence=policy.persistence_of(finding.kind))
        if transition is not None and transition.notify and transition.alert.state is AlertState.FIRING:
            transition = await with_gate_evidence(
                windows,
                observed.scope,
                observed.window,
                transition,
                policy=policy,
                background=background,
            )
        # A lost race is no loss: the other leader saw the same window.
        if transition is not None and await alerts.commit(transition):
            committed.append(transition)
        after = transition.alert if transition else alert
        is_overall = finding.kind is FindingKind.GATE and finding.labels["segment"] == OVERALL
        if is_overall and after and after.state is AlertState.FIRING:
            explained.add(finding.labels["dimension"])
    for alert in mine:
        transition = _outlived(observed, alert, policy, now)
        if transition is not None and await alerts.commit(transition):
            committed.append(transition)
    return committed


def _outlived(observed: Observed, alert: Alert, policy: GatePolicy, now: datetime) -> Transition | None:
    """Return what changes an alert that no finding speaks for now."""
    if alert.kind is FindingKind.GATE:
        return gate_unwatched(alert, policy, now=now)
    if alert.kind is FindingKind.SLO:
        return budget_unwatched(alert, policy.slo, now=now)
    if alert.kind is FindingKind.CRITICAL:
        return quiet_down(alert, judged=_judged(observed, alert), now=now, policy=policy.critical)
    return None


def _is_explained(finding: Finding, alert: Alert | None, explained: set[str]) -> bool:
    """Tell whether a failing segment is part of an overall alert that fires: evidence, not an alert."""
    if finding.outcome is not Outcome.FAIL or finding.labels["segment"] == OVERALL:
        return False
    fires = alert is not None and alert.state is AlertState.FIRING
    return finding.labels["dimension"] in explained and not fires


def _judged(observed: Observed, alert: Alert) -> int:
    """Return the units judged where a critical alert lives: its intent, if that has a series, or all."""
    intent = observed.stats.get((CRITICAL, f"intent={alert.labels['intent']}"))
    overall = observed.stats.get((CRITICAL, OVERALL))
    series = intent or overall
    return series.judged if series else 0
