"""Boundaries of evaluation, in UTC, and the markers that carry the time."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.clock import Watermark
from monitor.intake.moments import ceiling, floor
from tests.events import MINUTE, NOON

moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - zoned by the strategy
QUARTER = 15 * MINUTE


@given(moments, st.sampled_from([1, 15, 60]))
def test_the_floor_is_the_last_boundary(moment: datetime, minutes: int) -> None:
    """Anything else would skip a boundary or evaluate one twice."""
    found = floor(moment, minutes=minutes)

    assert found <= moment < found + timedelta(minutes=minutes)
    assert found.timestamp() % (60 * minutes) == 0
    assert found.tzinfo is UTC


@pytest.mark.parametrize(
    "change", [datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]
)
def test_the_hours_that_people_move_are_no_matter(change: datetime) -> None:
    """In Berlin one of these nights has 23 hours and one 25; the stream has 24 in both."""
    berlin = ZoneInfo("Europe/Berlin")
    moments_of_the_night = [change + place * QUARTER + MINUTE for place in range(12)]

    found = [floor(moment.astimezone(berlin), minutes=15) for moment in moments_of_the_night]

    assert found == [change + place * QUARTER for place in range(12)]


def test_a_marker_survives_the_way_through_json() -> None:
    """It is sent from hop to hop, to the microsecond."""
    mark = Watermark(times={"events/0": NOON + timedelta(microseconds=7)}, idle=("events/1",))

    assert Watermark.model_validate_json(mark.model_dump_json()) == mark


def test_a_moment_within_a_slice_belongs_to_the_next_start() -> None:
    """A baseline that ends within a bucket must not lend its last seconds to the evidence after it."""
    assert ceiling(NOON, minutes=15) == NOON
    assert ceiling(NOON + timedelta(microseconds=1), minutes=15) == NOON + timedelta(minutes=15)
