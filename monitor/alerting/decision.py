"""What people say of an alert: seen, a comment, an exception, and in the end what it was."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitor.detection.finding import Severity
from monitor.intake.event import Moment, Value

NOTES_MAX = 50
"""Notes kept with an alert, the newest; the alerts topic has them all."""
DECISIONS_MAX = 20
"""Decisions kept with an alert, the newest, as many as firings."""
TEXT_MAX = 2000
"""Characters of a note; it becomes part of every copy of the alert."""
Text = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=128)]


class Verdict(StrEnum):
    """What an alert turned out to be."""

    REGRESSION = "regression"
    """The answers were worse, and somebody had something to repair."""
    JUDGE_ERROR = "judge-error"
    """The judge was wrong: a case for calibration."""
    EXPECTED = "expected"
    """A change that was wanted: the cases or the rubric are to be updated."""
    GATE = "gate"
    """The gate asks for the wrong thing."""


class Act(StrEnum):
    """What somebody did."""

    ACKNOWLEDGED = "acknowledged"
    COMMENTED = "commented"
    EXCEPTED = "excepted"
    DECIDED = "decided"


class Note(Value):
    """Who did what, when and why."""

    act: Act
    by: Name
    at: Moment
    text: str = ""


class DecidedScore(Value):
    """One score that the alert showed, without a word of its conversation."""

    judgment_id: str
    conversation_id: str
    dimension: str
    score: int
    judge_version: str
    rubric_version: str


class Decision(Value):
    """What one firing turned out to be, by whom."""

    verdict: Verdict
    severity: Severity
    """How loud it was, since pages have a precision of their own."""
    fired_at: Moment
    by: Name
    at: Moment
    text: str = ""
    scores: tuple[DecidedScore, ...] = ()
    """The scores that the alert was about and showed: a judge error disputes them, a regression upholds them."""
