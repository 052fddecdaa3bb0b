"""Windows of an old judge and its offsets to a new one in, the gates' alerts that would differ out.

An approximation, and meant as one: the offset is added to the window's mean and to its share that passes, the same
for every segment, and a gate counts as an alert once it fails for its persistence. What the new judge would have
scored critical is not known from means; critical failures are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from monitor.detection.finding import FindingKind, Outcome
from monitor.detection.gates import GatePolicy, Stats, evaluate_gates
from monitor.intake.event import Moment, Value
from monitor.judging.rubric import SCORE_MAX, SCORE_MIN
from monitor.review.migration import Offset
from monitor.windows.bucket import CRITICAL, Scope
from monitor.windows.window import WindowStats


class Change(Value):
    """One alert of a gate that one judge would have raised and the other not."""

    assistant: str
    environment: str
    dimension: str
    segment: str
    start: Moment
    """The first and the last boundary at which the gate failed."""
    end: Moment
    new: bool
    """True: it would come newly; false: it would not have come."""
    sure: bool
    """So at both ends of the offset's interval as well."""


class _Span(NamedTuple):
    dimension: str
    segment: str
    start: datetime
    end: datetime


def changed_alerts(
    windows: Sequence[tuple[datetime, Stats]],
    offsets: Mapping[str, Offset],
    policy: GatePolicy,
    *,
    scope: Scope,
) -> list[Change]:
    """Return the alerts that would differ; `windows` are those that end at each boundary, oldest first."""
    before = _spans(windows, policy, scope)
    shifted = {
        end: _spans([(at, _moved(stats, offsets, end)) for at, stats in windows], policy, scope)
        for end in ("mean", "low", "high")
    }
    found = []
    for new, ours, theirs in ((False, before, shifted["mean"]), (True, shifted["mean"], before)):
        for span in ours:
            if _meets(span, theirs):
                continue
            both_ends = [shifted[end] for end in ("low", "high")]
            sure = all(_meets(span, spans) is new for spans in both_ends)
            found.append(
                Change(
                    assistant=scope.assistant,
                    environment=str(scope.environment),
                    **span._asdict(),
                    new=new,
                    sure=sure,
                )
            )
    return sorted(found, key=lambda one: (one.start, one.dimension, one.segment))


def _spans(windows: Iterable[tuple[datetime, Stats]], policy: GatePolicy, scope: Scope) -> list[_Span]:
    """Return the stretches over which a gate failed for as long as it takes to fire."""
    hold = policy.persistence_of(FindingKind.GATE).hold
    opened: dict[tuple[str, str], list[datetime]] = {}
    found = []

    def close(key: tuple[str, str]) -> None:
        start, end = opened.pop(key)
        if end - start >= hold:
            found.append(_Span(*key, start, end))

    for now, stats in windows:
        failing = set()
        for finding in evaluate_gates(stats, policy, scope=scope, now=now):
            key = (finding.labels["dimension"], finding.labels["segment"])
            if finding.outcome is Outcome.FAIL and key[0] != CRITICAL:
                failing.add(key)
                opened.setdefault(key, [now, now])[1] = now
        for key in opened.keys() - failing:
            close(key)
    for key in list(opened):
        close(key)
    return sorted(found)


def _moved(stats: Stats, offsets: Mapping[str, Offset], end: str) -> Stats:
    return {
        key: _added(series, offsets[key[0]], end) if key[0] in offsets else series
        for key, series in stats.items()
    }


def _added(series: WindowStats, offset: Offset, end: str) -> WindowStats:
    points, passing = (float(getattr(one, end)) for one in (offset.points, offset.pass_at_4))
    return replace(
        series,
        mean=None if series.mean is None else min(max(series.mean + points, SCORE_MIN), SCORE_MAX),
        pass_at_4=None if series.pass_at_4 is None else min(max(series.pass_at_4 + passing, 0.0), 1.0),
    )


def _meets(span: _Span, others: Iterable[_Span]) -> bool:
    return any(
        (one.dimension, one.segment) == (span.dimension, span.segment)
        and one.start <= span.end
        and span.start <= one.end
        for one in others
    )
