"""The course of a figure in, a small plot out: a line of bars for text, inline SVG for HTML."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from html import escape

from monitor.alerting.message import Plot
from monitor.alerting.wording import duration, stamp

BARS = "▁▂▃▄▅▆▇█"
NOTHING = "·"
"""A point without data: it is not the lowest bar."""
WIDTH, HEIGHT, MARGIN = 480, 96, 8


def sparkline(values: Iterable[float | None], low: float, high: float) -> str:
    """Return one bar for each value between low and high."""
    top, span = len(BARS) - 1, high - low
    return "".join(
        NOTHING
        if value is None
        else BARS[min(top, max(0, round((value - low) / span * top)))]
        if span
        else BARS[top]
        for value in values
    )


def line(plot: Plot) -> str:
    """Return the course as bars with its scale, in one line."""
    low, high = scale(plot)
    bars = sparkline((point.value for point in plot.points), low, high)
    begin, end = plot.points[0].at, plot.points[-1].at + plot.step
    return (
        f"{bars}  {plot.of} between {low:.3g} and {high:.3g}, "
        f"{stamp(begin)} to {stamp(end)}, a bar is {duration(plot.step)}"
    )


def scale(plot: Plot) -> tuple[float, float]:
    """Return the least and the greatest that is drawn, the gate among them."""
    values = [point.value for point in plot.points if point.value is not None]
    if plot.limit is not None:
        values.append(plot.limit)
    return min(values), max(values)


def svg(plot: Plot) -> str:
    """Return the course as inline SVG without a script, a style or an address."""
    low, high = scale(plot)
    span = (high - low) or 1.0
    across = (WIDTH - 2 * MARGIN) / max(1, len(plot.points) - 1)

    def height(value: float) -> float:
        return round(HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN), 1)

    drawn = [
        (round(MARGIN + number * across, 1), height(point.value)) if point.value is not None else None
        for number, point in enumerate(plot.points)
    ]
    parts = [f"<title>{escape(line(plot))}</title>"]
    if plot.limit is not None:
        y = height(plot.limit)
        parts.append(_line(MARGIN, y, WIDTH - MARGIN, y, colour="#b42318", dash="4 3"))
    x = _onset(plot, across)
    if x is not None:
        parts.append(_line(x, MARGIN, x, HEIGHT - MARGIN, colour="#667085", dash="2 2"))
    for run in _runs(drawn):
        path = " ".join(f"{x},{y}" for x, y in run)
        parts.append(f'<polyline points="{path}" fill="none" stroke="#175cd3" stroke-width="2"/>')
        # A point between two gaps would be a line of no length.
        parts += [f'<circle cx="{x}" cy="{y}" r="2.5" fill="#175cd3"/>' for x, y in run]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, *, colour: str, dash: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-dasharray="{dash}"/>'


def _onset(plot: Plot, across: float) -> float | None:
    place = (plot.onset - plot.points[0].at) / plot.step if plot.step > timedelta(0) else -1.0
    return round(MARGIN + place * across, 1) if 0 <= place <= len(plot.points) - 1 else None


def _runs(drawn: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for point in drawn:
        if point is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
