"""Labels in, whether they match out: Alertmanager's matchers, with a missing label as the empty one."""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, assert_never

from pydantic import BeforeValidator, Field, PlainSerializer

from monitor.intake.event import Value

Labels = Mapping[str, str]

PATTERN_MAX = 500
"""Characters of a matcher's value; it bounds what a regular expression may cost."""
_FORM = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|[^"\s,{}][^"{}]*?)?\s*')
_BEYOND_RE2 = re.compile(r"\(\?(?:=|!|<=|<!)|\\[1-9]")


class Operator(StrEnum):
    """How a label is compared."""

    EQUAL = "="
    NOT_EQUAL = "!="
    MATCHES = "=~"
    NOT_MATCHES = "!~"


class Matcher(Value):
    """One condition on one label."""

    name: str
    operator: Operator
    value: str

    def matches(self, labels: Labels) -> bool:
        """Tell whether labels satisfy it; expressions must match the whole value."""
        value = labels.get(self.name, "")
        match self.operator:
            case Operator.EQUAL:
                return value == self.value
            case Operator.NOT_EQUAL:
                return value != self.value
            case Operator.MATCHES:
                return _expression(self.value).fullmatch(value) is not None
            case Operator.NOT_MATCHES:
                return _expression(self.value).fullmatch(value) is None
            case _:
                assert_never(self.operator)

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.name}{self.operator}{quoted(self.value)}"


def matcher(text: str) -> Matcher:
    """Read `name="value"`, `!=`, `=~` or `!~`, quoted or not; raise ValueError with the cure."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f'{text!r} is no matcher; write it as name="value", with =, !=, =~ or !~')
    name, operator, value = found[1], Operator(found[2]), found[3] or ""
    if value.startswith('"'):
        value = re.sub(r"\\(.)", lambda escaped: {"n": "\n"}.get(escaped[1], escaped[1]), value[1:-1])
    if len(value) > PATTERN_MAX:
        raise ValueError(f"the value of {name} is longer than {PATTERN_MAX} characters")
    if operator in {Operator.MATCHES, Operator.NOT_MATCHES}:
        if _BEYOND_RE2.search(value):
            raise ValueError(f"{text!r}: look-around and back-references are not allowed, as in Alertmanager")
        try:
            _expression(value)
        except re.error as error:
            raise ValueError(f"{text!r} is no regular expression: {error}") from None
    return Matcher(name=name, operator=operator, value=value)


def all_match(matchers: Iterable[Matcher], labels: Labels) -> bool:
    """Tell whether labels satisfy every matcher; no matcher is satisfied by all."""
    return all(one.matches(labels) for one in matchers)


def first_refusal(matchers: Iterable[Matcher], labels: Labels) -> Matcher | None:
    """Return the first matcher that labels do not satisfy."""
    return next((one for one in matchers if not one.matches(labels)), None)


def braced(matchers: Iterable[Matcher]) -> str:
    """Return matchers as Alertmanager writes them, ordered: {a="b",c=~"d"}."""
    ordered = sorted(matchers, key=lambda one: (one.name, one.value, one.operator))
    return "{" + ",".join(map(str, ordered)) + "}"


def quoted(text: str) -> str:
    """Return a label's value in quotation marks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _read(value: Any) -> Any:
    return matcher(value) if isinstance(value, str) else value


MatcherText = Annotated[Matcher, BeforeValidator(_read), PlainSerializer(str)]
"""A matcher that stands as text in a file."""
Matchers = tuple[MatcherText, ...]
SomeMatchers = Annotated[Matchers, Field(min_length=1)]


@lru_cache(maxsize=1024)
def _expression(text: str) -> re.Pattern[str]:
    return re.compile(text)
