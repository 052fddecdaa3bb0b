"""A judge, a rubric and a dimension in, how far its scores agree with people's out; never an invented figure."""

from typing import Protocol

from monitor.intake.event import Value
from monitor.judging.calibration import Calibrations, quoted

UNCALIBRATED = "uncalibrated: nobody has compared this judge's scores with people's yet"


class Agreement(Value):
    """How far a judge may be believed in one dimension, in words that stand in an alert."""

    dimension: str
    calibrated: bool
    statement: str


class AgreementSource(Protocol):
    """Whoever knows the ratings of people."""

    async def agreement(self, *, judge_version: str, rubric_version: str, dimension: str) -> Agreement:
        """Return what is known of a judge in a dimension; that nothing is known is an answer."""
        ...


class Uncalibrated:
    """The port where there are no ratings: it says so, and names no figure."""

    async def agreement(self, *, judge_version: str, rubric_version: str, dimension: str) -> Agreement:
        """Say that nothing is known."""
        del judge_version, rubric_version
        return Agreement(dimension=dimension, calibrated=False, statement=UNCALIBRATED)


class Calibrated:
    """The port on calibrations: what people's labels say of a judge, or that there are none."""

    def __init__(self, calibrations: Calibrations) -> None:
        """Take where calibrations are kept."""
        self._calibrations = calibrations

    async def agreement(self, *, judge_version: str, rubric_version: str, dimension: str) -> Agreement:
        """Return the words of the newest calibration."""
        known = await self._calibrations.get(judge_version=judge_version, rubric_version=rubric_version)
        calibrated = known is not None and known.of(dimension) is not None
        statement = f"the judge {quoted(known, dimension)}"
        return Agreement(dimension=dimension, calibrated=calibrated, statement=statement)
