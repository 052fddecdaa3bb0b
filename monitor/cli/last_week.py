"""The week before the last day, read for people: for `monitor baseline show|diff trailing` and `monitor windows`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from monitor.cli.asking import Looks, minute
from monitor.cli.baseline_pinning import evaluated
from monitor.detection.counts import SeriesKey
from monitor.detection.pinning import Lacking, Span, every_series
from monitor.detection.trailing import Trailing, Versus, trailing_of, trailing_span, versus
from monitor.intake.moments import ceiling, floor
from monitor.policy import Policy
from monitor.windows.bucket import OVERALL, BucketCounts, Granularity, Scope, readable
from monitor.windows.window import WindowStats

FOR_DISPLAY = "for display only: it absorbs slow declines, and nothing fires by it"
INTO_ITSELF = "reaches into the week itself; --hours 24 is the longest that is compared"


@dataclass(frozen=True)
class Compared:
    """What changed in a window against the week before its last day."""

    week: Span
    weeks: Mapping[Scope, Trailing]
    """Without the scopes of which nothing was judged in it."""
    changes: Mapping[Scope, Mapping[SeriesKey, Versus]]

    def change(self, scope: Scope, stats: WindowStats) -> Versus | None:
        """Return what changed in one series."""
        return self.changes.get(scope, {}).get((stats.dimension, stats.segment))


def trailing_week(looks: Looks, policy: Policy, end: datetime) -> Span | Lacking:
    """Return the week that ends a day before a time."""
    return trailing_span(
        end,
        oldest=next(iter(looks.begins()), None),
        now=evaluated(looks),
        days=policy.monitor.detection.baseline.days_wanted,
        policy=policy.monitor.windows,
    )


def trailing_in(looks: Looks, policy: Policy, scopes: Iterable[Scope], week: Span) -> list[Trailing]:
    """Return what was normal in that week, of the scopes of which something was judged in it; nothing is kept."""
    wanted = policy.monitor.detection.baseline
    found = (trailing_of(scope, looks.overall(scope, week), week, wanted) for scope in scopes)
    return [one for one in found if one is not None]


def compared(
    looks: Looks,
    policy: Policy,
    window: Span,
    found: Sequence[tuple[Scope, Mapping[datetime, BucketCounts]]],
) -> Compared | Lacking:
    """Return what changed in every series of a window."""
    minutes = window.bucket_minutes
    week = trailing_week(looks, policy, floor(window.end, minutes=minutes))
    if isinstance(week, Lacking):
        return week
    if window.granularity is Granularity.DAY or window.start < week.end:
        return Lacking(
            f"a window that is longer than a day, or read by the day, {INTO_ITSELF}",
            curable=True,
        )
    weeks = {one.scope: one for one in trailing_in(looks, policy, (scope for scope, _ in found), week)}
    start, end = floor(window.start, minutes=minutes), ceiling(window.end, minutes=minutes)
    changes = {
        scope: {
            one.key: change
            for one in every_series(slices, start=start, end=end, bucket_minutes=minutes)
            if (change := versus(one, weeks[scope])) is not None
        }
        for scope, slices in found
        if scope in weeks
    }
    return Compared(week=week, weeks=weeks, changes=changes)


def versus_table(versus: Compared, scope: Scope, series: Sequence[WindowStats]) -> Table:
    """Return what changed in one scope's series for people; where nothing is known of one, it has no row."""
    week = versus.weeks.get(scope)
    days = f"{week.days:.1f} days" if week else "nothing was judged in it"
    title = f"vs {week_words(versus.week)}: {days}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("dimension", no_wrap=True)
    split = any(one.segment != OVERALL for one in series)
    if split:
        table.add_column("segment", overflow="fold")
    for column in ("vs last week", "95 %", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in series:
        change = versus.change(scope, one)
        if change is not None:
            table.add_row(
                one.dimension,
                *([readable(one.segment)] if split else []),
                f"{change.effect:+.2f}{'*' if change.is_change else ' '}",
                f"{change.low:+.2f} to {change.high:+.2f}",
                f"{change.n}",
                style="bold" if change.is_change else None,
            )
    return table


def versus_line(versus: Compared | Lacking) -> str:
    """Return what the tables mean, or why there are none."""
    if isinstance(versus, Lacking):
        return f"vs last week: nothing to compare with: {versus.reason}"
    return (
        "vs last week: points at the same mix of traffic, * where the 95 % interval leaves out zero; "
        f"{FOR_DISPLAY}"
    )


def change_values(
    versus: Compared | Lacking | None, scope: Scope, stats: WindowStats
) -> dict[str, Any] | None:
    """Return what changed in one series as JSON values; None where nothing is known."""
    change = versus.change(scope, stats) if isinstance(versus, Compared) else None
    return asdict(change) if change else None


def versus_values(versus: Compared | Lacking | None) -> dict[str, str] | None:
    """Return which week is compared with, or why none is, as JSON values; nothing if nobody asked."""
    if isinstance(versus, Compared):
        return {"start": versus.week.start.isoformat(), "end": versus.week.end.isoformat()}
    return {"reason": versus.reason} if versus else None


def week_words(week: Span) -> str:
    """Return from when to when it is."""
    return f"{minute(week.start)} to {minute(week.end)} UTC"
