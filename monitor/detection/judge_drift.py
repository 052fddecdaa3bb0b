"""A judge's shift by its anchors in, a finding of its own out: the judge has drifted, by how much and since when."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from monitor.detection.finding import Figure, Finding, FindingKind, Outcome, Severity
from monitor.intake.event import Moment, Value
from monitor.judging.anchors import AnchorPolicy, AnchorScore
from monitor.judging.drift import CERTAIN, Shift, anchor_shift, since
from monitor.judging.judgment import JudgeIdentity

CHECK = "drift"
"""The label that tells these findings from those of a judge's health."""


class Anchored(Value):
    """What the anchors say of one judge."""

    judge_version: str
    rubric_version: str
    anchors: int
    """With a pinned score."""
    pinned_at: Moment | None
    """When the first of them was pinned."""
    last_round_at: Moment | None
    shifts: dict[str, Shift]
    """By dimension, over the policy's window."""
    drifted: dict[str, Moment]
    """The dimensions whose shift is a drift, and since when."""
    reason: str


def anchored(
    pins: Mapping[str, AnchorScore],
    scores: Sequence[AnchorScore],
    policy: AnchorPolicy,
    *,
    judge_version: str,
    rubric_version: str,
    now: datetime,
) -> Anchored:
    """Return what is known of a judge at `now`; a drift began no earlier than the first of `scores`."""
    begin = now - timedelta(hours=policy.window_hours)
    window = [one for one in scores if begin <= one.at < now]
    shifts = anchor_shift(pins, window)
    sure = anchor_shift(pins, window, confidence=CERTAIN)
    drifted = {}
    for name, shift in sure.items():
        apart = shift.low > 0 or shift.high < 0
        if shift.n >= policy.min_anchors and apart and abs(shift.mean) >= policy.floor_points:
            drifted[name] = since(pins, scores, name) or begin
    return Anchored(
        judge_version=judge_version,
        rubric_version=rubric_version,
        anchors=len(pins),
        pinned_at=min((one.at for one in pins.values()), default=None),
        last_round_at=max((one.at for one in (*pins.values(), *scores)), default=None),
        shifts=shifts,
        drifted=drifted,
        reason=_reason(shifts, drifted, policy),
    )


def drift_finding(known: Anchored, judge: JudgeIdentity, policy: AnchorPolicy, *, now: datetime) -> Finding:
    """Return what is to be said of one judge; a judge whose anchors were not scored enough has no data."""
    enough = any(shift.n >= policy.min_anchors for shift in known.shifts.values())
    outcome = Outcome.FAIL if known.drifted else Outcome.PASS if enough else Outcome.NO_DATA
    return Finding(
        kind=FindingKind.JUDGE,
        labels=labels_of(judge.version, judge.stage),
        severity=Severity.TICKET,
        outcome=outcome,
        clear=outcome is Outcome.PASS,
        reason=known.reason,
        since=now - timedelta(hours=policy.window_hours),
        figures=tuple(
            Figure(
                name=f"shift of {name}",
                value=shift.mean,
                limit=policy.floor_points if shift.mean > 0 else -policy.floor_points,
                low=shift.low,
                high=shift.high,
                n=shift.n,
            )
            for name, shift in known.shifts.items()
            if name in known.drifted
        ),
    )


def over(labels: Mapping[str, str], *, now: datetime) -> Finding:
    """Return the finding that ends the drift of a judge that judges no more."""
    return Finding(
        kind=FindingKind.JUDGE,
        labels=dict(labels),
        severity=Severity.TICKET,
        outcome=Outcome.PASS,
        clear=True,
        reason="its anchors are judged no more, or it is no longer the judge whose series speak",
        since=now,
    )


def labels_of(judge_version: str, stage: str) -> dict[str, str]:
    """Return the identity of a judge's drift."""
    return {"judge": judge_version, "stage": stage, "check": CHECK}


def _reason(shifts: Mapping[str, Shift], drifted: Mapping[str, datetime], policy: AnchorPolicy) -> str:
    if drifted:
        told = ", ".join(
            f"{shifts[name].words} points on {name} since {begin:%Y-%m-%d %H:%M} UTC (n={shifts[name].n})"
            for name, begin in drifted.items()
        )
        return f"the judge has drifted by {told}"
    best = max((shift.n for shift in shifts.values()), default=0)
    if best < policy.min_anchors:
        return f"{best} anchors with a newer score of the {policy.min_anchors} it needs"
    return f"no shift beyond {policy.floor_points:g} points in {len(shifts)} dimensions"
