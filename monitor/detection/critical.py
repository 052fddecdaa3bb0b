"""A judgment in, its critical failures out: a ticket each, a page only for a configured, quoted kind."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitor.conversations.conversation import Attributes
from monitor.detection.finding import Finding, FindingKind, Outcome, Severity
from monitor.intake.event import Environment
from monitor.judging.judgment import Judgment
from monitor.judging.rubric import CRITICAL_MAX, SCORE_MIN
from monitor.windows.bucket import name_of
from monitor.windows.case import Case, case_of


class CriticalPolicy(BaseModel):
    """The part of config/gates.yaml that is about single critical failures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    severity: Severity = Severity.TICKET
    page_at_or_below: dict[str, Annotated[int, Field(ge=SCORE_MIN, le=CRITICAL_MAX)]] = {}
    """Dimension -> the score at or below which a quoted failure pages."""
    page_repeat_minutes: Annotated[int, Field(ge=1, le=10_080)] = 60
    ticket_repeat_minutes: Annotated[int, Field(ge=1, le=10_080)] = 1440
    quiet_minutes: Annotated[int, Field(ge=1, le=43_200)] = 360
    cases_max: Annotated[int, Field(ge=1, le=50)] = 10
    """Cases shown as evidence, of all that are counted."""

    def repeat(self, severity: Severity) -> timedelta:
        """Return the least time between two messages of one alert."""
        pages = severity is Severity.PAGE
        return timedelta(minutes=self.page_repeat_minutes if pages else self.ticket_repeat_minutes)


def critical_findings(
    judgment: Judgment, policy: CriticalPolicy, environments: tuple[Environment, ...]
) -> tuple[Finding, ...]:
    """Return one finding for each dimension at 1 or 2; none for an environment that is not watched."""
    if judgment.attributes.environment not in environments:
        return ()
    cases = (case_of(judgment, score) for score in judgment.critical_scores)
    return tuple(_finding(case, judgment.attributes, policy) for case in cases if case is not None)


def _finding(case: Case, attributes: Attributes, policy: CriticalPolicy) -> Finding:
    severity, why = _severity(case, policy)
    return Finding(
        kind=FindingKind.CRITICAL,
        labels={
            "assistant": attributes.assistant,
            "environment": attributes.environment,
            "dimension": case.dimension,
            "intent": name_of(case.intent),
            "prompt_hash": name_of(case.prompt_hash),
        }
        | ({"variant": attributes.variant} if attributes.variant else {}),
        severity=severity,
        outcome=Outcome.FAIL,
        reason=f"{case.dimension} scored {case.score} in conversation {case.conversation_id}; {why}",
        since=case.observed_at,
        case=case,
    )


def _severity(case: Case, policy: CriticalPolicy) -> tuple[Severity, str]:
    limit = policy.page_at_or_below.get(case.dimension)
    if limit is None or case.score > limit:
        return policy.severity, "a kind that pages nobody"
    if not case.verbatim:
        return policy.severity, "it would page, but no quotation was found word for word"
    return Severity.PAGE, "confirmed by a quotation"
