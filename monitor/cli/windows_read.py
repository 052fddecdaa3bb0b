"""Which windows people look at: where the newest ends, what is read of it, what a bar stands for."""

from datetime import datetime, timedelta

import typer

from agents.services import wall_now
from monitor.alerting.wording import duration
from monitor.cli.asking import Looks
from monitor.intake.moments import floor
from monitor.windows.bucket import Granularity
from monitor.windows.policy import WindowPolicy

SLOTS_MAX = 48
"""Bars in one line; more do not fit beside the figures."""
SHORT_HOURS = 6
"""Up to here a bar is a bucket, beyond an hour or more."""


def newest_end(looks: Looks, minutes: int) -> datetime:
    """Return the end of the newest window worth a look: now, or on the stream's clock as far as it has data."""
    if looks.newest() is None:
        return floor(wall_now(), minutes=minutes) + timedelta(minutes=minutes)
    # A replay's clock runs on past its last event, so that all is over; there is nothing to see there.
    begins = looks.begins()
    through = looks.evaluated_through()
    filled = begins[-1] + timedelta(minutes=minutes) if begins else None
    return min(filter(None, (filled, through)), default=floor(wall_now(), minutes=minutes))


def granularity_of(back: timedelta, asked: Granularity | None, policy: WindowPolicy) -> Granularity:
    """Return what is read for a window that reaches so far back; raises typer.BadParameter if it is not kept."""
    kept = {
        Granularity.BUCKET: policy.retention_days,
        Granularity.HOUR: policy.hourly_days,
        Granularity.DAY: policy.daily_days,
    }
    reach = [one for one, days in kept.items() if back <= timedelta(days=days)]
    if asked is None:
        return reach[0] if reach else Granularity.DAY
    if asked in reach or not reach:
        return asked
    raise typer.BadParameter(
        f"a {asked} is kept for {kept[asked]} days, and the window reaches further back; "
        f"ask for --granularity {reach[0]}, or for fewer days",
        param_hint="--granularity",
    )


def slot_length(length: timedelta, size: timedelta) -> timedelta:
    """Return how much time a bar stands for: a slice, or whole hours or slices of them."""
    if length <= timedelta(hours=SHORT_HOURS):
        return size
    size = max(size, timedelta(hours=1))
    return -(-length // (SLOTS_MAX * size)) * size


def slot_words(length: timedelta) -> str:
    """Return how much time a bar stands for, as people say it."""
    whole = length >= timedelta(days=1) and not length % timedelta(days=1)
    return f"{length.days} d" if whole else duration(length)
