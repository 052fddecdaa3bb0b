"""Group notifications for tests: everything has a default, a test states what it is about."""

from datetime import timedelta

from monitor.alerting.agreement import UNCALIBRATED, Agreement
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.changes import Aspect, Sighting
from monitor.alerting.evidence import Change, Evidence, Point
from monitor.alerting.notification import GroupAlert, GroupNotification, NotificationReason, Status
from monitor.detection.finding import Figure, Finding, FindingKind, Outcome, Severity
from monitor.intake.event import ChangeEvent, ChangeKind, Environment, ServedBy
from monitor.judging.rubric import TargetKind
from monitor.windows.case import Case
from tests.judgments import HOUR, NOON

HOSTILE = (
    "W" * 4000,
    "<script>alert(1)</script> <!channel> <@U123> <https://evil.example|here> &amp;",
    "**bold** _it_ `code` ``` ```sh [link](javascript:alert(1)) | # > ~ \\ $x$",
    "😀" * 2000,
    "\x1b[31mred\x1b[0m\u202egnp.exe\r\nId: forged\n\n# Heading",
    '"quoted" \'and\' </div><svg onload="x">',
    "",
)
"""What users, judges and producers may write."""


def a_case(number: int, text: str = "promised a refund that the policy forbids") -> Case:
    return Case(
        judgment_id=f"j{number}",
        conversation_id=f"c-{number}",
        target=TargetKind.CONVERSATION,
        dimension="safety",
        score=1,
        reason=text[:300],
        kind="forbidden_promise",
        quotes=(text[:200] or "we refund anything",) * 3,
        verbatim=True,
        intent="returns",
        prompt_hash="new",
        observed_at=NOON,
    )


def an_evidence(*, text: str = "", cases: int = 8) -> Evidence:
    return Evidence(
        start=NOON - 6 * HOUR,
        end=NOON,
        figures=(Figure(name="mean", value=3.0, limit=4.8, low=2.9, high=3.1, n=200),),
        changes=(
            Change(segment="prompt_hash=new", n=90, share=0.9, share_before=0, figure=2.0, effect=2.0),
            Change(
                segment="intent=returns",
                n=50,
                share=0.5,
                share_before=0.5,
                figure=1.0,
                figure_before=5.0,
                effect=2.0,
            ),
        ),
        cases=tuple(a_case(number, text or f"promise {number}") for number in range(cases)),
        happened=(
            ChangeEvent(
                event_id="release",
                kind=ChangeKind.DEPLOY,
                occurred_at=NOON - 2 * HOUR,
                title=text[:300] or "release 42",
                served_by=ServedBy(prompt_hash="new"),
                link="https://ci.example/42",
            ),
        ),
        sightings=(
            Sighting(
                assistant="bot",
                environment=Environment.PRODUCTION,
                aspect=Aspect.PROMPT,
                value="new",
                first_at=NOON - HOUR,
                last_at=NOON,
            ),
        ),
        course=tuple(
            Point(at=NOON - (24 - n) * HOUR, value=None if n == 3 else 4.9 - max(0, n - 18) * 0.4, n=10)
            for n in range(24)
        ),
        agreement=Agreement(dimension="safety", calibrated=False, statement=UNCALIBRATED),
    )


def an_alert(
    number: int = 0, *, text: str = "", resolved: bool = False, severity: Severity = Severity.PAGE
) -> Alert:
    finding = Finding(
        kind=FindingKind.GATE,
        labels={
            "assistant": "bot",
            "environment": "production",
            "dimension": "safety",
            "segment": "*" if not number else f"intent=i{number}",
        },
        severity=severity,
        outcome=Outcome.FAIL,
        reason=text or "mean 3, asked at least 4.8 (n=200)",
        since=NOON,
    )
    return Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.RESOLVED if resolved else AlertState.FIRING,
        version=5,
        severity=severity,
        finding=finding,
        since=NOON,
        failed_at=NOON + HOUR,
        resolved_at=NOON + 2 * HOUR if resolved else None,
        evidence=an_evidence(text=text),
    )


def a_group(
    *alerts: Alert,
    version: int = 1,
    receiver: str = "hook",
    group: str = "g1",
    suppressed: int = 0,
    truncated: int = 0,
    after: timedelta = timedelta(0),
) -> GroupNotification:
    """Return a notification; of one firing alert without any."""
    members = alerts or (an_alert(),)
    told = tuple(
        GroupAlert(
            alert=alert,
            status=Status.RESOLVED if alert.state is AlertState.RESOLVED else Status.FIRING,
            labels={**alert.labels, "severity": str(alert.severity), "finding": str(alert.kind)},
        )
        for alert in members
    )
    firing = sum(one.status is Status.FIRING for one in told)
    return GroupNotification(
        id=f"{group}-{version}",
        group_id=group,
        group_key='{}:{assistant="bot"}',
        group_labels={"assistant": "bot"},
        receiver=receiver,
        status=Status.FIRING if firing else Status.RESOLVED,
        alerts=told,
        firing=firing,
        resolved=len(told) - firing,
        truncated=truncated,
        suppressed=suppressed,
        reason=NotificationReason.FIRST if firing else NotificationReason.ALL_RESOLVED,
        at=NOON + HOUR + after,
    )
