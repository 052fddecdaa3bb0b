"""The days before the last one in, a baseline out that people look at, and how a window compares with it.

It moves every day, so a slow decline is normal to it. No detector may ask it: a contract of import-linter says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitor.detection.baseline import Baseline, BaselinePolicy, pin
from monitor.detection.counts import SeriesCounts
from monitor.detection.pinning import Lacking, Span, covered_days, overall_series, span_of
from monitor.detection.regression import RegressionPolicy, increments, payoffs, whole
from monitor.detection.sequential import half_width
from monitor.intake.moments import ceiling
from monitor.windows.bucket import BucketCounts, Scope
from monitor.windows.policy import WindowPolicy

TRAILING = "trailing"
"""What people call it; no pinned baseline may have this name."""
_LAST_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Trailing:
    """The week before the last day, of one scope."""

    scope: Scope
    baseline: Baseline
    days: float
    """Of it that hold judged units."""


@dataclass(frozen=True)
class Versus:
    """What changed in one series against that week, at the same mix of strata, in points."""

    effect: float
    low: float
    high: float
    n: int
    """Units of the strata that the week knows; others say nothing."""
    days: float
    """Of the week that hold judged units."""

    @property
    def is_change(self) -> bool:
        """Tell whether the interval leaves out zero."""
        return self.high < 0 or self.low > 0


def trailing_span(
    end: datetime, *, oldest: datetime | None, now: datetime, days: float, policy: WindowPolicy
) -> Span | Lacking:
    """Return the days that end one day before `end`, as many of them as are kept by the hour; see `span_of`."""
    last = end - _LAST_DAY
    kept = ceiling(now - timedelta(days=policy.hourly_days), minutes=60)
    if last <= kept:
        return Lacking(
            f"hours are kept for {policy.hourly_days} days (windows.hourly_days), and the week has left them",
            curable=False,
        )
    first = max(last - timedelta(days=days), kept)
    return span_of(first, last, oldest=oldest, now=now, days=days, policy=policy)


def trailing_of(
    scope: Scope, slices: Mapping[datetime, BucketCounts], span: Span, policy: BaselinePolicy
) -> Trailing | None:
    """Return what was normal in that week, None if nothing was judged in it."""
    series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
    if not any(one.n for one in series):
        return None
    baseline = pin(series, scope_id=scope.id, label=TRAILING, policy=policy)
    return Trailing(scope=scope, baseline=baseline, days=covered_days(series))


def versus(series: SeriesCounts, week: Trailing) -> Versus | None:
    """Return what changed in a series of scores, None where the week knows nothing of its dimension or strata."""
    known = week.baseline.dimensions.get(series.dimension)
    if known is None:
        return None
    paid = payoffs(series, known, RegressionPolicy())
    n = int(series.by_column[paid.known].sum())
    if not n:
        return None
    (effect,), (se,) = whole(increments([(series, paid)]))
    half = half_width(series, {name: one.mean for name, one in known.strata.items()}, float(se))
    return Versus(
        effect=float(effect), low=float(effect) - half, high=float(effect) + half, n=n, days=week.days
    )
