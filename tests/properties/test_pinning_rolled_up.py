"""What is always true of a baseline: that its buckets have left for hours changes nothing of it."""

import asyncio
from datetime import datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.detection.baseline import Baseline, BaselinePolicy
from monitor.detection.pinning import Span, overall_series, overall_slices, pinned_of, span_of
from monitor.windows.bucket import Granularity, Scope
from monitor.windows.policy import WindowPolicy
from tests.judgments import MINUTE, NOON, a_judgment

DAY = timedelta(days=1)
ROLLED, NEVER = WindowPolicy(), WindowPolicy(retention_days=60)
SCOPE = Scope.of(a_judgment())


async def pinned(policy: WindowPolicy, seed: int, start: datetime) -> tuple[Baseline, Span]:
    """Judge 300 conversations as time goes by, some of them days late, and pin from `start` on by the hour."""
    chance, store = np.random.default_rng(seed), MemoryWindowStore(policy)
    ended = NOON - np.sort(chance.random(300))[::-1] * 23 * DAY
    for number, now in enumerate(ended):
        late = chance.choice([0.0, 0.1, 7.9]) * DAY
        record = a_judgment(
            f"c-{number}",
            at=now - late,
            intent=("returns", "billing", "shipping")[number % 3],
            rate=(0.05, 0.25)[number % 2],
            scores={"safety": int(chance.integers(3, 6)), "actionability": int(chance.integers(1, 6))},
        )
        await store.apply([record], now=now)
    oldest = (await store.begins())[0]
    span = span_of(start, NOON, oldest=oldest, now=NOON, days=7, policy=ROLLED)
    assert isinstance(span, Span)
    assert span.granularity is Granularity.HOUR
    slices = await overall_slices(store, SCOPE, span)
    series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
    found = pinned_of(SCOPE, series, release="r", at=NOON, by="jo", policy=BaselinePolicy())
    return found.baseline, span


@given(st.integers(0, 2**31), st.integers(0, 11 * 1440))
@settings(max_examples=12, deadline=None)
def test_a_baseline_of_what_was_rolled_up_is_that_of_what_never_was(seed: int, minutes: int) -> None:
    """To the last digit, wherever the span begins between three weeks ago and the oldest bucket."""
    start = NOON - 21 * DAY + minutes * MINUTE
    rolled, span = asyncio.run(pinned(ROLLED, seed, start))
    never, same = asyncio.run(pinned(NEVER, seed, start))

    assert span == same
    assert rolled == never
