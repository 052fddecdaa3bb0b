"""What the demo shows while it runs: the clock, the funnel, the windows, the alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.render import title
from monitor.funnel import Funnel
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import CRITICAL, OVERALL, Scope
from monitor.windows.window import Window, all_stats

_BARS = "▁▂▃▄▅▆▇█"
_SCALE = (1.0, 5.0)


@dataclass(frozen=True)
class Look:
    """One look at the running demo."""

    sent: int
    evaluated: datetime
    funnel: Funnel
    windows: Sequence[tuple[Scope, Window]]
    alerts: Sequence[Alert]


def screen(look: Look) -> RenderableType:
    """Draw one look."""
    judged = sum(count for name, count in look.funnel.judgments.items() if name.endswith(" judged"))
    head = Text(
        f"{look.evaluated:%a %d %b %H:%M}  {look.sent} events  {look.funnel.sampled} kept  "
        f"{judged} judgments  {look.funnel.open} open"
    )
    return Group(head, _windows(look), *_alerts(look.alerts), Text())


def _windows(look: Look) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("last 6 hours", "mean", "", "pass@4", "n"):
        table.add_column(name, justify="left" if name in {"last 6 hours", ""} else "right")
    for scope, window in look.windows:
        if scope.target is not TargetKind.CONVERSATION:
            continue
        stats = all_stats(window.counts)
        for (dimension, segment), one in sorted(stats.items()):
            if segment != OVERALL or dimension == CRITICAL:
                continue
            mean = "no data" if one.mean is None else f"{one.mean:.2f}"
            passed = "" if one.pass_at_4 is None else f"{one.pass_at_4:.0%}"
            table.add_row(dimension, mean, _bar(one.mean), passed, str(one.n))
        critical = stats.get((CRITICAL, OVERALL))
        if critical is not None and critical.critical_rate is not None:
            table.add_row("critical failures", f"{critical.critical_rate:.1%}", "", "", str(critical.n))
    return table


def _bar(mean: float | None) -> str:
    if mean is None:
        return ""
    low, high = _SCALE
    share = (mean - low) / (high - low)
    full = int(share * 20)
    rest = _BARS[min(7, int((share * 20 - full) * 8))] if full < len(_BARS) * 20 else ""
    return ("█" * full + rest)[:20]


def _alerts(alerts: Sequence[Alert]) -> list[Text]:
    if not alerts:
        return [Text("no alert so far", style="green")]
    colours = {AlertState.FIRING: "red", AlertState.PENDING: "yellow", AlertState.RESOLVED: "green"}
    return [
        Text(f"{alert.firings[0]:%a %H:%M} {alert.severity:6} {title(alert)}", style=colours[alert.state])
        for alert in alerts
    ]
