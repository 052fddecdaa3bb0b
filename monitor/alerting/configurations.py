"""What served and what was evaluated in, transitions of their alerts out. Doing it twice changes nothing."""

from datetime import datetime, timedelta

from monitor.alerting.alert import OPEN, AlertState, Transition
from monitor.alerting.gathering import Background, with_changes
from monitor.alerting.life import advance
from monitor.alerting.store import AlertStore
from monitor.detection.configurations import configuration_findings
from monitor.detection.finding import FindingKind, Persistence
from monitor.detection.gates import GatePolicy
from monitor.detection.registry import ConfigurationStore

AT_ONCE = Persistence(for_minutes=0, clear_minutes=0)
"""What is counted over hours has lasted, and what was not seen for hours is gone."""


async def evaluate_configurations(
    store: ConfigurationStore,
    alerts: AlertStore,
    policy: GatePolicy,
    *,
    now: datetime,
    background: Background = Background(),
) -> tuple[Transition, ...]:
    """Look at what served in the last hours and write what changes; nothing is read of it without a registry."""
    opened = [alert for alert in await alerts.all(OPEN) if alert.kind is FindingKind.CONFIGURATION]
    registered = await store.registered()
    if not registered and not opened:
        return ()
    wanted = policy.configurations
    findings = configuration_findings(
        await store.served(now - timedelta(hours=wanted.hours), now),
        await store.served(now - timedelta(hours=wanted.gone_hours), now) if opened else {},
        registered,
        wanted,
        environments=policy.environments,
        opened=[alert.labels for alert in opened],
        now=now,
    )
    transitions = []
    for finding in findings:
        alert = await alerts.get(finding.fingerprint)
        transition = advance(alert, finding, now=now, persistence=AT_ONCE)
        if transition is None:
            continue
        if transition.notify and transition.alert.state is AlertState.FIRING:
            transition = await with_changes(background, transition)
        # A lost race is no loss: the other leader saw the same hours.
        if await alerts.commit(transition):
            transitions.append(transition)
    return tuple(transitions)
