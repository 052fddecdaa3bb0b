"""Text in, the figures that it states out: durations, money, percentages, dates, times, counts and measures.

Each is brought to one scale, so that "two weeks" equals "14 days" and "$1,299.00" equals "1299 dollars", but
"30 days" never equals "30 dollars". The figures of a URL or of an id (`TH-48213`) are no claims.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from monitor.judging.wording import CACHED_TEXTS, mentions, root, word_set


class FigureKind(StrEnum):
    """On which scale a figure lies."""

    DURATION = "duration"
    MONEY = "amount"
    PERCENT = "percentage"
    DATE = "date"
    TIME = "time"
    COUNT = "count"
    NUMBER = "number"


class Figure(NamedTuple):
    """One figure with its place. A single value has `low` equal to `high`."""

    kind: FigureKind
    low: float
    high: float
    unit: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Return where it ends."""
        return self.start + len(self.text)


_SMALL = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty"
)
_WORDS = {word: float(value) for value, word in enumerate(_SMALL.split(), start=1)}
_WORDS |= {"thirty": 30.0, "forty": 40.0, "forty-five": 45.0, "fifty": 50.0, "sixty": 60.0, "ninety": 90.0}
_NUM = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
_WORDED = rf"(?:{_NUM}|\b(?:{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b)"
_RANGE = rf"(?P<low>{_WORDED})(?:\s*(?:-|\u2013|\u2014|to|or|and)\s*(?P<high>{_WORDED}))?"

_HOURS = {
    "second": 1 / 3600,
    "sec": 1 / 3600,
    "minute": 1 / 60,
    "min": 1 / 60,
    "hour": 1.0,
    "hr": 1.0,
    "h": 1.0,
}
_HOURS |= {
    "day": 24.0,
    "night": 24.0,
    "week": 168.0,
    "wk": 168.0,
    "fortnight": 336.0,
    "month": 730.0,
    "year": 8760.0,
}
_HOURS |= {"yr": 8760.0}
_TIME_UNIT = (
    r"(?P<unit>seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|nights?|weeks?|wks?|months?|years?|yrs?)"
)
_WORKING = r"(?P<working>business|working|week)"

_NOISE = re.compile(
    r"https?://\S+|www\.\S+|\[[A-Z]+(?:_[0-9a-f]+)?\]"
    r"|(?<![\w.-])(?=[\w#/-]*\d)(?=[\w#/-]*[A-Za-z_#])(?![$€£])(?!\d+(?:[.,]\d+)?(?:st|nd|rd|th|am|pm|h"
    r"|kg|g|mm|cm|m|km|wh|ml|l)\b)"
    r"(?!\d+-(?:day|hour|week|month|year|minute|business))(?!\d{4}-\d\d-\d\dT)[A-Za-z#]*[\w#/-]*\d[\w#/-]*",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_ISO_DATE = re.compile(r"(?<![\d-])(?P<year>\d{4})-(?P<m>\d{2})-(?P<day>\d{2})(?=T|\b)")
_DAY_MONTH = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? (?P<year>\d{{4}})\b)?", re.IGNORECASE
)
_MONTH_DAY = re.compile(
    rf"\b{_MONTH} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
_SLASHED = re.compile(r"(?<![\d/.])(?P<m>\d{1,2})[/.](?P<day>\d{1,2})[/.](?P<year>\d{4}|\d{2})(?![\d/])")
_CLOCK = re.compile(
    r"(?<![\d:.-])(?P<h>[01]?\d|2[0-3]):(?P<min>[0-5]\d)(?::[0-5]\d)?(?:\s*(?P<half>[ap])\.?m\b\.?)?",
    re.IGNORECASE,
)
_HALF_DAY = re.compile(r"(?<![\d:.-])(?P<h>1[0-2]|[1-9])\s*(?P<half>[ap])\.?m\b\.?", re.IGNORECASE)
_MONEY = re.compile(
    rf"(?P<sign>US\$|[$€£]|\b(?:USD|EUR|GBP)\s)\s?(?P<low>{_NUM})(?:\s*(?:-|\u2013"
    rf"|to)\s*[$€£]?\s?(?P<high>{_NUM}))?"
    rf"|(?P<low2>{_WORDED})\s?(?P<sign2>€|£|\$|(?:us )?dollars?\b|bucks?\b|euros?\b|pounds? sterling\b"
    rf"|usd\b|eur\b|gbp\b)",
    re.IGNORECASE,
)
_MONEY_HINTS = ("$", "€", "£", "dollar", "buck", "euro", "pound", "usd", "eur", "gbp")
_FREE = re.compile(
    r"(?<![\w-])(?:no (?:\w+ ){0,2}(?:fees?|charges?|costs?)\b|free of charge|at no (?:extra "
    r"|additional )?(?:cost|charge)|for free|is free|are free|free for|free(?= (?:\w+ ){0,2}"
    r"(?:shipping|delivery|label|labels|pickup|return|returns|repair|repairs|replacement|exchange"
    r"|exchanges|express)\b))",
    re.IGNORECASE,
)
_PERCENT = re.compile(
    rf"(?P<low>{_WORDED})(?:\s*(?:-|\u2013|to)\s*(?P<high>{_NUM}))?\s?(?:%|percent\b"
    rf"|per cent\b)",
    re.IGNORECASE,
)
_DURATION = re.compile(
    rf"(?<![\w.,]){_RANGE}[\s-]*(?:(?:full|whole|more|additional|calendar|consecutive"
    rf"|extra)\s+)?(?:{_WORKING}\s+)?{_TIME_UNIT}\b",
    re.IGNORECASE,
)
_ONE_SPAN = re.compile(
    r"\b(?:within|for|in|have|has|takes?|after|of|up to|lasts?|valid|last) (?P<text>an? (?:whole |full "
    r"|entire )?"
    r"(?P<unit>hour|day|week|fortnight|month|year))\b(?! (?:ago|or|and|of))",
    re.IGNORECASE,
)
_COUNT = re.compile(
    rf"(?<![\w.,$€£/-]){_RANGE}[\s-]?(?P<noun>°C|km/h|[A-Za-z]{{1,20}}(?: (?:[a-z]{{3,20}}))?)(?![\w@])",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?<![\w.,-])-?(?P<low>{_NUM})(?![\w])")
_NO_NOUN = word_set(
    "of to and or in on at for from by is are was were the a an as if so but then per with am pm st nd rd th"
    " x that this"
)


@lru_cache(maxsize=CACHED_TEXTS)
def figures(text: str) -> tuple[Figure, ...]:
    """Return what a text states in figures, in order; each character belongs to one figure at most."""
    if not _HAS_FIGURE.search(text):
        return ()
    left = _Blanking(text)
    left.take(_NOISE)
    found = [figure for read in _READERS for figure in read(left)]
    return tuple(sorted(found, key=lambda figure: figure.start))


class _Blanking:
    """A text whose read parts become blanks, so that no figure is read twice."""

    def __init__(self, text: str) -> None:
        self.text = text

    def take(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        found: list[re.Match[str]] = []

        def read(match: re.Match[str]) -> str:
            found.append(match)
            return " " * len(match.group())

        self.text = pattern.sub(read, self.text)
        return found


def _value(written: str) -> float:
    written = written.lower()
    return _WORDS[written] if written in _WORDS else float(written.replace(",", ""))


def _figure(
    kind: FigureKind, match: re.Match[str], low: float, high: float | None = None, unit: str = ""
) -> Figure:
    written = match.group()
    lead = len(written) - len(written.lstrip())
    return Figure(kind, low, low if high is None else high, unit, written.strip(), match.start() + lead)


def _dates(left: _Blanking) -> Iterator[Figure]:
    for pattern in (_ISO_DATE, _DAY_MONTH, _MONTH_DAY, _SLASHED):
        for match in left.take(pattern):
            parts = match.groupdict()
            month = int(parts["m"]) if parts.get("m") else _month(parts["month"])
            day, year = int(parts["day"]), parts.get("year") or ""
            # The year is the unit: two dates of which one has no year may still be the same day.
            year = f"20{year}" if len(year) == 2 else year  # noqa: PLR2004
            yield _figure(
                FigureKind.DATE,
                match,
                month * 100 + day,
                day * 100 + month if pattern is _SLASHED else None,
                year,
            )


def _month(word: str) -> int:
    return _MONTHS.index(word.lower()[:3]) + 1


def _clock(left: _Blanking) -> Iterator[Figure]:
    for pattern in (_CLOCK, _HALF_DAY):
        for match in left.take(pattern):
            parts = match.groupdict()
            hour, minute, half = int(parts["h"]), int(parts.get("min") or 0), parts["half"]
            if half:
                hour = hour % 12 + (12 if half.lower() == "p" else 0)
            yield _figure(
                FigureKind.TIME, match, hour * 60 + minute, unit="" if half or hour > _NOON else "half"
            )


def _money(left: _Blanking) -> Iterator[Figure]:
    for match in left.take(_MONEY) if mentions(left.text.lower(), _MONEY_HINTS) else ():
        parts = match.groupdict()
        low = _value(parts["low"] or parts["low2"])
        high = _value(parts["high"]) if parts["high"] else None
        yield _figure(FigureKind.MONEY, match, low, high)
    for match in left.take(_FREE):
        yield _figure(FigureKind.MONEY, match, 0.0, unit="free")


def _percent(left: _Blanking) -> Iterator[Figure]:
    for match in left.take(_PERCENT) if mentions(left.text.lower(), ("%", "percent", "per cent")) else ():
        yield _figure(FigureKind.PERCENT, match, *_bounds(match))


def _bounds(match: re.Match[str]) -> tuple[float, float | None]:
    high = match.groupdict().get("high")
    return _value(match["low"]), _value(high) if high else None


def _durations(left: _Blanking) -> Iterator[Figure]:
    for match in left.take(_DURATION):
        hours = _HOURS[match["unit"].lower().rstrip("s") or "s"]
        low, high = _bounds(match)
        unit = "business" if match["working"] else ""
        yield _figure(FigureKind.DURATION, match, low * hours, None if high is None else high * hours, unit)
    for match in _ONE_SPAN.finditer(left.text):
        hours = _HOURS[match["unit"].lower()]
        yield Figure(FigureKind.DURATION, hours, hours, "", match["text"], match.start("text"))


def _counts(left: _Blanking) -> Iterator[Figure]:
    for match in left.take(_COUNT):
        first, _, second = match["noun"].partition(" ")
        if first.lower() in _NO_NOUN:
            low, high = _bounds(match)
            yield _figure(FigureKind.NUMBER, match, low, high)
            continue
        unit = root(first.lower())
        second = root(second.lower()) if second and second.lower() not in _NO_NOUN else ""
        low, high = _bounds(match)
        written = match.group()[: match.end("noun") - match.start()].split(" ")
        yield _figure(FigureKind.COUNT, match, low, high, f"{unit} {second}".strip())._replace(
            text=" ".join(written)
        )
    for match in left.take(_BARE):
        yield _figure(FigureKind.NUMBER, match, _value(match["low"]))


_READERS = (_dates, _clock, _money, _percent, _durations, _counts)
_HAS_FIGURE = re.compile(
    rf"\d|\bfree\b|\bno\b|\b(?:{'|'.join(_WORDS)})\b|\ban? (?:\w+ )?(?:hour|day|week|month|year|fortnight)\b",
    re.IGNORECASE,
)

_NOON = 12
_HALF_DAY_MINUTES = 720
_EXACT_UP_TO = 24
_TOLERANCE = 0.02
"""A month is 730 hours here, and 30 days are 720."""


def same(one: Figure, other: Figure) -> bool:
    """Tell whether two figures state the same; a single value agrees with either end of a range."""
    if one.kind is not other.kind:
        return FigureKind.NUMBER in (one.kind, other.kind) and _bare_fits(one, other)
    if one.kind is FigureKind.DATE:
        return (not one.unit or not other.unit or one.unit == other.unit) and bool(
            {one.low, one.high} & {other.low, other.high}
        )
    if one.kind is FigureKind.TIME:
        return one.low == other.low or (
            "half" in (one.unit, other.unit) and one.low % _HALF_DAY_MINUTES == other.low % _HALF_DAY_MINUTES
        )
    if one.kind is FigureKind.COUNT and not set(one.unit.split()) & set(other.unit.split()):
        return False
    return _agree(one, other)


def _agree(one: Figure, other: Figure) -> bool:
    if one.low != one.high and other.low != other.high:
        return _near(one.low, other.low) and _near(one.high, other.high)
    if one.low == one.high:
        return _near(one.low, other.low) or _near(one.low, other.high)
    # A range against a single value: the promise is its far end.
    return _near(one.high, other.high)


def _bare_fits(one: Figure, other: Figure) -> bool:
    if FigureKind.DATE in (one.kind, other.kind) or FigureKind.TIME in (one.kind, other.kind):
        return False
    if FigureKind.DURATION in (one.kind, other.kind):
        lasting, bare = (one, other) if one.kind is FigureKind.DURATION else (other, one)
        return any(_near(lasting.low, bare.low * hours) for hours in (1.0, 24.0, 1 / 60))
    return _agree(one, other)


def _near(one: float, other: float) -> bool:
    if one <= _EXACT_UP_TO or other <= _EXACT_UP_TO:
        return one == other
    return abs(one - other) <= _TOLERANCE * max(one, other)
