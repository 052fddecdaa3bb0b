"""Text in, the spans of personal data in it out: what has a check digit or a shape of its own.

Order numbers, money, dates and times must survive. So bare digits count as personal only where a check digit,
a country's numbering plan or a word next to them says so.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import phonenumbers
from stdnum import iban, luhn
from stdnum.br import cpf
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.us import ssn


class Kind(StrEnum):
    """What kind of personal data; the word stands in the placeholder."""

    EMAIL = "EMAIL"
    PHONE = "PHONE"
    CARD = "CARD"
    IBAN = "IBAN"
    NATIONAL_ID = "ID"
    IP = "IP"


class Span(NamedTuple):
    """Personal data at its place; `value` is the form in which two spellings of it are equal."""

    start: int
    end: int
    kind: Kind
    value: str


# A text without an @, four near digits or a double colon has none of it; most texts end here.
_MAYBE = re.compile(r"@|(?:\d\D{0,2}){4}|::")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,5}[A-Za-z][\w-]{1,23}(?![\w@])")
_CARD = re.compile(r"(?<![\w./=])(?:\d[ -]?){12,18}\d(?!\w|[.,]\d)")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}(?!\w)", re.IGNORECASE)
_DOTTED_OR_COLONED = re.compile(r"\d\.\d{1,3}\.\d|[0-9a-fA-F:]:[0-9a-fA-F]{0,4}:")
_IP4 = re.compile(r"(?<![\w.])(?<!v )(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IP6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_SIXTH = re.compile(r"[a-fA-F]|::|(?::.*){7}")
_PHONE = re.compile(
    r"(?<![\w.,/#$€£+=-])(?:\+|\(|00)?\d(?:[\s().\-\u2011\u2013/]{0,3}\d){6,14}(?!\w|[.,]\d|[%€])"
)
_PHONE_WORD = re.compile(
    r"\b(?:phone|tel|telephone|mobile|cell|call(?:ed)?|ring|text(?:ed)?|sms|whats ?app|fax|number is"
    r"|reach(?:ed)?|telefon|handy|rufnummer|m[oó]vil|t[ée]l[ée]phone)\W+(?:\w+\W+){0,4}$",
    re.IGNORECASE,
)
_ORDER_WORD = re.compile(
    r"\b(?:order|ticket|case|ref(?:erence)?|tracking|invoice|booking|account|customer|serial|item|parcel"
    r"|return"
    r"|reservation|transaction|confirmation|policy|claim|sku|ean|isbn|model)\b\W*"
    r"(?:(?:no|nr|num|number|id|code|is)\b\W*){0,2}$",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|(?<!\d)\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)\d{2}(?!\d)")
_BEFORE = 48
"""How many characters before a number may hold the word that says what it is."""
_BARE = re.compile(r"\d+")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")


class _NationalId(NamedTuple):
    pattern: re.Pattern[str]
    is_valid: Callable[[str], bool]
    word: re.Pattern[str] | None = None
    """Where the check digit alone is too weak for bare digits, a word before them must say so."""


def _word(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b\W*(?:\w+\W+){{0,3}}$", re.IGNORECASE)


_NATIONAL_IDS = (
    _NationalId(re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"), ssn.is_valid),
    _NationalId(
        re.compile(r"(?<![\w-])\d{9}(?![\w-])"), ssn.is_valid, _word("ssn|social security(?: number)?")
    ),
    _NationalId(re.compile(r"(?<!\w)\d{8}-?[A-Z](?!\w)"), dni.is_valid),
    _NationalId(re.compile(r"(?<!\w)[XYZ]-?\d{7}-?[A-Z](?!\w)"), nie.is_valid),
    _NationalId(
        re.compile(r"(?<!\w)[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z](?!\w)", re.IGNORECASE),
        codicefiscale.is_valid,
    ),
    _NationalId(re.compile(r"(?<!\w)[12] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}(?!\w)"), nir.is_valid),
    _NationalId(re.compile(r"(?<![\w.])\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)"), cpf.is_valid),
    _NationalId(re.compile(r"(?<!\w)\d{6}(?:\d\d)?[-+]\d{4}(?!\w)"), personnummer.is_valid),
    _NationalId(re.compile(r"(?<!\w)\d{6}[-+A]\d{3}[0-9A-Y](?!\w)"), hetu.is_valid),
    _NationalId(re.compile(r"(?<!\w)\d{4} \d{4} \d{4}(?! ?\d|\w)"), aadhaar.is_valid),
    _NationalId(re.compile(r"(?<!\w)\d{11}(?!\w)"), pesel.is_valid, _word("pesel")),
    _NationalId(re.compile(r"(?<!\w)\d{9}(?!\w)"), bsn.is_valid, _word("bsn|burgerservicenummer")),
    _NationalId(
        re.compile(r"(?<!\w)\d{2} ?\d{3} ?\d{3} ?\d{3}(?!\w)"),
        idnr.is_valid,
        _word("steuer-?id\\w*|idnr|identifikationsnummer|tax id"),
    ),
    _NationalId(re.compile(r"(?<!\w)\d{3} ?\d{3} ?\d{4}(?!\w)"), nhs.is_valid, _word("nhs")),
)


def find(text: str, *, region: str = "US") -> tuple[Span, ...]:
    """Return what is personal in a text, in order, without overlaps; the earlier rule wins over the later."""
    if not _MAYBE.search(text):
        return ()
    if not text.isascii():
        # Full-width and other digits are digits: one character each, so that places stay what they are.
        text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
    taken: list[Span] = []
    for span in _candidates(text, region):
        if all(span.end <= other.start or other.end <= span.start for other in taken):
            taken.append(span)
    return tuple(sorted(taken))


def _candidates(text: str, region: str) -> Iterator[Span]:
    yield from _accounts(text)
    for rule in _NATIONAL_IDS:
        for match in rule.pattern.finditer(text):
            before = text[max(0, match.start() - _BEFORE) : match.start()]
            if (rule.word is None or rule.word.search(before)) and rule.is_valid(match.group()):
                yield Span(match.start(), match.end(), Kind.NATIONAL_ID, _solid(match.group()).upper())
    if _DOTTED_OR_COLONED.search(text):
        yield from _addresses(text)
    for match in _PHONE.finditer(text):
        if (value := _phone(text, match, region)) is not None:
            yield Span(match.start(), match.end(), Kind.PHONE, value)


def _accounts(text: str) -> Iterator[Span]:
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Span(match.start(), match.end(), Kind.EMAIL, match.group().lower())
    for match in _IBAN.finditer(text):
        if (value := _longest_iban(match.group())) is not None:
            yield Span(match.start(), match.start() + len(value), Kind.IBAN, _solid(value).upper())
    for match in _CARD.finditer(text):
        digits = _solid(match.group())
        if _is_card(digits):
            yield Span(match.start(), match.end(), Kind.CARD, digits)


def _addresses(text: str) -> Iterator[Span]:
    for pattern in (_IP4, _IP6):
        for match in pattern.finditer(text):
            written = match.group()
            # 10:30:00 is a time of day and a::b a name in a program; an IPv6 address has more of either.
            if pattern is _IP6 and not (_SIXTH.search(written) and _BARE.search(written)):
                continue
            if re.search(r"version\W*$", text[max(0, match.start() - 10) : match.start()], re.IGNORECASE):
                continue
            try:
                value = str(ipaddress.ip_address(written))
            except ValueError:
                continue
            if value != "::":
                yield Span(match.start(), match.end(), Kind.IP, value)


def _solid(written: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", written)


def _is_card(digits: str) -> bool:
    # The first digit names the industry: 3 to 6 are the payment networks, 2 is Mastercard's newer range.
    known = digits[0] in "3456" or "2221" <= digits[:4] <= "2720"
    return known and len(set(digits)) > 1 and luhn.is_valid(digits)


def _longest_iban(written: str) -> str | None:
    # A word may stand right behind it and look like one more group.
    while len(_solid(written)) >= 15:  # noqa: PLR2004 - the shortest of all countries, Norway's
        if iban.is_valid(written):
            return written
        shorter = written.rpartition(" ")[0]
        if not shorter:
            return None
        written = shorter
    return None


def _phone(text: str, match: re.Match[str], region: str) -> str | None:
    written = match.group()
    if _DATE.search(written):
        return None
    before = text[max(0, match.start() - _BEFORE) : match.start()]
    international = written.startswith(("+", "00"))
    bare = _BARE.fullmatch(written) and not _PHONE_WORD.search(before)
    if not international and (bare or _ORDER_WORD.search(before)):
        return None
    return _e164("+" + written[2:] if written.startswith("00") else written, region)


@lru_cache(maxsize=4096)
def _e164(written: str, region: str) -> str | None:
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
