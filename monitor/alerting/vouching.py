"""A judge's anchors in, how far what it said of the assistant is its own doing out."""

from collections.abc import Mapping
from datetime import datetime

from monitor.alerting.gathering import Background
from monitor.detection.baseline import Baseline, BaselinePolicy
from monitor.detection.sequential import Reading
from monitor.judging.drift import Shift
from monitor.windows.bucket import Scope


async def shifts_of(
    background: Background, scope: Scope, baseline: Baseline, now: datetime
) -> Mapping[str, Shift]:
    """Return how the judge's scores moved since a baseline, by dimension; raises StoreUnavailable."""
    if background.shifts is None:
        return {}
    return await background.shifts.shifts(
        judge_version=scope.judge_version,
        rubric_version=scope.rubric_version,
        since=baseline.end,
        now=now,
    )


async def is_vouched_for(
    reading: Reading,
    background: Background,
    scope: Scope,
    baseline: Baseline,
    *,
    policy: BaselinePolicy,
    excused: float,
    now: datetime,
) -> bool:
    """Tell whether a fall of scores is more than what the judge's anchors lost since its onset.

    `excused` points are taken off its effect already; when instead the end of the anchors' interval is that excuses
    most, more must be left than counts as no change. A fall that is younger than the round it needs waits for it.
    Raises StoreUnavailable.
    """
    if reading.is_share or background.shifts is None:
        return True
    moved = await background.shifts.since_onset(
        judge_version=scope.judge_version,
        rubric_version=scope.rubric_version,
        since=baseline.end,
        onset=reading.onset.at,
        now=now,
    )
    if moved is None:
        return False
    dimension, _ = reading.key
    shift = moved.get(dimension)
    least = max(policy.tolerance_points, policy.wander_factor * baseline.dimensions[dimension].wander)
    return shift is None or reading.effect + excused - shift.low <= -least
