"""A sustained change's alert in, its figures in sentences out: how much, how sure, which groups explain it."""

from collections.abc import Iterator

from monitor.alerting.alert import Alert
from monitor.alerting.wording import stamp
from monitor.detection.change import ChangePart, Sustained
from monitor.detection.finding import FindingKind

_MIX_MIN = 0.005
"""Points, or as much of a share: less than this is not worth a word."""


def sustained_lines(alert: Alert) -> Iterator[str]:
    """Return when it began and how large it is, with what is not known of both."""
    known = alert.finding.sustained
    if known is None:
        return
    yield f"it began between {stamp(known.onset_low)} and {stamp(known.onset_high)}"
    if alert.kind is not FindingKind.REGRESSION:
        yield (
            f"share {known.value:.2%}, {known.normal:.2%} in {known.release} at the same mix of traffic: "
            f"{known.effect:+.2%} (95 %: {known.low:+.2%} to {known.high:+.2%}), n={known.n}"
        )
    else:
        yield (
            f"mean {known.value:.2f}, {known.normal:.2f} in {known.release} at the same mix of traffic: "
            f"{known.effect:+.2f} (95 %: {known.low:+.2f} to {known.high:+.2f}), n={known.n}"
        )
    if known.excused:
        yield f"{known.excused:+.2f} of what was seen is the judge's own shift, and is taken off already"
    yield f"evidence {known.evidence:.1f} where {known.threshold:.1f} is asked (baseline {known.baseline_id})"


def part_lines(alert: Alert) -> Iterator[str]:
    """Return what the raw change is made of, and which other segments show it; nothing for other alerts."""
    known = alert.finding.sustained
    if known is None:
        return
    rate = alert.kind is not FindingKind.REGRESSION
    if known.raw is not None and known.parts:
        within, mix = (sum(values) for values in zip(*((p.within, p.mix) for p in known.parts), strict=True))
        yield (
            f"the whole moved by {_points(known.raw, rate=rate)}: {_points(within, rate=rate)} within its groups, "
            f"{_points(mix, rate=rate)} by their mix"
        )
        yield from (_part(part, rate=rate) for part in known.parts if _matters(part, known))
    if known.explained_by:
        yield f"seen in these segments too: {', '.join(known.explained_by)}"


def _part(part: ChangePart, *, rate: bool) -> str:
    said = f"{part.group}: {_points(part.within, rate=rate)} within, {_points(part.mix, rate=rate)} by mix; "
    said += f"share {part.share:.0%} (before {part.share_before:.0%})"
    if part.mean is None or part.mean_before is None:
        return said
    figures = (f"{one:.2%}" if rate else f"{one:.2f}" for one in (part.mean, part.mean_before))
    return said + ", {} (before {})".format(*figures)


def _matters(part: ChangePart, known: Sustained) -> bool:
    least = _MIX_MIN * (1 if known.value > 1 else 0.1)
    return max(abs(part.within), abs(part.mix)) >= least


def _points(value: float, *, rate: bool) -> str:
    return f"{value:+.2%}" if rate else f"{value:+.2f}"
