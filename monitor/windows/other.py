"""Counts in, how much went to `*other` out: values that came after the limit, and the units in them."""

from collections.abc import Mapping

from monitor.intake.event import Value
from monitor.windows.bucket import CRITICAL, OTHER, OVERALL, BucketCounts

STRATA = "strata"
"""Stands for the strata where others name a segment key."""


class Other(Value):
    """What of one segment key, or of the strata, has no series of its own."""

    key: str
    values: int
    """Different ones, by day and shard at most 512 that are told apart."""
    units: int
    """Units of the window that count there, judged or failed."""


def others_in(counts: BucketCounts, values: Mapping[str, int]) -> tuple[Other, ...]:
    """Return what a window has in `*other`, given how many values became it by key, as the store says."""
    units: dict[str, int] = dict.fromkeys(values, 0)
    for cell, count in counts.items():
        if cell.dimension != CRITICAL:
            continue
        key, _, value = cell.segment.partition("=")
        if value == OTHER:
            units[key] = units.get(key, 0) + count
        elif cell.segment == OVERALL and cell.stratum.startswith(OTHER):
            units[STRATA] = units.get(STRATA, 0) + count
    return tuple(Other(key=key, values=values.get(key, 0), units=n) for key, n in sorted(units.items()) if n)
