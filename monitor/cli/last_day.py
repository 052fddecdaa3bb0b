"""What `monitor status` says of the windows of the last day beyond their series."""

from datetime import timedelta

from monitor.cli.asking import Looks
from monitor.cli.windows_read import newest_end
from monitor.cli.windows_shown import other_line
from monitor.intake.event import Value
from monitor.policy import Policy
from monitor.windows.bucket import Scope
from monitor.windows.headline import Headline, headlines
from monitor.windows.other import Other, others_in
from monitor.windows.window import merged

HOURS = 24


class OtherOf(Other):
    """What one scope has in `*other`."""

    scope: Scope


class LastDay(Value):
    """What no series shows."""

    two_phase: tuple[Headline, ...] = ()
    """Of a cascade: what its second judge would give over all."""
    others: tuple[OtherOf, ...] = ()
    """What came after the limits of series and has none of its own."""
    late: int = 0
    """Judgments that came too late for their bucket, today and yesterday."""


def last_day(policy: Policy, looks: Looks, first_judge: str | None) -> LastDay:
    """Read the buckets of the last 24 hours."""
    end = newest_end(looks, policy.monitor.windows.bucket_minutes)
    start = end - timedelta(hours=HOURS)
    counts = {scope: merged(buckets.values()) for scope, buckets in looks.buckets(start, end)}
    return LastDay(
        two_phase=headlines(counts, first_judge=first_judge),
        others=tuple(
            OtherOf(scope=scope, **dict(other))
            for scope, found in counts.items()
            for other in others_in(found, looks.others(scope, start, end))
        ),
        late=looks.late(start, end),
    )


def lines_of(found: LastDay) -> list[str]:
    """Return it for people."""
    lines = []
    if found.late:
        lines.append(f"Judgments that came too late for their window since yesterday: {found.late}")
    for headline in found.two_phase:
        of = f"judge {headline.scope.judge_version} over judge {headline.first_judge}, {headline.scope.target}s"
        lines.append(f"Two-phase means of the last {HOURS} h ({of}):")
        for one in headline.means:
            known = "too few pairs" if one.low is None else f"{one.low:.2f}-{one.high:.2f}"
            lines.append(f"  {one.dimension}: {one.mean:.2f} ({known}); first stage {one.cheap_mean:.2f}")
    lines += [
        f"Last {HOURS} h, {other.scope.assistant}, {other.scope.target}s: {other_line(other)}"
        for other in found.others
    ]
    return lines
