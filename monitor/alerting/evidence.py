"""Windows now and before in, evidence out: what changed, how much, where, and the worst cases."""

from collections.abc import Iterable
from typing import get_args

from monitor.alerting.agreement import Agreement
from monitor.alerting.changes import Sighting
from monitor.detection.finding import Figure
from monitor.intake.event import ChangeEvent, Moment, Value
from monitor.judging.drift import Shift
from monitor.windows.bucket import CRITICAL, OVERALL, readable
from monitor.windows.case import Case, worst_first
from monitor.windows.policy import ConfigurationKey
from monitor.windows.window import Window, WindowStats, all_stats

CASES_MAX = 8
"""Worst cases shown; more of them are not read."""
CHANGES_MAX = 6
"""Segments shown as explanation."""


class Change(Value):
    """One segment now against before: its share of the traffic and its figure."""

    segment: str
    n: int
    share: float
    share_before: float | None = None
    figure: float | None = None
    figure_before: float | None = None
    effect: float = 0.0
    """What it takes from the overall figure, as far as this segment alone explains it."""

    @property
    def is_new(self) -> bool:
        """Tell whether there was traffic before and none of it here."""
        return self.share_before == 0

    @property
    def is_configuration(self) -> bool:
        """Tell whether the segment is something that people deploy."""
        return self.segment.partition("=")[0] in get_args(ConfigurationKey)


class Point(Value):
    """One stretch of a plotted series; None is no data."""

    at: Moment
    value: float | None
    n: int = 0


class Evidence(Value):
    """What stands behind an alert, frozen when people were told of it."""

    start: Moment
    end: Moment
    figures: tuple[Figure, ...] = ()
    changes: tuple[Change, ...] = ()
    cases: tuple[Case, ...] = ()
    happened: tuple[ChangeEvent, ...] = ()
    """What was announced near the onset, in the order of time."""
    sightings: tuple[Sighting, ...] = ()
    """What served for the first time near the onset."""
    course: tuple[Point, ...] = ()
    """The figure over the last day, for a small plot."""
    agreement: Agreement | None = None
    judge_drift: Shift | None = None
    """By how much the judge itself scores differently, where the anchors say that it has drifted."""

    @property
    def new_configurations(self) -> tuple[Change, ...]:
        """Return what serves traffic now and served none before, the largest first."""
        new = (change for change in self.changes if change.is_new and change.is_configuration)
        return tuple(sorted(new, key=lambda change: (-change.share, change.segment)))


def explain(now: Window, before: Window, dimension: str) -> tuple[Change, ...]:
    """Return the segments that take most from a dimension's figure, and each new configuration."""
    stats, stats_before = all_stats(now.counts), all_stats(before.counts)
    overall = stats.get((dimension, OVERALL))
    if overall is None or not overall.weight:
        return ()
    overall_before = stats_before.get((dimension, OVERALL))
    changes = [
        _change(series, overall, stats_before.get((dimension, segment)), overall_before)
        for (name, segment), series in stats.items()
        if name == dimension and segment != OVERALL and series.n
    ]
    changes.sort(key=lambda change: (-change.effect, change.segment))
    # A new configuration is the first thing to look at, however little it explains by itself.
    new = [change for change in changes if change.is_new and change.is_configuration]
    rest = [change for change in changes if change not in new and change.effect > 0]
    return tuple((*new, *rest)[:CHANGES_MAX])


def _change(
    series: WindowStats, overall: WindowStats, before: WindowStats | None, all_before: WindowStats | None
) -> Change:
    share = series.weight / overall.weight
    share_before = None
    if all_before is not None and all_before.weight:
        share_before = before.weight / all_before.weight if before else 0.0
    figure, figure_before = _figure(series), _figure(before)
    # A segment without a past is measured against all traffic of the past, or of now.
    reference = next(
        (x for x in (figure_before, _figure(all_before), _figure(overall)) if x is not None),
        None,
    )
    worse = 0.0
    if figure is not None and reference is not None:
        worse = figure - reference if series.dimension == CRITICAL else reference - figure
    return Change(
        segment=series.segment,
        n=series.n,
        share=share,
        share_before=share_before,
        figure=figure,
        figure_before=figure_before,
        effect=share * worse,
    )


def _figure(stats: WindowStats | None) -> float | None:
    if stats is None:
        return None
    return stats.critical_rate if stats.dimension == CRITICAL else stats.mean


def pick_cases(cases: Iterable[Case], limit: int = CASES_MAX) -> tuple[Case, ...]:
    """Return the worst cases, one a conversation, distinct in kind before a kind comes twice."""
    ordered = sorted(cases, key=worst_first)
    seen: set[str] = set()
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for case in ordered:
        if case.conversation_id not in seen:
            seen.add(case.conversation_id)
            groups.setdefault((case.dimension, case.kind or "", case.intent), []).append(case)
    picked: list[Case] = []
    while groups and len(picked) < limit:
        for key in list(groups):
            picked.append(groups[key].pop(0))
            if not groups[key]:
                del groups[key]
    return tuple(sorted(picked[:limit], key=worst_first))


def concerns(case: Case, segment: str) -> bool:
    """Tell whether a case lies in a segment, as far as a case knows its segments."""
    key, _, value = segment.partition("=")
    known = {"intent": case.intent, "prompt_hash": case.prompt_hash}
    return key not in known or known[key] == readable(value)
