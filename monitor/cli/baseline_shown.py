"""Baselines in, lines, tables and JSON values out."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from monitor.cli.asking import minute
from monitor.detection.baseline import (
    DAYS_FOR_HOURS_OF_WEEK,
    HOURS_DAY,
    HOURS_WEEK,
    Baseline,
    BaselineChange,
)
from monitor.detection.pinning import Pinned
from monitor.detection.trailing import Trailing
from monitor.windows.bucket import CRITICAL, Scope, readable

NOTEWORTHY_Z = 2.0
"""Standard errors from which a difference is shown in bold."""
_HOURS = {HOURS_WEEK: "hours of the week", HOURS_DAY: "hours of the day", 1: "no hours that differ"}
HOW = "run `monitor baseline pin --from START --to END --release NAME`"


def line_of(pinned: Pinned) -> str:
    """Return a baseline in a line."""
    baseline = pinned.baseline
    days = (baseline.end - baseline.start) / timedelta(days=1)
    return (
        f"{whose_of(pinned.scope)}: {pinned.release}, {days:.1f} days from {minute(baseline.start)} UTC, "
        f"{_conversations(baseline)}, pinned {minute(pinned.pinned_at)} UTC by {pinned.pinned_by}"
    )


def trailing_line(week: Trailing) -> str:
    """Return the week before the last day in a line, with how many of its days there are."""
    baseline = week.baseline
    return (
        f"{whose_of(week.scope)}: {baseline.label}, {week.days:.1f} days in {minute(baseline.start)} to "
        f"{minute(baseline.end)} UTC, {_conversations(baseline)}"
    )


def hours_line(baseline: Baseline) -> str:
    """Return which hours a baseline has learned, of how long a span, and what those of the week take."""
    days = (baseline.end - baseline.start) / timedelta(days=1)
    named = {
        words: [name for name, one in sorted(baseline.dimensions.items()) if len(one.profile) == cells]
        for cells, words in _HOURS.items()
    }
    told = "; ".join(f"{words} in {', '.join(names)}" for words, names in named.items() if names)
    cure = (
        f". Those of the week take {DAYS_FOR_HOURS_OF_WEEK} days (`pin --from`)"
        if days < DAYS_FOR_HOURS_OF_WEEK
        else ""
    )
    return f"  learned of {days:.1f} days: {told or 'no hours'}{cure}"


def missing_line(scope: Scope) -> str:
    """Return what is to be said of a scope without a baseline."""
    return f"{whose_of(scope)}: no baseline, so no sustained change is found: {HOW}"


def whose_of(scope: Scope) -> str:
    """Return whose baseline it is, with its judge and rubric."""
    variant = f", {scope.variant}" if scope.variant else ""
    return (
        f"{readable(scope.assistant)} ({scope.environment}{variant}; judge {scope.judge_version}, "
        f"rubric {scope.rubric_version})"
    )


def table_of(baseline: Baseline) -> Table:
    """Return the strata of every dimension."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("dimension", "stratum"):
        table.add_column(column, overflow="fold")
    for column in ("mean", "n", "tolerance", "wander"):
        table.add_column(column, justify="right", no_wrap=True)
    for dimension, known in sorted(baseline.dimensions.items()):
        for stratum, one in sorted(known.strata.items()):
            table.add_row(
                dimension,
                readable(stratum),
                f"{one.mean:.2f}",
                f"{one.n}",
                f"{one.tolerance:.3f}",
                f"{known.wander:.3f}",
            )
    for dimension, share in sorted(baseline.shares.items()):
        for stratum, rate in sorted(share.strata.items()):
            table.add_row(
                dimension, readable(stratum), f"{rate.share:.2%}", f"{rate.n}", f"<= {rate.high:.2%}", ""
            )
    return table


def difference_table(changes: Sequence[BaselineChange]) -> Table:
    """Return the strata side by side, the largest worsening first."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("dimension", "stratum"):
        table.add_column(column, overflow="fold")
    for column in ("before", "after", "change", "in its errors"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in changes:
        both = one.mean is not None and one.mean_before is not None
        change = f"{(one.mean or 0) - (one.mean_before or 0):+.2f}" if both else "-"
        z = "-" if one.z is None else f"{one.z:+.1f}"
        noteworthy = one.z is not None and abs(one.z) >= NOTEWORTHY_Z
        table.add_row(
            one.dimension,
            readable(one.stratum),
            _mean(one.mean_before),
            _mean(one.mean),
            change,
            z,
            style="bold" if noteworthy else None,
        )
    return table


def values_of(pinned: Pinned) -> dict[str, Any]:
    """Return a baseline without its strata, as JSON values."""
    return _values(pinned.scope, pinned.baseline) | {
        "pinned_at": pinned.pinned_at.isoformat(),
        "pinned_by": pinned.pinned_by,
    }


def trailing_values(week: Trailing) -> dict[str, Any]:
    """Return the week before the last day as JSON values, which nobody pinned."""
    return _values(week.scope, week.baseline) | {"pinned_at": None, "pinned_by": None, "days": week.days}


def _values(scope: Scope, baseline: Baseline) -> dict[str, Any]:
    return {
        "id": baseline.id,
        "release": baseline.label,
        "scope": scope.model_dump(mode="json"),
        "start": baseline.start.isoformat(),
        "end": baseline.end.isoformat(),
        "hours": {name: len(known.profile) for name, known in baseline.dimensions.items()},
        "units": {
            name: sum(one.n for one in known.strata.values()) for name, known in baseline.dimensions.items()
        }
        | {name: sum(one.n for one in known.strata.values()) for name, known in baseline.shares.items()},
    }


def _conversations(baseline: Baseline) -> str:
    judged = baseline.shares.get(CRITICAL)
    return f"{sum(one.n for one in judged.strata.values()) if judged else 0} conversations"


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
