"""A judge, a rubric and a dimension in, how far its scores agree with people's out; never an invented figure."""

from typing import Protocol

from monitor.intake.event import Value

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
