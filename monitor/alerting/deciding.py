"""An alert and a person's word in, the recorded change out, or the sentence that says why not."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from monitor.alerting.alert import Alert, AlertState, Transition, changed
from monitor.alerting.decision import DECISIONS_MAX, NOTES_MAX, Act, DecidedScore, Decision, Note, Verdict
from monitor.detection.exception import GateException
from monitor.detection.finding import FindingKind, Severity
from monitor.judging.rubric import CRITICAL_MAX
from monitor.windows.bucket import CRITICAL


@dataclass(frozen=True)
class Refused:
    """Nothing was changed, and why."""

    reason: str


def acknowledged(alert: Alert, *, by: str, at: datetime, text: str = "") -> Transition | Refused:
    """Note that somebody looks after it: it is not repeated any more, and its end is told as ever."""
    if alert.state is not AlertState.FIRING:
        return Refused(f"it is {alert.state}; only an alert that fires can be acknowledged")
    note = Note(act=Act.ACKNOWLEDGED, by=by, at=at, text=text)
    return _noted(alert, note, acknowledged_by=by, acknowledged_at=at)


def commented(alert: Alert, *, by: str, at: datetime, text: str) -> Transition:
    """Note what somebody found out."""
    return _noted(alert, Note(act=Act.COMMENTED, by=by, at=at, text=text))


def excepted(alert: Alert, exception: GateException, *, at: datetime) -> Transition | Refused:
    """Note that somebody answers for its failing until a day; the gate stays as it is."""
    if exception.until <= at:
        return Refused("an exception must end in the future")
    text = f"until {exception.until:%Y-%m-%d %H:%M %Z}: {exception.reason}"
    return _noted(alert, Note(act=Act.EXCEPTED, by=exception.owner, at=at, text=text))


def exception_for(alert: Alert, *, owner: str, reason: str, until: datetime) -> GateException | Refused:
    """Return the exception that covers this alert alone: its dimension, segment, assistant and environment."""
    if alert.kind not in {FindingKind.GATE, FindingKind.SLO}:
        return Refused(
            f"exceptions are for gates, and this is a {alert.kind} alert; `monitor silence add` mutes it for a time"
        )
    return GateException(
        gate=alert.labels["dimension"],
        segment=alert.labels["segment"],
        owner=owner,
        reason=reason,
        until=until,
        alert=alert.fingerprint,
    )


def decided(alert: Alert, verdict: Verdict, *, by: str, at: datetime, text: str = "") -> Transition | Refused:
    """Close its last firing with what it was. One that still fires ends, and comes back if it goes on failing."""
    if alert.fired_at is None:
        return Refused("it never fired, so there is nothing to decide")
    decision = Decision(
        verdict=verdict,
        severity=alert.severity,
        fired_at=alert.fired_at,
        by=by,
        at=at,
        text=text,
        scores=_scores(alert),
    )
    # Whoever thinks better of it decides again; the last word counts.
    others = tuple(one for one in alert.decisions if one.fired_at != alert.fired_at)
    changes: dict[str, object] = {"decisions": (*others, decision)[-DECISIONS_MAX:]}
    fires = alert.state is AlertState.FIRING
    if fires:
        changes |= {"state": AlertState.RESOLVED, "resolved_at": at, "clear_since": None}
    words = f"{verdict}: {text}" if text else str(verdict)
    return _noted(alert, Note(act=Act.DECIDED, by=by, at=at, text=words), notify=fires, **changes)


@dataclass(frozen=True)
class Precision:
    """How often alerts of one severity and kind were worth it."""

    severity: Severity
    kind: FindingKind
    fired: int
    verdicts: dict[Verdict, int]

    @property
    def decided(self) -> int:
        """Return how many firings were decided."""
        return sum(self.verdicts.values())

    @property
    def precision(self) -> float | None:
        """Return the share of regressions among the decided; None before the first decision."""
        return self.verdicts.get(Verdict.REGRESSION, 0) / self.decided if self.decided else None


def precision_of(alerts: Iterable[Alert], *, since: datetime) -> tuple[Precision, ...]:
    """Return the precision of each severity and kind, the gravest first, over what fired since a time."""
    fired: dict[tuple[Severity, FindingKind], int] = {}
    verdicts: dict[tuple[Severity, FindingKind], dict[Verdict, int]] = {}
    for alert in alerts:
        by_firing = {one.fired_at: one for one in alert.decisions}
        for moment in alert.firings:
            if moment < since:
                continue
            decision = by_firing.get(moment)
            key = (decision.severity if decision else alert.severity, alert.kind)
            fired[key] = fired.get(key, 0) + 1
            if decision is not None:
                counts = verdicts.setdefault(key, {})
                counts[decision.verdict] = counts.get(decision.verdict, 0) + 1
    ordered = sorted(fired, key=lambda key: (-key[0].weight, key[1]))
    return tuple(
        Precision(severity=key[0], kind=key[1], fired=fired[key], verdicts=verdicts.get(key, {}))
        for key in ordered
    )


def _scores(alert: Alert) -> tuple[DecidedScore, ...]:
    """Return the scores that the alert is about; a rate of critical failures is about the critical ones."""
    cases = alert.evidence.cases if alert.evidence else ()
    dimension = alert.labels.get("dimension")
    return tuple(
        DecidedScore(
            judgment_id=case.judgment_id,
            conversation_id=case.conversation_id,
            dimension=case.dimension,
            score=case.score,
            judge_version=case.judge_version,
            rubric_version=case.rubric_version,
        )
        for case in cases
        if (case.score <= CRITICAL_MAX if dimension == CRITICAL else case.dimension == dimension)
    )


def _noted(alert: Alert, note: Note, *, notify: bool = False, **changes: object) -> Transition:
    notes = (*alert.notes, note)[-NOTES_MAX:]
    reason = f"{note.act} by {note.by}" + (f": {note.text}" if note.text else "")
    transition = changed(alert, note.at, reason, notify=notify, notes=notes, **changes)
    return transition.model_copy(update={"by": note.by})
