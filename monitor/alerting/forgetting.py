"""An alert or a message and a conversation in, the same without that conversation's words out; figures stay."""

from monitor.alerting.alert import Alert, Transition, changed
from monitor.alerting.notification import GroupNotification
from monitor.alerting.receiver import Notification
from monitor.windows.case import Case

FORGOTTEN = "[forgotten]"


def cites(alert: Alert, conversation_id: str) -> bool:
    """Tell whether an alert shows a case of a conversation."""
    return any(case.conversation_id == conversation_id for case in _cases(alert))


def without_words_of(alert: Alert, conversation_id: str) -> Transition | None:
    """Return the silent change that erases a conversation's words; None if there are none."""
    after = _erased(alert, conversation_id)
    if after is None:
        return None
    # A resolved alert keeps its place in the history.
    at = alert.resolved_at or alert.failed_at
    return changed(alert, at, "texts erased", notify=False, evidence=after.evidence, finding=after.finding)


def told_without_words_of(told: Notification, conversation_id: str) -> Notification | None:
    """Return what waits for the topic without a conversation's words; None if there are none."""
    after = _erased(told.alert, conversation_id)
    return None if after is None else told.model_copy(update={"alert": after})


def group_without_words_of(told: GroupNotification, conversation_id: str) -> GroupNotification | None:
    """Return what waits for a receiver without a conversation's words, under the same id; None if there are none."""
    erased = [_erased(one.alert, conversation_id) for one in told.alerts]
    if not any(erased):
        return None
    alerts = tuple(
        one if after is None else one.model_copy(update={"alert": after})
        for one, after in zip(told.alerts, erased, strict=True)
    )
    return told.model_copy(update={"alerts": alerts})


def _erased(alert: Alert, conversation_id: str) -> Alert | None:
    if not any(_speaks_of(case, conversation_id) for case in _cases(alert)):
        return None
    evidence, finding = alert.evidence, alert.finding
    if evidence is not None:
        cases = tuple(_silenced(case, conversation_id) for case in evidence.cases)
        evidence = evidence.model_copy(update={"cases": cases})
    if finding.case is not None:
        finding = finding.model_copy(update={"case": _silenced(finding.case, conversation_id)})
    return alert.model_copy(update={"evidence": evidence, "finding": finding})


def _cases(alert: Alert) -> tuple[Case, ...]:
    own = (alert.finding.case,) if alert.finding.case else ()
    return (*own, *(alert.evidence.cases if alert.evidence else ()))


def _speaks_of(case: Case, conversation_id: str) -> bool:
    return case.conversation_id == conversation_id and case.reason != FORGOTTEN


def _silenced(case: Case, conversation_id: str) -> Case:
    if not _speaks_of(case, conversation_id):
        return case
    return Case.model_validate(dict(case) | {"reason": FORGOTTEN, "quotes": (), "sources": ()})
