"""An alert and a conversation in, the alert without that conversation's words out; its figures stay."""

from monitor.alerting.alert import Alert, Transition, changed
from monitor.windows.case import Case

FORGOTTEN = "[forgotten]"


def cites(alert: Alert, conversation_id: str) -> bool:
    """Tell whether an alert shows a case of a conversation."""
    return any(case.conversation_id == conversation_id for case in _cases(alert))


def without_words_of(alert: Alert, conversation_id: str) -> Transition | None:
    """Return the silent change that erases a conversation's words; None if there are none."""
    if not any(_speaks_of(case, conversation_id) for case in _cases(alert)):
        return None
    evidence = alert.evidence
    if evidence is not None:
        cases = tuple(_silenced(case, conversation_id) for case in evidence.cases)
        evidence = evidence.model_copy(update={"cases": cases})
    finding = alert.finding
    if finding.case is not None:
        finding = finding.model_copy(update={"case": _silenced(finding.case, conversation_id)})
    # A resolved alert keeps its place in the history.
    at = alert.resolved_at or alert.failed_at
    return changed(alert, at, "texts erased", notify=False, evidence=evidence, finding=finding)


def _cases(alert: Alert) -> tuple[Case, ...]:
    own = (alert.finding.case,) if alert.finding.case else ()
    return (*own, *(alert.evidence.cases if alert.evidence else ()))


def _speaks_of(case: Case, conversation_id: str) -> bool:
    return case.conversation_id == conversation_id and case.reason != FORGOTTEN


def _silenced(case: Case, conversation_id: str) -> Case:
    if not _speaks_of(case, conversation_id):
        return case
    return Case.model_validate(dict(case) | {"reason": FORGOTTEN, "quotes": ()})
