"""A group's notification in, what people read out: sentences in the order of their questions, for every renderer."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import NamedTuple, assert_never

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.evidence import Change, Evidence, Point
from monitor.alerting.labels import alertname
from monitor.alerting.links import Links
from monitor.alerting.naming import plain, runbook, title
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.sustained_lines import part_lines, sustained_lines
from monitor.alerting.wording import duration, stamp
from monitor.conversations.conversation import UNKNOWN
from monitor.detection.finding import Figure, FindingKind, Severity
from monitor.windows.bucket import CRITICAL, readable
from monitor.windows.case import Case

FULL_MAX = 5
"""Alerts of a group that are told in full, the gravest; of the others one line each. It keeps a storm readable."""
_SAID_BY = {"answer": "answer", "user": "user", "reference": "document", "tool": "tool"}
HOUR = timedelta(hours=1)
CASES_BESIDE = 3
"""Cases of an alert that is not the first of its message; the first shows all that it keeps."""
_FIGURE = {"mean": "mean", "pass_at_4": "pass@4", "critical_rate": "critical rate"}


class ToldQuote(NamedTuple):
    """A quotation, and who says so; nobody if that is not known."""

    by: str
    text: str

    def marked(self, before: str, after: str) -> str:
        """Return it between quotation marks."""
        return f"{self.by}: {before}{self.text}{after}" if self.by else f"{before}{self.text}{after}"


@dataclass(frozen=True)
class ToldCase:
    """One bad answer, with the command that shows the whole of it."""

    head: str
    reason: str
    quotes: tuple[ToldQuote, ...]
    command: str
    link: str | None = None
    """Where a tool of one's own shows it, if the configuration says where."""


@dataclass(frozen=True)
class Plot:
    """The course of a figure, and what it is measured against."""

    of: str
    points: tuple[Point, ...]
    step: timedelta
    onset: datetime
    limit: float | None


@dataclass(frozen=True)
class ToldAlert:
    """One alert in sentences; no renderer looks behind them."""

    alertname: str
    title: str
    status: Status
    severity: Severity
    reason: str
    changed: tuple[str, ...]
    amount: tuple[str, ...]
    plot: Plot | None
    where: tuple[str, ...]
    cases: tuple[ToldCase, ...]
    agreement: str | None
    runbook: str
    command: str
    fingerprint: str
    cases_left: int = 0
    """Cases that it keeps and that are not told here."""

    @property
    def cases_heading(self) -> str:
        """Return what stands over its cases."""
        total = len(self.cases) + self.cases_left
        return f"Worst cases, {len(self.cases)} of {total}" if self.cases_left else "Worst cases"


@dataclass(frozen=True)
class Message:
    """One notification in sentences."""

    id: str
    title: str
    status: Status
    severity: Severity
    alerts: tuple[ToldAlert, ...]
    others: tuple[str, ...]
    """The titles of those that are not told in full."""
    left_out: tuple[str, ...]
    """What was suppressed meanwhile, and what did not fit."""
    at: datetime


def message_of(notification: GroupNotification, *, links: Links = Links()) -> Message:
    """Return what a notification says."""
    alerts = tuple(
        told(
            one.alert,
            reason=one.alert.finding.reason,
            status=one.status,
            links=links,
            cases_max=CASES_BESIDE if number else None,
        )
        for number, one in enumerate(notification.alerts[:FULL_MAX])
    )
    severities = (one.alert.severity for one in notification.alerts)
    worst = max(severities, key=lambda severity: severity.weight, default=Severity.INFO)
    return Message(
        id=notification.id,
        title=_title(notification, alerts, worst),
        status=notification.status,
        severity=worst,
        alerts=alerts,
        others=tuple(
            plain(f"[{one.status.upper()}] [{one.alert.severity}] {title(one.alert)}")
            for one in notification.alerts[FULL_MAX:]
        ),
        left_out=tuple(_left_out(notification)),
        at=notification.at,
    )


def told(
    alert: Alert, *, reason: str, status: Status, links: Links = Links(), cases_max: int | None = None
) -> ToldAlert:
    """Return one alert in sentences."""
    evidence = alert.evidence
    cases = evidence.cases if evidence else ()
    return ToldAlert(
        alertname=alertname(alert.kind),
        title=plain(title(alert)),
        status=status,
        severity=alert.severity,
        reason=plain(reason),
        changed=tuple(plain(line) for line in _changed(alert)),
        amount=tuple(plain(line) for line in _amount(alert)),
        plot=_plot(alert, evidence),
        where=tuple(plain(line) for line in _wheres(alert)),
        cases=tuple(_case(case, links) for case in cases[:cases_max]),
        agreement=plain(evidence.agreement.statement) if evidence and evidence.agreement else None,
        runbook=links.runbook(runbook(alert)),
        command=f"monitor alerts show {alert.fingerprint}",
        fingerprint=alert.fingerprint,
        cases_left=0 if cases_max is None else max(0, len(cases) - cases_max),
    )


def _title(notification: GroupNotification, alerts: tuple[ToldAlert, ...], worst: Severity) -> str:
    total = notification.firing + notification.resolved or len(alerts)
    head = f"[{notification.status.upper()}] [{worst}]"
    if not alerts:
        return f"{head} {total} alerts"
    more = f" and {total - 1} more" if total > 1 else ""
    return f"{head} {alerts[0].title}{more}"


def _left_out(notification: GroupNotification) -> Iterator[str]:
    if notification.suppressed:
        yield (
            f"{notification.suppressed} held back by silences, inhibition or hours since the last message; "
            "`monitor alerts list` names them"
        )
    if notification.truncated:
        yield f"{notification.truncated} more of this group are not shown; `monitor alerts list` names them"


def _changed(alert: Alert) -> Iterator[str]:
    evidence = alert.evidence or Evidence(start=alert.since, end=alert.since)
    if alert.kind in {FindingKind.DELIVERY, FindingKind.WATCHDOG}:
        return
    if alert.kind is FindingKind.JUDGE:
        yield "look at `monitor judge-health`; figures of the assistant rest on this judge"
        return
    lines = [*_announced(evidence, alert.since), *_first_seen(evidence, alert.since)]
    prompt = readable(alert.labels.get("prompt_hash", UNKNOWN))
    if alert.kind is FindingKind.CRITICAL and prompt != UNKNOWN:
        lines.append(f"prompt_hash={prompt} gave these answers")
    if alert.kind is FindingKind.CONFIGURATION:
        lines.append(
            "`monitor configurations list` shows what serves; evaluate it and add it there, or take it back"
        )
    yield from lines or ["nothing that the events tell: the same configurations served before"]


def _announced(evidence: Evidence, onset: datetime) -> Iterator[str]:
    for event in evidence.happened:
        named = "".join(f", {name}={value}" for name, value in event.served_by if value)
        link = f" {event.link}" if event.link else ""
        at = f"{stamp(event.occurred_at)}, {_apart(event.occurred_at, onset)}"
        yield f"{event.kind.replace('_', ' ')}: {event.title}{named} ({at}){link}"


def _first_seen(evidence: Evidence, onset: datetime) -> Iterator[str]:
    shares = {readable(change.segment): change for change in evidence.new_configurations}
    for one in evidence.sightings:
        name = f"{one.aspect}={one.value}"
        share = _share(shares.pop(name, None))
        yield f"{name} served first ({stamp(one.first_at)}, {_apart(one.first_at, onset)}){share}"
    for name, change in shares.items():
        yield f"{name} is new: {change.share:.0%} of the conversations, none before"


def _share(change: Change | None) -> str:
    return f"; {change.share:.0%} of the conversations, none before" if change else ""


def _apart(moment: datetime, onset: datetime) -> str:
    return f"{duration(onset - moment)} {'before' if moment <= onset else 'after'} the onset"


def _amount(alert: Alert) -> Iterator[str]:
    over = alert.state is AlertState.RESOLVED and alert.resolved_at is not None
    end = f", until {stamp(alert.resolved_at)}" if over and alert.resolved_at else ""
    yield f"since {stamp(alert.since)}{end}"
    match alert.kind:
        case FindingKind.CRITICAL:
            yield f"{alert.total} critical scores, of turns and of whole conversations"
        case FindingKind.GATE | FindingKind.SLO | FindingKind.JUDGE | FindingKind.CONFIGURATION:
            figures = alert.evidence.figures if alert.evidence else alert.finding.figures
            yield from (_figure(figure) for figure in figures if figure.limit is not None)
            if alert.evidence and (drift := alert.evidence.judge_drift):
                said = f"the judge itself has drifted by {drift.words} points"
                yield f"{said}, by {drift.n} anchors; that is in the figures"
        case FindingKind.REGRESSION | FindingKind.CRITICAL_RATE | FindingKind.SIGNAL:
            yield from sustained_lines(alert)
        case FindingKind.DELIVERY | FindingKind.WATCHDOG:
            return
        case _:
            assert_never(alert.kind)


def _figure(figure: Figure) -> str:
    value = "none" if figure.value is None else f"{figure.value:.3g}"
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f" (95 %: {figure.low:.3g} to {figure.high:.3g})"
    name = _FIGURE.get(figure.name, figure.name)
    return f"{name} {value}{interval}, gate {figure.limit:.3g}, n={figure.n}"


def _plot(alert: Alert, evidence: Evidence | None) -> Plot | None:
    if evidence is None or sum(point.value is not None for point in evidence.course) < 2:  # noqa: PLR2004 - a dot is no course
        return None
    if alert.kind is FindingKind.CRITICAL:
        return Plot("critical scores an hour", evidence.course, HOUR, alert.since, None)
    name = "critical_rate" if alert.labels.get("dimension") == CRITICAL else "mean"
    limit = next((figure.limit for figure in evidence.figures if figure.name == name), None)
    step = evidence.course[1].at - evidence.course[0].at
    return Plot(_FIGURE[name], evidence.course, step, alert.since, limit)


def _wheres(alert: Alert) -> Iterator[str]:
    yield from part_lines(alert)
    if alert.evidence:
        yield from map(_where, alert.evidence.changes)


def _where(change: Change) -> str:
    share = f"share {change.share:.0%}"
    if change.share_before is not None:
        share += f" (before {change.share_before:.0%})"
    figure = "" if change.figure is None else f", figure {change.figure:.3g}"
    if change.figure_before is not None:
        figure += f" (before {change.figure_before:.3g})"
    return f"{readable(change.segment)}: {share}{figure}, n={change.n}"


def _case(case: Case, links: Links) -> ToldCase:
    kind = f" {case.kind}" if case.kind else ""
    where = f"intent={case.intent} prompt={case.prompt_hash}"
    return ToldCase(
        head=plain(f"{case.dimension} {case.score}{kind}  {case.conversation_id}  {where}"),
        reason=plain(case.reason),
        quotes=tuple(
            ToldQuote(_SAID_BY.get(source, ""), plain(quote))
            for quote, source in zip_longest(case.quotes, case.sources[: len(case.quotes)], fillvalue="")
        ),
        command=plain(f"monitor explain {case.conversation_id}"),
        link=links.case(case),
    )
