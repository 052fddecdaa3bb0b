"""What changed against the week before the last day: at the same mix of traffic, with an interval, for people only."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from monitor.detection.baseline import BaselinePolicy
from monitor.detection.pinning import Lacking, Span, every_series
from monitor.detection.trailing import Trailing, Versus, trailing_of, trailing_span, versus
from monitor.windows.bucket import OVERALL, BucketCounts, Cell, Granularity
from monitor.windows.policy import WindowPolicy
from tests.drawn import QUARTER, SCOPE

END = datetime(2026, 3, 9, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
POLICY = WindowPolicy()
WEEK = Span(END - 8 * DAY, END - DAY, Granularity.BUCKET, 15)
GOOD = {"billing": (0, 0, 0, 10, 10), "refund": (0, 0, 5, 10, 5)}
"""Units by score in each bucket: means 4.5 and 4.0."""
LESS = {"billing": (0, 0, 0, 14, 6), "refund": (0, 0, 7, 10, 3)}
"""Both 0.2 lower."""

WEEK_BUCKETS = 7 * 96

Units = Mapping[str, tuple[int, ...]]


def a_bucket(units: Units, segment: str = OVERALL, dimension: str = "safety") -> BucketCounts:
    return {
        Cell(dimension, segment, stratum, str(score), "0.1"): count
        for stratum, counts in units.items()
        for score, count in enumerate(counts, start=1)
        if count
    }


def slices(start: datetime, end: datetime, units: Units) -> dict[datetime, BucketCounts]:
    return {start + n * QUARTER: a_bucket(units) for n in range((end - start) // QUARTER)}


def a_week(units: Units = GOOD) -> Trailing:
    week = trailing_of(SCOPE, slices(WEEK.start, WEEK.end, units), WEEK, BaselinePolicy())
    assert week is not None
    return week


def changed(week: Trailing, window: Mapping[datetime, BucketCounts], hours: int = 6) -> Versus | None:
    [series] = every_series(window, start=END - hours * HOUR, end=END, bucket_minutes=15)
    return versus(series, week)


def test_another_mix_of_traffic_is_no_change() -> None:
    """More refunds lower the raw mean by a quarter of a point, and no answer is worse."""
    refunds = {"billing": (0, 0, 0, 5, 5), "refund": (0, 0, 15, 30, 15)}

    found = changed(a_week(), slices(END - 6 * HOUR, END, refunds))

    assert found is not None
    assert found.effect == pytest.approx(0, abs=1e-9)
    assert found.low < 0 < found.high
    assert not found.is_change
    assert (found.n, found.days) == (24 * 70, 7)


def test_a_fall_is_shown_with_an_interval_that_holds_it() -> None:
    """Better or worse than last week, by how much, and how sure that is."""
    found = changed(a_week(), slices(END - 6 * HOUR, END, LESS))

    assert found is not None
    assert found.effect == pytest.approx(-0.2)
    assert -0.3 < found.low < -0.2 < found.high < -0.1
    assert found.is_change


def test_at_least_nineteen_of_twenty_intervals_hold_what_is_true() -> None:
    """An interval that is too short would mark chance; the week's own wander makes it a little long."""
    chance = np.random.default_rng(7)
    chances = (0.02, 0.03, 0.1, 0.35, 0.5)
    of_week = chance.multinomial(20, chances, size=WEEK_BUCKETS)
    week = trailing_of(
        SCOPE,
        {WEEK.start + n * QUARTER: a_bucket({"billing": tuple(row)}) for n, row in enumerate(of_week)},
        WEEK,
        BaselinePolicy(),
    )
    assert week is not None
    drawn = [
        changed(
            week,
            {
                END - HOUR + n * QUARTER: a_bucket({"billing": tuple(row)})
                for n, row in enumerate(chance.multinomial(20, chances, size=4))
            },
            hours=1,
        )
        for _ in range(400)
    ]

    marked = sum(one.is_change for one in drawn if one) / len(drawn)
    assert 0.01 < marked < 0.06


def test_a_window_is_held_against_the_same_hours_of_the_day() -> None:
    """A night that is as bad as every night is no news in the morning."""
    week = {at: a_bucket(LESS if at.hour < 12 else GOOD) for at in slices(WEEK.start, WEEK.end, GOOD)}
    normal = trailing_of(SCOPE, week, WEEK, BaselinePolicy())
    assert normal is not None

    as_ever, better = (changed(normal, slices(END - 6 * HOUR, END, units)) for units in (LESS, GOOD))

    assert as_ever is not None
    assert better is not None
    assert as_ever.effect == pytest.approx(0, abs=0.01)
    assert better.effect == pytest.approx(0.2, abs=0.01)


def test_what_the_week_does_not_know_says_nothing() -> None:
    """A new intent has no last week, and a guess would be a change."""
    new = {"warranty": (20, 0, 0, 0, 0)}

    assert changed(a_week(), slices(END - 6 * HOUR, END, new)) is None
    beside = changed(a_week(), slices(END - 6 * HOUR, END, GOOD | new))
    assert beside is not None
    assert (beside.effect, beside.n) == (pytest.approx(0, abs=1e-9), 24 * 40)
    [other] = every_series(
        {END - HOUR: a_bucket(GOOD, dimension="tone")}, start=END - HOUR, end=END, bucket_minutes=15
    )
    assert versus(other, a_week()) is None


def test_a_segment_is_measured_against_its_strata() -> None:
    """A new prompt that answers refunds only is no fall, though its mean is below that of all traffic."""
    prompt = {END - HOUR: a_bucket({"refund": GOOD["refund"]}, segment="prompt_hash=new")}

    found = changed(a_week(), prompt)

    assert found is not None
    assert found.effect == pytest.approx(0, abs=1e-9)


def test_a_short_past_is_taken_and_its_days_are_counted() -> None:
    """Better than nothing, as long as it is said."""
    late = trailing_of(SCOPE, slices(END - 3 * DAY, END - DAY, GOOD), WEEK, BaselinePolicy())

    assert late is not None
    assert late.days == 2
    assert trailing_of(SCOPE, {}, WEEK, BaselinePolicy()) is None


def test_the_week_ends_a_day_before() -> None:
    """The last day is what people ask about; within its own week it would hide half of a change."""
    span = trailing_span(END, oldest=END - 9 * DAY, now=END, days=7, policy=POLICY)

    assert span == WEEK


def test_a_week_that_is_partly_or_wholly_gone() -> None:
    """What is kept is shown; what has left is not called a week without judgments."""
    short = WindowPolicy(retention_days=2, hourly_days=5)
    span = trailing_span(END, oldest=None, now=END, days=7, policy=short)
    gone = trailing_span(END - 5 * DAY, oldest=None, now=END, days=7, policy=short)

    assert span == Span(END - 5 * DAY, END - DAY, Granularity.HOUR, 60)
    assert isinstance(gone, Lacking)
    assert "hours are kept for 5 days (windows.hourly_days)" in gone.reason
