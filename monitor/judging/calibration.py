"""How far a judge can be trusted, as people's labels showed it: the record that is stored and quoted."""

from enum import StrEnum
from typing import Protocol

from monitor.intake.event import Moment, Value

AGREEMENT_MIN = 0.85
"""Agreement that a judge is asked to show: over 15 % disagreement the rubric, the prompt or the judge is at fault."""


class Answer(StrEnum):
    """What labels say of an agreement that is asked for."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    TOO_FEW = "too few"


class Share(Value):
    """A share with its 95 % interval; None where nothing was there to compare, which is not zero."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0

    @property
    def words(self) -> str:
        """Return the share as people read it, `86 % (74-93 %, n=50)`."""
        if self.value is None or self.low is None or self.high is None:
            return "none"
        return f"{self.value:.0%} ({self.low * 100:.0f}-{self.high:.0%}, n={self.n})".replace("%", " %")


class DimensionCalibration(Value):
    """One dimension's agreement with people, and that of people among themselves."""

    dimension: str
    exact: Share
    pass_at_4: Share
    human_exact: Share = Share()
    human_pass_at_4: Share = Share()
    answer: Answer
    """Whether the exact agreement reaches what is asked for."""
    needed: int | None = None
    """Labelled cases at which the question would be decided at the agreement that was seen."""

    @property
    def words(self) -> str:
        """Return the result in one sentence, with the figure of people beside it."""
        among = (
            "" if self.human_exact.value is None else f"; people among themselves {self.human_exact.words}"
        )
        said: str = self.answer
        if self.answer is Answer.TOO_FEW:
            said = f"too few ({'over 100000' if self.needed is None else self.needed} needed)"
        return f"agrees with people on {self.exact.words}{among}; {AGREEMENT_MIN * 100:.0f} % is {said}"


class DecidedScores(Value):
    """What people on call said of a dimension's scores in alerts that they closed; these are the worst ones."""

    dimension: str
    upheld: Share

    @property
    def words(self) -> str:
        """Return it as it stands in an alert."""
        return f"on call, people upheld {self.upheld.words} of its scores in alerts, which are the worst ones"


class Calibration(Value):
    """The result of `monitor calibrate` for one judge under one rubric."""

    judge_version: str
    rubric_version: str
    judge: str
    """The model or backend, in words."""
    calibrated_at: Moment
    raters: int
    cases: int
    dimensions: tuple[DimensionCalibration, ...]
    decided: tuple[DecidedScores, ...] = ()
    """What decisions on alerts say, beside what raters say (`monitor calibrate --decisions`)."""

    def of(self, dimension: str) -> DimensionCalibration | None:
        """Return what is known of one dimension."""
        return next((one for one in self.dimensions if one.dimension == dimension), None)


class Calibrations(Protocol):
    """Where calibrations are kept, one for each judge and rubric; putting one twice changes nothing."""

    async def get(self, *, judge_version: str, rubric_version: str) -> Calibration | None:
        """Return the newest calibration, None for a judge that has none."""
        ...

    async def put(self, calibration: Calibration) -> None:
        """Keep a calibration in the place of an older one."""
        ...


UNCALIBRATED = "is uncalibrated: nobody compared this judge with people (`monitor calibrate`)"


def quoted(calibration: Calibration | None, dimension: str) -> str:
    """Return what an alert says of its judge; a judge without labels is said to have none."""
    found = calibration.of(dimension) if calibration else None
    said = found.words if found else UNCALIBRATED
    decided = (
        next((one for one in calibration.decided if one.dimension == dimension), None)
        if calibration
        else None
    )
    return f"{said}; {decided.words}" if decided else said
