"""Who answers for a gate's failing until a day. A gate is never lowered to ship."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from monitor.detection.finding import FindingKind, fingerprint
from monitor.windows.bucket import OVERALL


class GateException(BaseModel):
    """A gate that may fail until a day, and who answers for it. Never a lower gate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gate: str
    segment: str = OVERALL
    owner: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]
    until: AwareDatetime
    alert: str | None = None
    """The one alert that it is for, by its id; without it every assistant's gate of that name."""

    @property
    def signed(self) -> str:
        """Return who answers for it, until when and why."""
        return f"excepted by {self.owner} until {self.until:%Y-%m-%d %H:%M %Z}: {self.reason}"


def exception_of(
    kind: FindingKind, labels: Mapping[str, str], exceptions: Iterable[GateException], *, now: datetime
) -> GateException | None:
    """Return the exception that covers a finding now."""
    wanted = (labels["dimension"], labels["segment"])
    alert = fingerprint(kind, labels)
    return next(
        (
            one
            for one in exceptions
            if (one.gate, one.segment) == wanted and one.alert in {None, alert} and now < one.until
        ),
        None,
    )
