"""A window's series in, tables for people and values for machines out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from monitor.alerting.plot import sparkline
from monitor.cli.last_week import Compared, change_values, versus_values
from monitor.detection.pinning import Lacking
from monitor.judging.rubric import SCORE_MAX
from monitor.windows.bucket import (
    CRITICAL,
    OTHER,
    OVERALL,
    BucketCounts,
    Granularity,
    Scope,
    name_of,
    readable,
)
from monitor.windows.headline import Headline
from monitor.windows.other import STRATA, Other
from monitor.windows.window import WindowStats, all_stats, window

COLUMNS = {"mean": 4, "95 %": 9, "raw": 4, "pass@4": 6, "critical": 8, "n": 4, "judged": 6}
"""The figures and their widths; `raw` is the mean without weights, `judged` the coverage."""
COVERAGE_MIN = 0.95
"""Below this share of judged units the mean's worst-case bounds stand beside it."""
MEAN_FLOOR = 4.0
"""The lowest bar stands for this mean or a lower one, so that noise near the top stays flat."""
RATE_CEILING = 0.05
"""The highest bar stands for at least this critical rate."""


@dataclass(frozen=True)
class Slot:
    """One bar."""

    start: datetime
    n: int
    mean: float | None
    critical_rate: float | None


@dataclass(frozen=True)
class Row:
    """One series of one scope."""

    stats: WindowStats
    slots: tuple[Slot, ...]

    @property
    def bars(self) -> str:
        """Return the course of the mean, of `critical` that of its rate."""
        if self.stats.dimension == CRITICAL:
            rates = [slot.critical_rate for slot in self.slots]
            return sparkline(rates, 0.0, max([RATE_CEILING, *(rate for rate in rates if rate is not None)]))
        means = [slot.mean for slot in self.slots]
        return sparkline(means, min([MEAN_FLOOR, *(m for m in means if m is not None)]), SCORE_MAX)


@dataclass(frozen=True)
class Shown:
    """All that `monitor windows` shows of one window."""

    start: datetime
    end: datetime
    granularity: Granularity
    rows: Mapping[Scope, Sequence[Row]]
    others: Mapping[Scope, Sequence[Other]]
    headlines: Sequence[Headline]
    late: int = 0
    """Judgments that came too late on the days of the window."""
    versus: Compared | Lacking | None = None
    """The week before the window's last day, if it was asked for."""


def rows_of(
    buckets: Mapping[datetime, BucketCounts],
    start: datetime,
    end: datetime,
    *,
    step: timedelta,
    segment: str = OVERALL,
) -> list[Row]:
    """Return the series of one scope that the segment asks for."""
    wanted = _escaped(segment)
    slots = []
    while start < end:
        slots.append((start, all_stats(window(buckets, start, min(start + step, end)).counts)))
        start += step
    stats = all_stats(window(buckets, slots[0][0], end).counts)
    keys = sorted(key for key in stats if key[1] == wanted or key[1].startswith(f"{wanted}="))
    return [
        Row(stats[key], tuple(_slot(begin, figures.get(key)) for begin, figures in slots))
        for key in sorted(keys, key=lambda key: (key[1], key[0] == CRITICAL, key[0]))
    ]


def table_of(scope: Scope, rows: Sequence[Row]) -> Table:
    """Return one scope's series for people."""
    title = f"{_whose(scope)}; judge {scope.judge_version}, rubric {scope.rubric_version}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("dimension", no_wrap=True)
    split = any(row.stats.segment != OVERALL for row in rows)
    if split:
        table.add_column("segment")
    for column, width in COLUMNS.items():
        table.add_column(column, justify="right", no_wrap=True, min_width=width)
    missing = any((row.stats.coverage or 0) < COVERAGE_MIN for row in rows)
    if missing:
        table.add_column("bounds", justify="right", no_wrap=True)
    table.add_column("course", no_wrap=True, overflow="crop")
    for row in rows:
        stats = row.stats
        table.add_row(
            stats.dimension,
            *([readable(stats.segment)] if split else []),
            _figure(stats.mean),
            _interval(stats.mean_low, stats.mean_high),
            _figure(stats.mean_unweighted),
            _share(stats.pass_at_4),
            _share(stats.critical_rate),
            f"{stats.n}",
            _judged(stats),
            *([_interval(*(stats.bounds or (None, None)))] if missing else []),
            row.bars,
        )
    return table


def _judged(stats: WindowStats) -> str:
    return _share(stats.coverage) + (f" ({stats.thinned} thinned)" if stats.thinned else "")


def headline_table(headline: Headline) -> Table:
    """Return the two-phase means of one cascade for people."""
    scope = headline.scope
    title = (
        f"Two-phase mean, {_whose(scope)}: what judge {scope.judge_version} would give over all that "
        f"judge {headline.first_judge} judged"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("dimension", no_wrap=True)
    for column in ("two-phase", "95 %", "first stage", "second alone", "n", "of both"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in headline.means:
        table.add_row(
            one.dimension,
            _figure(one.mean),
            _interval(one.low, one.high),
            _figure(one.cheap_mean),
            _figure(one.expensive_alone),
            f"{one.n}",
            f"{one.n_both}",
        )
    return table


def other_line(other: Other) -> str:
    """Return what of one key is in `*other`, as a sentence."""
    if other.key == STRATA:
        return f"{other.values} strata, {other.units} units, are one: beyond windows.strata_max of their day"
    return (
        f"{other.key}: {other.values} values, {other.units} units, are {other.key}={OTHER}: "
        "beyond windows.segment_values_max of their day"
    )


def as_values(shown: Shown) -> dict[str, Any]:
    """Return all series as JSON values."""
    return {
        "start": shown.start.isoformat(),
        "end": shown.end.isoformat(),
        "granularity": shown.granularity,
        "late": shown.late,
        "trailing": versus_values(shown.versus),
        "scopes": [
            scope.model_dump(mode="json")
            | {
                "series": [
                    asdict(row.stats)
                    | {
                        "coverage": row.stats.coverage,
                        "trailing": change_values(shown.versus, scope, row.stats),
                        "slots": [_slot_values(slot) for slot in row.slots],
                    }
                    for row in rows
                ],
                "others": [other.model_dump() for other in shown.others.get(scope, ())],
            }
            for scope, rows in shown.rows.items()
        ],
        "two_phase": [headline.model_dump(mode="json") for headline in shown.headlines],
    }


def _whose(scope: Scope) -> str:
    variant = f", variant {scope.variant}" if scope.variant else ""
    return f"{scope.assistant} ({scope.environment}{variant}), {scope.target}s"


def _slot(begin: datetime, stats: WindowStats | None) -> Slot:
    if stats is None:
        return Slot(begin, 0, None, None)
    return Slot(begin, stats.n, stats.mean, stats.critical_rate)


def _slot_values(slot: Slot) -> dict[str, Any]:
    return asdict(slot) | {"start": slot.start.isoformat()}


def _escaped(segment: str) -> str:
    key, equals, value = segment.partition("=")
    return segment if value == OTHER or not equals else f"{key}={name_of(value)}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None else f"{low:.2f}-{high:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
