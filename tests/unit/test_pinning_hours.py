"""A span that begins before the oldest bucket: it is read by the hour, nothing of it twice and nothing left out."""

from datetime import datetime, timedelta

import pytest

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import Transition
from monitor.alerting.evaluation import evaluate
from monitor.alerting.regressions import Detection
from monitor.detection.baseline import BaselinePolicy, pin_dimension
from monitor.detection.gates import GatePolicy
from monitor.detection.pinning import (
    Lacking,
    Pinned,
    Span,
    overall_series,
    overall_slices,
    pinned_of,
    span_of,
)
from monitor.detection.policy import DetectionPolicy
from monitor.windows.bucket import BucketCounts, Granularity
from monitor.windows.policy import WindowPolicy
from tests.drawn import GOOD, MONDAY, QUARTER, SCOPE, Drawn
from tests.judgments import HOUR, MINUTE

WINDOWS = WindowPolicy()
DAY = timedelta(days=1)
NIGHTS_OF_WEEKENDS = [
    {"hours": [168 * week + night, 168 * week + night + 6], "dimension": dimension, "fall": 0.1}
    for week in range(-3, 1)
    for night in (120, 144)
    for dimension in GOOD
]
STORY = {"traffic": {"per_hour": 600}, "changes": NIGHTS_OF_WEEKENDS}


def spanned(
    start: datetime | None,
    end: datetime = MONDAY,
    *,
    oldest: datetime | None = MONDAY - 9 * DAY,
    days: float = 7,
    policy: WindowPolicy = WINDOWS,
) -> Span:
    found = span_of(start, end, oldest=oldest, now=MONDAY, days=days, policy=policy)
    assert isinstance(found, Span)
    return found


async def filled(days: int) -> tuple[MemoryWindowStore, dict[datetime, BucketCounts]]:
    """Return a store in which the days before the story were judged as time went by, and the buckets as they were."""
    drawn, store = Drawn(STORY), MemoryWindowStore(WINDOWS)
    raw = {at: drawn.bucket(at) for at in (drawn.start - n * QUARTER for n in range(1, days * 96 + 1))}
    store._buckets |= {(SCOPE, at): dict(counts) for at, counts in raw.items()}
    await store.apply([], now=drawn.start)
    return store, dict(raw)


def pinned(slices: dict[datetime, BucketCounts], span: Span) -> Pinned:
    series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
    return pinned_of(SCOPE, series, release="r", at=MONDAY, by="jo", policy=BaselinePolicy())


def test_a_span_of_which_all_buckets_are_kept_is_read_in_them() -> None:
    """Whoever pins last week gets what they asked for, to the quarter."""
    span = spanned(MONDAY - 8 * DAY + 20 * MINUTE, MONDAY - 10 * MINUTE)

    assert span.granularity is Granularity.BUCKET
    assert (span.start, span.end) == (MONDAY - 8 * DAY + QUARTER, MONDAY - QUARTER)
    assert spanned(None).start == MONDAY - 7 * DAY


def test_a_longer_one_is_read_by_the_hour_and_holds_no_hour_that_was_not_asked_for() -> None:
    """Half an hour cannot be told apart any more; what nobody vouched for is not normal."""
    span = spanned(MONDAY - 21 * DAY + 20 * MINUTE, MONDAY - 10 * MINUTE)

    assert (span.granularity, span.bucket_minutes) == (Granularity.HOUR, 60)
    assert (span.start, span.end) == (MONDAY - 21 * DAY + HOUR, MONDAY - HOUR)
    assert spanned(None, MONDAY - QUARTER, days=21) == Span(
        MONDAY - 21 * DAY - HOUR, MONDAY - HOUR, Granularity.HOUR, 60
    )


@pytest.mark.parametrize(
    ("start", "oldest"),
    [
        # Those of another scope have left, or those of this quarter.
        (MONDAY - 9 * DAY, MONDAY - 9 * DAY),
        # One shard of several was asked for nothing since, and still holds what the others rolled up.
        (MONDAY - 9 * DAY - QUARTER, MONDAY - 10 * DAY),
        # The workers' clock is ahead of what is evaluated.
        (MONDAY - 9 * DAY + HOUR, MONDAY - 9 * DAY + 2 * HOUR),
        (MONDAY - 10 * DAY, None),
    ],
)
def test_where_a_bucket_may_have_left_hours_are_read(start: datetime, oldest: datetime | None) -> None:
    """A baseline without its first hours would look like any other."""
    assert spanned(start, oldest=oldest).granularity is Granularity.HOUR


def test_a_span_before_the_oldest_hour_is_refused_with_the_cure() -> None:
    """Days tell no hour of the week, and half a span is none."""
    assert spanned(MONDAY - 90 * DAY).start == MONDAY - 90 * DAY
    wrong = span_of(MONDAY - 91 * DAY, MONDAY, oldest=None, now=MONDAY, days=7, policy=WINDOWS)

    assert isinstance(wrong, Lacking)
    assert not wrong.curable
    assert "hours are kept for 90 days (windows.hourly_days)" in wrong.reason
    assert f"begin it on {MONDAY - 90 * DAY:%Y-%m-%dT%H:%M} UTC or later" in wrong.reason


async def test_hours_and_buckets_make_the_baseline_that_the_raw_buckets_make() -> None:
    """What was rolled up is neither lost nor there twice, and an hour is an hour either way."""
    store, raw = await filled(21)
    span = spanned(MONDAY - 21 * DAY)
    mixed = pinned(await overall_slices(store, SCOPE, span), span).baseline
    exact = pinned(raw, Span(span.start, span.end, Granularity.BUCKET, 15)).baseline

    assert len(await store.buckets(SCOPE, span.start, span.end)) == 9 * 96
    assert (mixed.bucket_minutes, exact.bucket_minutes) == (60, 15)
    assert (mixed.start, mixed.end) == (exact.start, exact.end)
    assert mixed.shares == exact.shares
    for name, known in exact.dimensions.items():
        own = mixed.dimensions[name]
        assert own.profile == pytest.approx(known.profile, abs=1e-12)
        assert own.wander == pytest.approx(known.wander, abs=1e-9)
        for stratum, one in known.strata.items():
            found = own.strata[stratum]
            assert (found.mean, found.variance, found.n) == (one.mean, one.variance, one.n)
            assert found.slope == pytest.approx(one.slope)
            assert found.tolerance == pytest.approx(one.tolerance)


async def test_an_hour_that_is_half_rolled_up_is_added_together() -> None:
    """The server rolls up eight slices in a call, so that an hour may stand in both levels for a while."""
    store, _ = await filled(21)
    edge = MONDAY - 9 * DAY
    hours, buckets = store._levels[Granularity.HOUR], store._buckets
    for minutes in (0, 15):
        left = buckets.pop((SCOPE, edge + minutes * MINUTE))
        hour = hours.setdefault((SCOPE, edge), {})
        hours[SCOPE, edge] = {cell: hour.get(cell, 0) + left.get(cell, 0) for cell in {*hour, *left}}
    span = spanned(MONDAY - 21 * DAY)
    whole, _ = await filled(21)

    assert await overall_slices(store, SCOPE, span) == await overall_slices(whole, SCOPE, span)


async def test_what_is_read_of_a_span_holds_no_segments() -> None:
    """Three weeks of 200 prompts would not fit beside what people run on the same machine."""
    store, _ = await filled(21)
    slices = await overall_slices(store, SCOPE, spanned(MONDAY - 21 * DAY))

    assert len(slices) == 21 * 24
    assert {cell.segment for counts in slices.values() for cell in counts} == {"*"}


async def test_days_without_traffic_teach_no_hours() -> None:
    """A deployment of twelve days that pins three weeks has seen each weekend once or twice, one of a day no night."""
    store, _ = await filled(21)
    slices = await overall_slices(store, SCOPE, spanned(MONDAY - 21 * DAY))

    def profiles(days: float) -> set[int]:
        kept = {at: counts for at, counts in slices.items() if at >= MONDAY - days * DAY}
        series = overall_series(kept, start=MONDAY - 21 * DAY, end=MONDAY, bucket_minutes=60)
        return {len(pin_dimension(one, BaselinePolicy()).profile) for one in series if len(one.values) > 2}

    assert profiles(21) == {168}
    assert 168 not in profiles(12)
    assert profiles(2.5) == {1}


async def test_a_weekend_team_that_three_weeks_have_shown_is_normal() -> None:
    """A tenth of a point worse on the nights of weekends, as it was on those before: nobody is told."""
    store, _ = await filled(21)
    span = spanned(MONDAY - 21 * DAY)
    known = pinned(await overall_slices(store, SCOPE, span), span)
    baselines, alerts = MemoryBaselines(), MemoryAlertStore()
    await baselines.pin(known)
    leader, drawn = Detection(baselines, DetectionPolicy(), WINDOWS), Drawn(STORY)
    told: list[Transition] = []
    for number in range(7 * 96):
        begin = MONDAY + number * QUARTER
        store._buckets[SCOPE, begin] = drawn.bucket(begin)
        # The days before the weekend have nothing in them; to ask at each of their quarters takes a while.
        if number >= 4 * 96:
            told += await evaluate(store, alerts, GatePolicy(gates={}), now=begin + QUARTER, detection=leader)

    assert told == []
    for dimension in known.baseline.dimensions.values():
        assert len(dimension.profile) == 168
        # Mean over the nights: what the week's nights and the weekend's have in them.
        weekend = [dimension.profile[at + hour] for at in (120, 144) for hour in range(6)]
        week = [dimension.profile[24 * day + hour] for day in range(5) for hour in range(6)]
        assert sum(weekend) / 12 - sum(week) / 30 == pytest.approx(-0.1, abs=0.05)
