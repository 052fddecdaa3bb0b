"""A span of buckets or hours in, a pinned baseline out, or the sentence that says what the span lacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np

from monitor.detection.baseline import Baseline, BaselinePolicy, pin
from monitor.detection.census import CENSUS
from monitor.detection.counts import CountsCache, SeriesCounts
from monitor.intake.event import Moment, Value
from monitor.intake.moments import ceiling, floor
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts, Granularity, Scope
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import WindowStore

_ENOUGH = 0.95
"""Of the days that are wanted: a span may begin or end with quiet hours."""
_DAY = 1440


class Pinned(Value):
    """A baseline with the scope that it is normal for, and who vouched for it."""

    scope: Scope
    baseline: Baseline
    pinned_at: Moment
    pinned_by: str

    @property
    def release(self) -> str:
        """Return the name of what was accepted."""
        return self.baseline.label


class BaselineStore(Protocol):
    """Whoever keeps baselines. Every method is safe to repeat and raises StoreUnavailable if it cannot."""

    async def pin(self, pinned: Pinned) -> None:
        """Make this the baseline of its scope; those before it stay in the history. The same one twice is one."""
        ...

    async def current(self, scope_id: str) -> Pinned | None:
        """Return the baseline of a scope, None where nobody pinned one."""
        ...

    async def all(self) -> tuple[Pinned, ...]:
        """Return all that are kept, by scope, the current one of each first."""
        ...


@dataclass(frozen=True)
class Lacking:
    """Why a span makes no baseline, or no good one."""

    reason: str
    curable: bool
    """A person may take it all the same."""


@dataclass(frozen=True)
class Span:
    """What is pinned, and how long the slices are that are read of it."""

    start: datetime
    end: datetime
    granularity: Granularity
    bucket_minutes: int
    """Length of a slice."""


def span_of(
    start: datetime | None,
    end: datetime,
    *,
    oldest: datetime | None,
    now: datetime,
    days: float,
    policy: WindowPolicy,
) -> Span | Lacking:
    """Return the whole slices of a span: buckets, or hours if some of its buckets may have left, or what is wrong.

    Without a start it takes so many days before its end. `oldest` is the oldest bucket that is kept of any scope, None
    without one; buckets of its time may have left already.
    """
    whole, gone = timedelta(days=days), floor(now - policy.retention, minutes=60)
    left = gone if oldest is None else max(oldest, gone)
    granularity = Granularity.HOUR if (start or end - whole) <= left else Granularity.BUCKET
    minutes = granularity.minutes(policy)
    last = floor(end, minutes=minutes)
    first = start or last - whole
    if granularity is Granularity.BUCKET:
        return Span(floor(first, minutes=minutes), last, granularity, minutes)
    first = ceiling(first, minutes=minutes)
    kept = now - timedelta(days=policy.hourly_days)
    if first < kept:
        return Lacking(
            f"hours are kept for {policy.hourly_days} days (windows.hourly_days), and the span begins before them; "
            f"begin it on {ceiling(kept, minutes=60):%Y-%m-%dT%H:%M} UTC or later",
            curable=False,
        )
    return Span(first, last, granularity, minutes)


async def overall_slices(windows: WindowStore, scope: Scope, span: Span) -> dict[datetime, BucketCounts]:
    """Return the overall counts of a span's slices, read a day at a time: most counts are of segments, and let go."""
    found: dict[datetime, BucketCounts] = {}
    begin = span.start
    while begin < span.end:
        until = min(floor(begin, minutes=_DAY) + timedelta(days=1), span.end)
        for at, counts in (await windows.slices(scope, begin, until, span.granularity)).items():
            found[at] = {cell: count for cell, count in counts.items() if cell.segment == OVERALL}
        begin = until
    return found


def overall_series(
    buckets: Mapping[datetime, BucketCounts], *, start: datetime, end: datetime, bucket_minutes: int
) -> list[SeriesCounts]:
    """Return the overall series of every dimension over a span."""
    found = every_series(buckets, start=start, end=end, bucket_minutes=bucket_minutes)
    return [one for one in found if one.segment == OVERALL]


def every_series(
    buckets: Mapping[datetime, BucketCounts], *, start: datetime, end: datetime, bucket_minutes: int
) -> list[SeriesCounts]:
    """Return every series over a span, those of segments too."""
    cache = CountsCache(
        bucket_minutes=bucket_minutes, span=end - start, shares=frozenset({CRITICAL, *CENSUS})
    )
    cache.update(buckets)
    return [cache.series(key, start, end) for key in cache.keys]


def lacking(series: list[SeriesCounts], policy: BaselinePolicy) -> Lacking | None:
    """Return what a span lacks, None if it makes a good baseline."""
    units = max((one.n for one in series if one.dimension == CRITICAL), default=0)
    if units < policy.units_min:
        return Lacking(
            f"the span holds {units} judged conversations, and a baseline needs {policy.units_min}; "
            "take a longer span, or sample more",
            curable=False,
        )
    days = covered_days(series)
    if days < _ENOUGH * policy.days_wanted:
        return Lacking(
            f"the span holds {days:.1f} days with {units} judged conversations, and {policy.days_wanted:g} days are "
            "wanted; without them expect more false findings at the hours that it has not seen",
            curable=True,
        )
    return None


def covered_days(series: list[SeriesCounts]) -> float:
    """Return the days from the first judged unit to the last, without calendar days that have none."""
    filled = sorted(
        {
            one.start + int(row) * timedelta(minutes=one.bucket_minutes)
            for one in series
            for row in np.flatnonzero(one.counts.sum(axis=(1, 2)))
        }
    )
    if not filled:
        return 0.0
    last = filled[-1] + timedelta(minutes=series[0].bucket_minutes)
    return min((last - filled[0]) / timedelta(days=1), float(len({at.date() for at in filled})))


def pinned_of(
    scope: Scope,
    series: list[SeriesCounts],
    *,
    release: str,
    at: datetime,
    by: str,
    policy: BaselinePolicy,
) -> Pinned:
    """Pin the baseline of a scope; raises ValueError without a single unit."""
    baseline = pin(series, scope_id=scope.id, label=release, policy=policy)
    return Pinned(scope=scope, baseline=baseline, pinned_at=at, pinned_by=by)
