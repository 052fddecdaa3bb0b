"""How all traffic and the budgets of failures stand, as `monitor status` shows them."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from rich.box import SIMPLE_HEAD
from rich.table import Table

from monitor.alerting.budgets import Budget
from monitor.alerting.plot import sparkline
from monitor.cli.asking import Looks
from monitor.detection.census import courses
from monitor.intake.event import Environment, Value
from monitor.intake.moments import floor

HOURS = 24
"""How far back the census is shown, a bar an hour."""
STEP = timedelta(hours=1)


class SignalLine(Value):
    """One signal of one assistant's traffic over the last day."""

    assistant: str
    environment: Environment
    signal: str
    share: float
    """Of the answers."""
    answers: int
    course: tuple[float | None, ...]
    """The share hour by hour; None where nothing was answered."""


def census_of(looks: Looks, strata: Sequence[str], now: datetime) -> tuple[SignalLine, ...]:
    """Return the shares of the last day's signals over all traffic; the hour that is under way is the last bar."""
    end = floor(now, minutes=60) + STEP
    start = end - HOURS * STEP
    found = []
    for (assistant, environment), buckets in sorted(looks.census(start, end, strata).items()):
        answers, told = courses(buckets, start, end, step=STEP)
        found += [
            SignalLine(
                assistant=assistant,
                environment=environment,
                signal=one.signal,
                share=one.share,
                answers=answers,
                course=one.course,
            )
            for one in told
            if one.share is not None
        ]
    return tuple(found)


def census_table(lines: Sequence[SignalLine]) -> Table:
    """Return the signals for people; bars reach from none to the highest hour."""
    table = _table(f"All traffic of the last {HOURS} h, judged or not; share of the answers")
    for head in ("assistant", "signal", "share", "answers"):
        table.add_column(head, justify="right" if head in {"share", "answers"} else "left", no_wrap=True)
    table.add_column("by the hour", no_wrap=True)
    for one in lines:
        highest = max((share for share in one.course if share is not None), default=0.0)
        table.add_row(
            _plain(f"{one.assistant} ({one.environment})"),
            one.signal,
            f"{one.share:.2%}",
            str(one.answers),
            sparkline(one.course, 0.0, highest or 1.0),
        )
    return table


def budget_lines(budgets: Sequence[Budget]) -> Iterator[str]:
    """Yield one sentence for each objective."""
    for one in budgets:
        variant = f", {one.variant}" if one.variant else ""
        where = f"{one.assistant} ({one.environment}{variant}), {one.dimension}"
        if one.indicator is None or one.left is None:
            yield f"{where}: nothing scored in the period, objective {one.objective:.1%}"
            continue
        burns = ", ".join(
            f"{'no data' if rate is None else f'{rate:.2g} times'} over {name}"
            for name, rate in one.burns.items()
        )
        yield (
            f"{where}: {one.indicator:.1%} of {one.n} scores at 4 or 5, objective {one.objective:.1%}; "
            f"{one.left:.0%} of the budget left; it burns {burns} (1 uses it up in the period)"
        )


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
