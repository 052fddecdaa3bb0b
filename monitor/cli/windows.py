"""`monitor windows`: each series' figures in one window, with its course as a line of bars."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from monitor.alerting.plot import NOTHING
from monitor.cli.asking import JsonOption, NameOption, looking, moment, printed, screen
from monitor.cli.baseline import unpinned_lines
from monitor.cli.last_week import Compared, compared, versus_line, versus_table
from monitor.cli.status import first_judge
from monitor.cli.windows_read import granularity_of, newest_end, slot_length, slot_words
from monitor.cli.windows_shown import Shown, as_values, headline_table, other_line, rows_of, table_of
from monitor.detection.pinning import Span
from monitor.intake.moments import floor
from monitor.windows.bucket import OVERALL, Granularity
from monitor.windows.headline import headlines
from monitor.windows.other import others_in
from monitor.windows.window import merged


def windows(
    *,
    hours: Annotated[float, typer.Option(help="Length of the window.", min=0.25, max=24 * 3650)] = 6.0,
    days: Annotated[
        float | None,
        typer.Option(help="Length of the window in days, in the place of --hours.", min=0.01, max=3650),
    ] = None,
    granularity: Annotated[
        Granularity | None,
        typer.Option(
            help="What is read; without it the finest that is kept for as long as the window reaches back."
        ),
    ] = None,
    segment: Annotated[
        str, typer.Option(help="`*` for everything, `intent` for all intents, `intent=returns` for one.")
    ] = OVERALL,
    until: Annotated[
        datetime | None, typer.Option(help="End of the window, UTC; without it the newest that is evaluated.")
    ] = None,
    trailing: Annotated[
        bool,
        typer.Option(
            "--trailing",
            help="Tell what changed against the week before the window's last day; takes seconds to read.",
        ),
    ] = False,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the figures of every series in one window: estimates for all traffic beside what was counted."""
    length = timedelta(days=days) if days else timedelta(hours=hours)
    with looking(name) as (settings, policy, looks):
        rules = policy.monitor.windows
        newest = newest_end(looks, rules.bucket_minutes)
        end = until.replace(tzinfo=UTC) if until else newest
        read = granularity_of(newest - (end - length), granularity, rules)
        size = read.minutes(rules)
        # An hour or a day that the window begins in is taken whole.
        start = end - length if read is Granularity.BUCKET else floor(end - length, minutes=size)
        step = slot_length(end - start, timedelta(minutes=size))
        found = looks.buckets(start, end, read)
        versus = compared(looks, policy, Span(start, end, read, size), found) if trailing else None
        counts = {scope: merged(slices.values()) for scope, slices in found}
        shown = Shown(
            start=start,
            end=end,
            granularity=read,
            rows={scope: rows_of(slices, start, end, step=step, segment=segment) for scope, slices in found},
            others={scope: others_in(counts[scope], looks.others(scope, start, end)) for scope in counts},
            late=looks.late(start, end),
            headlines=headlines(counts, first_judge=first_judge(settings, policy), segment=segment),
            versus=versus,
        )
        unpinned = unpinned_lines(looks, counts, first_judge(settings, policy))
    if as_json:
        printed(json.dumps(as_values(shown), indent=2))
        return
    _show(shown, step=step, segment=segment)
    for line in unpinned:
        screen().print(line, soft_wrap=True, highlight=False, markup=False)


def _show(shown: Shown, *, step: timedelta, segment: str) -> None:
    console = screen()
    told = f"a bar is {slot_words(step)}, `{NOTHING}` one without judgments; raw: without weights, judged: coverage"
    console.print(
        f"From {moment(shown.start)} to {moment(shown.end)}; {told}", soft_wrap=True, highlight=False
    )
    if not any(shown.rows.values()):
        what = "No series" if segment == OVERALL else f"No series of the segment {segment}"
        told = f"{what} has anything in this window; --until with --hours or --days chooses another one."
        console.print(told, soft_wrap=True, highlight=False, markup=False)
    for scope, rows in shown.rows.items():
        if rows:
            console.print(table_of(scope, rows))
            if isinstance(shown.versus, Compared):
                table = versus_table(shown.versus, scope, [row.stats for row in rows])
                console.print(table if table.row_count else table.title, highlight=False)
        for other in shown.others[scope]:
            console.print(other_line(other), soft_wrap=True, highlight=False, markup=False)
    if shown.versus:
        console.print(versus_line(shown.versus), soft_wrap=True, highlight=False, markup=False)
    if shown.late:
        console.print(
            f"{shown.late} judgments came too late on these days; they are in no window.", highlight=False
        )
    for headline in shown.headlines:
        console.print(headline_table(headline))
