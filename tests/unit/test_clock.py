"""Boundaries of evaluation: every one, once, in order, in UTC."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.clock import Watermark, boundaries, floor
from tests.events import HOUR, MINUTE, NOON, SECOND

moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - zoned by the strategy
QUARTER = 15 * MINUTE


def test_boundaries_begin_after_the_last_and_end_with_now() -> None:
    """The last one is done; the present one is due."""
    assert boundaries(NOON, NOON + 2 * QUARTER, minutes=15) == [NOON + QUARTER, NOON + 2 * QUARTER]
    assert boundaries(NOON, NOON + QUARTER - SECOND, minutes=15) == []
    assert boundaries(NOON - SECOND, NOON, minutes=15) == [NOON]
    assert boundaries(NOON, NOON, minutes=15) == []


def test_nothing_is_evaluated_when_time_stands_still_or_goes_back() -> None:
    """Two evaluators may differ in what they think it is."""
    assert boundaries(NOON, NOON - HOUR, minutes=15) == []


@given(moments, st.timedeltas(timedelta(0), timedelta(days=2)), st.sampled_from([5, 15, 60]))
def test_every_boundary_comes_once_however_the_way_is_cut(
    start: datetime, way: timedelta, minutes: int
) -> None:
    """An evaluator that was away catches up with the very boundaries that it missed."""
    end, middle = start + way, start + way / 3
    whole = boundaries(start, end, minutes=minutes)

    parts = boundaries(start, middle, minutes=minutes) + boundaries(middle, end, minutes=minutes)

    assert parts == whole == sorted(set(whole))
    assert all(start < at <= end and at.timestamp() % (60 * minutes) == 0 for at in whole)


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
    expected = boundaries(change, change + 3 * HOUR, minutes=15)

    found = boundaries(change.astimezone(berlin), (change + 3 * HOUR).astimezone(berlin), minutes=15)

    assert len(expected) == 12
    assert found == expected
    assert [b - a for a, b in pairwise(found)] == [QUARTER] * 11


def test_a_marker_survives_the_way_through_json() -> None:
    """It is sent from hop to hop, to the microsecond."""
    mark = Watermark(times={"events/0": NOON + timedelta(microseconds=7)}, idle=("events/1",))

    assert Watermark.model_validate_json(mark.model_dump_json()) == mark
