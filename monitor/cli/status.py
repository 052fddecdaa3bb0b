"""`monitor status`: what became of every event, how far each stage is behind, who judges, what is open."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table

from agents.services import build_judge, wall_now
from monitor.adapters.kafka_admin import BrokerUnavailable
from monitor.alerting.alert import OPEN, Alert
from monitor.alerting.budgets import Budget
from monitor.alerting.render import title
from monitor.cli.asking import JsonOption, Looks, NameOption, broker, latest, looking, moment, printed, screen
from monitor.cli.baseline import baseline_lines
from monitor.cli.last_day import LastDay, last_day, lines_of
from monitor.cli.standing import SignalLine, budget_lines, census_of, census_table
from monitor.detection.judge_drift import Anchored
from monitor.funnel import OPEN as OPEN_OUTCOMES
from monitor.funnel import Funnel
from monitor.intake.event import Moment, Value
from monitor.judging.calibration import UNCALIBRATED, Calibration
from monitor.judging.judgment import JudgeIdentity
from monitor.judging.shadow import SHADOW
from monitor.policy import ConfigError, Policy
from monitor.settings import Settings
from monitor.topics import CHANGE_EVENTS, JUDGE_REQUESTS, JUDGMENTS, SAMPLED_EVENTS, SOURCES

STAGES = {
    "sample": SOURCES,
    "assemble": (SAMPLED_EVENTS,),
    "judge": (JUDGE_REQUESTS,),
    "aggregate": (JUDGMENTS,),
    "changes": (CHANGE_EVENTS,),
}
"""The topics that each stage reads; its consumer group is the namespace and its name."""
MEANINGS = {
    "waiting": "kept; its turn or conversation is not complete yet",
    "queued": "its judgment has been asked for",
    "judged": "has a judgment",
    "failed": "the judge could not judge it; `monitor dead-letters list` says why",
    "thinned": "left out near the end of judge.budget by a known chance; what was kept stands for it",
    "expired": "waited for a judge for longer than judge.max_age_hours",
    "applied": "an end, feedback, or a turn without an answer; taken into account",
    "not_yet_judged": "a summary; kept, and its judging is still to come",
    "duplicate": "came before under the same event id",
    "invalid": "was kept, but is no valid event; in the dead letters",
    "invalid_at_door": "no valid event; in the dead letters",
    "undecodable": "no JSON; in the dead letters",
    "oversize": "larger than intake.max_event_bytes; in the dead letters",
}


class OpenAlert(Value):
    """One open alert in a line."""

    fingerprint: str
    state: str
    severity: str
    title: str
    since: Moment


class Status(Value):
    """What `monitor status --json` prints."""

    namespace: str
    funnel: Funnel
    received: int
    open: int
    lag: dict[str, int] | None
    """Messages by stage that its group has not committed; None when Kafka was out of reach."""
    kafka_fault: str | None
    judge: JudgeIdentity | None
    judge_fault: str | None
    calibration: Calibration | None = None
    """What people's labels said of this judge under this rubric; None for an uncalibrated judge."""
    anchors: Anchored | None = None
    """What the anchors say of this judge's drift; None where none are judged."""
    last_day: LastDay
    census: tuple[SignalLine, ...] = ()
    """Signals of all traffic, judged or not."""
    budgets: tuple[Budget, ...] = ()
    """How the objectives of `slo` in gates.yaml stand; none where none is set."""
    series: int
    evaluated_through: Moment | None
    stream_time: Moment | None
    alerts: tuple[OpenAlert, ...]
    notifications_waiting: int
    baselines: tuple[str, ...] = ()
    """What is normal, a line for each scope whose series speak; or that nobody pinned it."""


def status(name: NameOption = None, as_json: JsonOption = False) -> None:
    """Show what became of all events, one outcome each, and how far each stage is behind.

    Works without Kafka, and says so. An embedded broker may report less lag than there is.
    """
    with looking(name) as (settings, policy, looks):
        found = status_of(settings, policy, looks)
    if as_json:
        printed(found.model_dump_json(indent=2))
    else:
        show(found, screen())


def status_of(settings: Settings, policy: Policy, looks: Looks) -> Status:
    """Ask the stores, the broker and the configuration."""
    trial = {SHADOW: STAGES["judge"]} if policy.monitor.judge.shadow else {}
    lag, kafka_fault = _lag(settings, {**STAGES, **trial})
    judge, judge_fault = who_judges(settings, policy)
    funnel = looks.funnel()
    now = latest(policy, looks)
    opened = sorted((alert for alert in looks.alerts() if alert.state in OPEN), key=lambda one: one.since)
    return Status(
        namespace=settings.namespace,
        funnel=funnel,
        received=funnel.received,
        open=funnel.open,
        lag=lag,
        kafka_fault=kafka_fault,
        judge=judge,
        judge_fault=judge_fault,
        calibration=looks.calibration(judge.version, policy.rubric.version) if judge else None,
        anchors=_anchored(policy, looks, judge),
        last_day=last_day(policy, looks, first_judge(settings, policy)),
        census=census_of(looks, policy.sampling.strata, now),
        budgets=looks.budgets(policy.gates, judge.version if judge else None, now),
        series=len(looks.scopes()),
        evaluated_through=looks.evaluated_through(),
        stream_time=looks.newest(),
        alerts=tuple(_line(alert) for alert in opened),
        notifications_waiting=looks.waiting_notifications(),
        baselines=baseline_lines(looks, policy, judge.version) if judge else (),
    )


def who_judges(settings: Settings, policy: Policy) -> tuple[JudgeIdentity | None, str | None]:
    """Return the judge that a worker would start with, or why it would not start."""
    try:
        judge = build_judge(settings, policy)
    except ConfigError as error:
        return None, str(error)
    asyncio.run(judge.close())
    return judge.identity, None


def first_judge(settings: Settings, policy: Policy) -> str | None:
    """Return the version of a cascade's first stage; None where one judge judges alone, or cannot."""
    if policy.monitor.judge.cascade.model is None:
        return None
    judge, _ = who_judges(settings, policy)
    return judge.version if judge else None


def funnel_table(funnel: Funnel) -> Table:
    """Return the outcomes of all events, the open ones first."""
    table = Table(
        title=f"{funnel.received} events received, {funnel.open} of them open", title_justify="left"
    )
    table.add_column("outcome")
    table.add_column("events", justify="right")
    table.add_column("share", justify="right")
    table.add_column("means")
    ordered = sorted(funnel.events.items(), key=lambda one: (one[0] not in OPEN_OUTCOMES, -one[1], one[0]))
    for outcome, count in ordered:
        table.add_row(outcome, f"{count}", f"{count / funnel.received:.1%}", meaning(outcome))
    return table


def _nothing(namespace: str) -> str:
    return f"No event was received in the namespace {namespace}; another one: --name or MONITOR_NAMESPACE"


def meaning(outcome: str) -> str:
    """Return an outcome in words."""
    kind, _, rule = outcome.partition(":")
    if kind == "sampled_out":
        return f"not in the sample, by the rule {rule}"
    return MEANINGS.get(outcome, "")


def show(found: Status, console: Console) -> None:
    """Print a status for people."""
    console.print(funnel_table(found.funnel) if found.received else _nothing(found.namespace))
    if found.funnel.judgments:
        console.print("Judgments: " + _counts(found.funnel.judgments))
    if found.funnel.closed:
        console.print("Conversations over, by reason: " + _counts(found.funnel.closed))
    if found.lag is None:
        console.print(f"Lag: unknown. {found.kafka_fault}", soft_wrap=True, markup=False)
    else:
        console.print("Lag, messages: " + _counts(found.lag))
    if found.judge is None:
        console.print(
            f"Judge: none, a worker would not start. {found.judge_fault}", soft_wrap=True, markup=False
        )
    else:
        one = found.judge
        console.print(
            f"Judge: {one.backend}, model {one.model_asked}, stage {one.stage}, version {one.version}"
        )
    _show_calibration(found, console)
    if found.anchors is not None:
        reason = found.anchors.reason if found.anchors.anchors else "none is scored yet"
        console.print(f"Anchors: {found.anchors.anchors} pinned; {reason}", soft_wrap=True, markup=False)
    if found.census:
        console.print(census_table(found.census))
    for line in budget_lines(found.budgets):
        console.print(f"Budget: {line}", soft_wrap=True, markup=False)
    console.print(f"Windows: {found.series} series, evaluated through {moment(found.evaluated_through)}")
    for line in (*(f"Baseline: {one}" for one in found.baselines), *lines_of(found.last_day)):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if found.stream_time:
        console.print(f"Stream time: {moment(found.stream_time)}")
    _show_alerts(found, console)


def _anchored(policy: Policy, looks: Looks, judge: JudgeIdentity | None) -> Anchored | None:
    if judge is None or policy.monitor.judge.anchors.every_minutes is None:
        return None
    return looks.anchored(looks.live_anchors(judge), looks.newest() or wall_now())


def _show_calibration(found: Status, console: Console) -> None:
    if found.judge is None:
        return
    known = found.calibration
    if known is None or not known.dimensions:
        console.print(f"Calibration: the judge {UNCALIBRATED}")
    else:
        told = f"{known.cases} cases, {known.raters} raters, {moment(known.calibrated_at)}"
        console.print(f"Calibration: {told}")
    if known is None:
        return
    said = [(one.dimension, one.words) for one in known.dimensions]
    for dimension, words in said + [(one.dimension, one.words) for one in known.decided]:
        console.print(f"  {dimension}: {words}", soft_wrap=True)


def _show_alerts(found: Status, console: Console) -> None:
    console.print(f"Open alerts: {len(found.alerts)}; notifications waiting: {found.notifications_waiting}")
    for alert in found.alerts:
        line = f"  {alert.fingerprint}  {alert.state}  {alert.severity}  since {moment(alert.since)}  {alert.title}"
        console.print(line, soft_wrap=True, markup=False)


def _lag(settings: Settings, stages: Mapping[str, Sequence[str]]) -> tuple[dict[str, int] | None, str | None]:
    prefix = settings.topic_prefix
    try:
        with broker(settings) as admin:
            return {
                stage: sum(admin.lag(f"{settings.namespace}-{stage}", [prefix + n for n in names]).values())
                for stage, names in stages.items()
            }, None
    except BrokerUnavailable as error:
        return None, str(error)


def _line(alert: Alert) -> OpenAlert:
    since: datetime = alert.since
    return OpenAlert(
        fingerprint=alert.fingerprint,
        state=alert.state,
        severity=alert.severity,
        title=title(alert),
        since=since,
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
