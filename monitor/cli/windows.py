"""`monitor windows`: each series' figures in one window, with its course as a line of bars."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from agents.services import wall_now
from monitor.cli.asking import JsonOption, Looks, NameOption, looking, moment, printed, screen
from monitor.clock import floor
from monitor.judging.rubric import SCORE_MAX
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts, Scope, name_of, readable
from monitor.windows.window import WindowStats, all_stats, window

COLUMNS = {"mean": 4, "95 %": 9, "raw": 4, "pass@4": 6, "critical": 8, "n": 4, "judged": 6}
"""The figures and their widths; `raw` is the mean without weights, `judged` the coverage."""
BARS = "▁▂▃▄▅▆▇█"
NOTHING = "·"
SLOTS_MAX = 48
"""Bars in one line; more do not fit beside the figures."""
SHORT_HOURS = 6
"""Up to here a bar is a bucket, beyond an hour or more."""
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


def windows(
    hours: Annotated[float, typer.Option(help="Length of the window.", min=0.25, max=24 * 90)] = 6.0,
    segment: Annotated[
        str, typer.Option(help="`*` for everything, `intent` for all intents, `intent=returns` for one.")
    ] = OVERALL,
    until: Annotated[
        datetime | None, typer.Option(help="End of the window, UTC; without it the newest that is evaluated.")
    ] = None,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the figures of every series in one window: estimates for all traffic beside what was counted."""
    with looking(name) as (_, policy, looks):
        minutes = policy.monitor.windows.bucket_minutes
        end = until.replace(tzinfo=UTC) if until else newest_end(looks, minutes)
        start = end - timedelta(hours=hours)
        step = slot_length(hours, minutes)
        found = [
            (scope, rows_of(buckets, start, end, step=step, segment=segment))
            for scope, buckets in looks.buckets(start, end)
        ]
    if as_json:
        printed(json.dumps(as_values(found, start, end), indent=2))
        return
    console = screen()
    told = f"a bar is {step}, `{NOTHING}` one without judgments; raw: without weights, judged: coverage"
    console.print(f"From {moment(start)} to {moment(end)}; {told}", soft_wrap=True, highlight=False)
    if not any(rows for _, rows in found):
        console.print("No series has anything in this window; --until and --hours choose another one.")
    for scope, rows in found:
        console.print(table_of(scope, rows))


def newest_end(looks: Looks, minutes: int) -> datetime:
    """Return the end of the newest window worth a look: now, or on the stream's clock as far as it has data."""
    if looks.newest() is None:
        return floor(wall_now(), minutes=minutes) + timedelta(minutes=minutes)
    # A replay's clock runs on past its last event, so that all is over; there is nothing to see there.
    begins = looks.begins()
    through = looks.evaluated_through()
    filled = begins[-1] + timedelta(minutes=minutes) if begins else None
    return min(filter(None, (filled, through)), default=floor(wall_now(), minutes=minutes))


def slot_length(hours: float, bucket_minutes: int) -> timedelta:
    """Return how much time a bar stands for."""
    if hours <= SHORT_HOURS:
        return timedelta(minutes=bucket_minutes)
    return timedelta(hours=math.ceil(hours / SLOTS_MAX))


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


def sparkline(values: Iterable[float | None], low: float, high: float) -> str:
    """Return one bar for each value between low and high."""
    top = len(BARS) - 1
    span = high - low
    return "".join(
        NOTHING
        if value is None
        else BARS[min(top, max(0, round((value - low) / span * top)))]
        if span
        else BARS[top]
        for value in values
    )


def table_of(scope: Scope, rows: Sequence[Row]) -> Table:
    """Return one scope's series for people."""
    variant = f", variant {scope.variant}" if scope.variant else ""
    whose = f"{scope.assistant} ({scope.environment}{variant}), {scope.target}s"
    title = f"{whose}; judge {scope.judge_version}, rubric {scope.rubric_version}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("dimension", no_wrap=True)
    if any(row.stats.segment != OVERALL for row in rows):
        table.add_column("segment")
    for column, width in COLUMNS.items():
        table.add_column(column, justify="right", no_wrap=True, min_width=width)
    table.add_column("course", no_wrap=True, overflow="crop")
    for row in rows:
        stats = row.stats
        where = [readable(stats.segment)] if any(one.stats.segment != OVERALL for one in rows) else []
        interval = "-" if stats.mean_low is None else f"{stats.mean_low:.2f}-{stats.mean_high:.2f}"
        table.add_row(
            stats.dimension,
            *where,
            _figure(stats.mean),
            interval,
            _figure(stats.mean_unweighted),
            _share(stats.pass_at_4),
            _share(stats.critical_rate),
            f"{stats.n}",
            _judged(stats),
            row.bars,
        )
    return table


def as_values(found: Sequence[tuple[Scope, Sequence[Row]]], start: datetime, end: datetime) -> dict[str, Any]:
    """Return all series as JSON values."""
    return {
        "start": start.isoformat(),
        "end": end.isoformat(),
        "scopes": [
            scope.model_dump(mode="json")
            | {
                "series": [
                    asdict(row.stats)
                    | {"coverage": row.stats.coverage, "slots": [_slot_values(slot) for slot in row.slots]}
                    for row in rows
                ]
            }
            for scope, rows in found
        ],
    }


def _slot(begin: datetime, stats: WindowStats | None) -> Slot:
    if stats is None:
        return Slot(begin, 0, None, None)
    return Slot(begin, stats.n, stats.mean, stats.critical_rate)


def _slot_values(slot: Slot) -> dict[str, Any]:
    return asdict(slot) | {"start": slot.start.isoformat()}


def _escaped(segment: str) -> str:
    key, equals, value = segment.partition("=")
    return f"{key}={name_of(value)}" if equals else key


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _judged(stats: WindowStats) -> str:
    return _share(stats.coverage) + (f" ({stats.thinned} thinned)" if stats.thinned else "")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
