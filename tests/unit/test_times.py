"""Hours of people on call, by the wall's clock of a named zone, in the nights in which that clock is moved."""

from datetime import UTC, datetime, timedelta

import pytest

from monitor.alerting.times import NamedTimes

MINUTE = timedelta(minutes=1)
BERLIN, NEW_YORK, TOKYO = "Europe/Berlin", "America/New_York", "Asia/Tokyo"
# The days, by each zone's own calendar, with the UTC offset at their beginning.
DAYS = {
    "Berlin goes forward": (BERLIN, datetime(2026, 3, 29), 1),  # noqa: DTZ001 - the offset stands beside it
    "Berlin goes back": (BERLIN, datetime(2026, 10, 25), 2),  # noqa: DTZ001
    "New York goes forward": (NEW_YORK, datetime(2026, 3, 8), -5),  # noqa: DTZ001
    "New York goes back": (NEW_YORK, datetime(2026, 11, 1), -4),  # noqa: DTZ001
    "Tokyo, as ever": (TOKYO, datetime(2026, 3, 29), 9),  # noqa: DTZ001
}


def hours(zone: str, *ranges: tuple[str, str], **more: object) -> NamedTimes:
    times = [{"start_time": start, "end_time": end} for start, end in ranges]
    return NamedTimes.model_validate(
        {"name": "on-call", "time_intervals": [{"times": times, "location": zone, **more}]}
    )


def stretches(times: NamedTimes, begin: datetime, minutes: int) -> list[tuple[str, str]]:
    """Return the stretches of UTC time that lie in the hours, minute by minute."""
    moments = [begin + place * MINUTE for place in range(minutes)]
    inside = [moment for moment in moments if times.contains(moment)]
    edges = (
        [one for one in inside if one - MINUTE not in inside],
        [one for one in inside if one + MINUTE not in inside],
    )
    return [(f"{a:%H:%M}", f"{b + MINUTE:%H:%M}") for a, b in zip(*edges, strict=True)]


def beginning(day: str) -> tuple[str, datetime]:
    zone, local, offset = DAYS[day]
    return zone, local.replace(tzinfo=UTC) - timedelta(hours=offset)


@pytest.mark.parametrize(
    ("day", "covered"),
    [
        # From 01:30 to 03:30. The hour that is left out is not on call; of the one that comes twice, all that
        # the clock shows as on call: in New York it jumps back out of the hours, and into them again.
        ("Berlin goes forward", [("00:30", "01:30")]),
        ("Berlin goes back", [("23:30", "02:30")]),
        ("New York goes forward", [("06:30", "07:30")]),
        ("New York goes back", [("05:30", "06:00"), ("06:30", "08:30")]),
        ("Tokyo, as ever", [("16:30", "18:30")]),
    ],
)
def test_hours_over_the_change_follow_the_clock_on_the_wall(day: str, covered: list[tuple[str, str]]) -> None:
    """Whoever has the night shift looks at a clock, and neither works an hour less by UTC nor leaves early."""
    zone, begin = beginning(day)

    assert stretches(hours(zone, ("01:30", "03:30")), begin, 20 * 60) == covered


@pytest.mark.parametrize(
    ("day", "covered"),
    [
        # 02:00 to 02:45 by the clock that goes forward at 02:00 does not exist; that goes back at 03:00, it is twice.
        ("Berlin goes forward", []),
        ("Berlin goes back", [("00:00", "00:45"), ("01:00", "01:45")]),
        # In New York 02:00 is not repeated: the clock goes back to 01:00.
        ("New York goes forward", []),
        ("New York goes back", [("07:00", "07:45")]),
        ("Tokyo, as ever", [("17:00", "17:45")]),
    ],
)
def test_minutes_that_are_left_out_or_come_twice(day: str, covered: list[tuple[str, str]]) -> None:
    """Muted minutes that the clock never shows mute nothing, and nobody sees them in UTC."""
    zone, begin = beginning(day)

    assert stretches(hours(zone, ("02:00", "02:45")), begin, 20 * 60) == covered


@pytest.mark.parametrize(
    ("day", "length"),
    [
        ("Berlin goes forward", 23),
        ("Berlin goes back", 25),
        ("New York goes forward", 23),
        ("New York goes back", 25),
        ("Tokyo, as ever", 24),
    ],
)
def test_day_and_night_share_out_a_day_without_gap_or_overlap(day: str, length: int) -> None:
    """Two routes, one by day and one by night: in no minute of the year is nobody told, or are both."""
    zone, begin = beginning(day)
    weekday = begin + timedelta(hours=12)
    by_day = hours(zone, ("08:00", "20:00"))
    by_night = hours(zone, ("00:00", "08:00"), ("20:00", "24:00"))
    sunday = hours(zone, ("00:00", "24:00"), weekdays=["sunday"])

    moments = [begin + place * MINUTE for place in range(26 * 60)]

    assert all(by_day.contains(one) != by_night.contains(one) for one in moments)
    assert sum(map(sunday.contains, moments)) == length * 60
    assert sum(map(by_day.contains, moments)) == 12 * 60
    assert weekday.weekday() == 6  # a Sunday, everywhere


def test_the_morning_after_begins_at_the_same_hour_of_the_wall() -> None:
    """Nine o'clock in Berlin is another hour of UTC from that day on."""
    office = hours(BERLIN, ("09:00", "17:00"))

    saturday, sunday = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC)
    assert stretches(office, saturday, 24 * 60) == [("08:00", "16:00")]
    assert stretches(office, sunday, 24 * 60) == [("07:00", "15:00")]
