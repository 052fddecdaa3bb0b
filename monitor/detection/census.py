"""The census of all traffic in, buckets of shares out: escalations, thumbs down, fallbacks, refusals.

It is exact: nothing is sampled and nobody judges, so that every unit weighs one.
"""

from collections.abc import Mapping
from datetime import datetime

from monitor.sampling.census import CensusCounts
from monitor.sampling.decision import stratum
from monitor.windows.bucket import OVERALL, BucketCounts, Cell, Scope, name_of

SIGNALS: Mapping[str, str] = {
    "escalated": "escalations",
    "thumb_down": "thumbs_down",
    "fallback": "fallbacks",
    "refused": "refusals",
}
"""What the sampler counts, and the dimension that its share is."""
SHARES = frozenset(SIGNALS.values())
ANSWERS = ("turn", "conversation")
"""What a share is of: events with answers."""
_WHOLE = "1"


def share_buckets(counted: Mapping[datetime, CensusCounts], scope: Scope) -> dict[datetime, BucketCounts]:
    """Return the buckets of shares of one assistant, in strata of the sampler's own attributes."""
    return {begin: cells for begin, counts in counted.items() if (cells := _cells(counts, scope))}


def _cells(counts: CensusCounts, scope: Scope) -> dict[Cell, int]:
    prefix = stratum((scope.assistant, str(scope.environment))) + "|"
    answers: dict[str, int] = {}
    signals: dict[tuple[str, str], int] = {}
    for (whole, signal), count in counts.items():
        if not f"{whole}|".startswith(prefix):
            continue
        own = ",".join(map(name_of, whole[len(prefix) :].split("|")))
        if signal in ANSWERS:
            answers[own] = answers.get(own, 0) + count
        elif signal in SIGNALS:
            signals[own, SIGNALS[signal]] = signals.get((own, SIGNALS[signal]), 0) + count
    cells: dict[Cell, int] = {}
    for own, total in answers.items():
        for dimension in SHARES:
            # A thumb may come in a bucket after its answer; more thumbs than answers are all of them.
            bad = min(signals.get((own, dimension), 0), total)
            cells[Cell(dimension, OVERALL, own, "1", _WHOLE)] = bad
            cells[Cell(dimension, OVERALL, own, "0", _WHOLE)] = total - bad
    return {cell: count for cell, count in cells.items() if count}
