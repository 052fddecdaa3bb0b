"""A moment and named hours in, whether it lies in them out: Alertmanager's time intervals, in a named zone."""

import re
from calendar import monthrange
from datetime import datetime
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|(24):(00)")
_DAYS_MAX = 31
Span = tuple[int, int]


class TimeRange(BaseModel):
    """Hours of a day by the wall's clock; the end does not belong to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start_time: str
    end_time: str

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Self:
        if _minute(self.start_time) >= _minute(self.end_time):
            raise ValueError(
                "start_time must be before end_time; a night is two ranges, to 24:00 and from 00:00"
            )
        return self

    def contains(self, minute: int) -> bool:
        """Tell whether a minute of the day lies in it."""
        return _minute(self.start_time) <= minute < _minute(self.end_time)


def _spans(names: tuple[str, ...] = (), low: int = 0, high: int = 0, first: int = 0) -> BeforeValidator:
    def value_of(text: str) -> int:
        if text.lower() in names:
            return names.index(text.lower()) + first
        if names and not text.isdigit():
            raise ValueError(f"{text} is none of {', '.join(names)}")
        value = int(text)
        if not low <= value <= high or value == 0 > low:
            raise ValueError(f"{text} must lie between {low} and {high}")
        return value

    def read(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            raise ValueError("must be a list of values or ranges, such as ['monday:friday']")  # noqa: TRY004
        found = []
        for one in values:
            begin, _, end = str(one).partition(":")
            span = (value_of(begin), value_of(end or begin))
            if span[0] > span[1] and (span[0] > 0) == (span[1] > 0):
                raise ValueError(f"{one}: the range ends before it begins")
            found.append(span)
        return tuple(found)

    return BeforeValidator(read)


class TimeInterval(BaseModel):
    """Times of which every condition given must hold; what is not given always holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    times: tuple[TimeRange, ...] = ()
    weekdays: Annotated[tuple[Span, ...], _spans(WEEKDAYS, 0, 6)] = ()
    days_of_month: Annotated[tuple[Span, ...], _spans((), -_DAYS_MAX, _DAYS_MAX)] = ()
    months: Annotated[tuple[Span, ...], _spans(MONTHS, 1, 12, first=1)] = ()
    years: Annotated[tuple[Span, ...], _spans((), 1970, 9999)] = ()
    location: str = "UTC"

    @field_validator("location")
    @classmethod
    def _names_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(
                f"{name} is no time zone that this system knows; such as Europe/Berlin"
            ) from None
        return name

    def contains(self, moment: datetime) -> bool:
        """Tell whether a moment lies in it, by the wall's clock in its zone."""
        local = moment.astimezone(ZoneInfo(self.location))
        minute = local.hour * 60 + local.minute
        return (
            (not self.times or any(one.contains(minute) for one in self.times))
            and _within(self.weekdays, local.isoweekday() % 7)
            and _within(self.months, local.month)
            and _within(self.years, local.year)
            and (not self.days_of_month or any(_on_day(span, local) for span in self.days_of_month))
        )


class NamedTimes(BaseModel):
    """Times under a name that routes refer to; one of the intervals must hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    time_intervals: Annotated[tuple[TimeInterval, ...], Field(min_length=1)]

    def contains(self, moment: datetime) -> bool:
        """Tell whether a moment lies in one of its intervals."""
        return any(one.contains(moment) for one in self.time_intervals)


def _minute(text: str) -> int:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no time of day; write HH:MM in quotes, up to 24:00")
    return int(found[1] or found[3]) * 60 + int(found[2] or found[4])


def _within(spans: tuple[Span, ...], value: int) -> bool:
    return not spans or any(begin <= value <= end for begin, end in spans)


def _on_day(span: Span, local: datetime) -> bool:
    days = monthrange(local.year, local.month)[1]
    begin, end = (days + day + 1 if day < 0 else day for day in span)
    # A range that begins after a short month's end has no day in it.
    return begin <= days and max(begin, 1) <= local.day <= min(end, days)
