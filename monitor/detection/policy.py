"""The part of config/monitor.yaml that is about sustained changes: budgets, what is watched, when it is believed."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from monitor.detection.baseline import BaselinePolicy
from monitor.detection.critical_rate import ShareRisePolicy
from monitor.detection.finding import Severity
from monitor.detection.regression import RegressionPolicy
from monitor.windows.policy import SegmentKey, WindowPolicy

MINUTES_PER_MONTH = 30 * 1440
Budget = Annotated[float, Field(gt=0, le=1000)]


class DetectionPolicy(BaseModel):
    """How sustained changes against a pinned baseline are found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    false_pages_per_month: Budget = 1.0
    """False findings of scores that the bound allows a deployment; what is measured lies far below it."""
    false_critical_per_month: Budget = 0.3
    """The same of rates of critical failures, which page: here what is measured lies nearer to the bound."""
    false_signals_per_month: Budget = 1.0
    """The same of shares over all traffic: escalations, thumbs down, fallbacks, refusals."""
    segments: tuple[SegmentKey, ...] = ("intent", "prompt_hash")
    series_max: Annotated[int, Field(ge=1, le=2000)] = 300
    """Series of an assistant, those with the most units; it bounds the time of an evaluation."""
    window_days: Annotated[int, Field(ge=1, le=30)] = 7
    critical_severity: Severity = Severity.PAGE
    signal_severity: Severity = Severity.TICKET
    settled_share: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Share of what was asked of the judge that must have an outcome before a bucket counts, in each stratum."""
    settle_max_minutes: Annotated[int, Field(ge=0, le=1440)] = 120
    """Minutes after which a bucket counts all the same."""
    baseline: BaselinePolicy = BaselinePolicy()
    regression: RegressionPolicy = RegressionPolicy()
    critical_rate: ShareRisePolicy = ShareRisePolicy()
    signals: ShareRisePolicy = ShareRisePolicy(blip_minutes=60, trimmed_min_nats=4.6)

    @property
    def window(self) -> timedelta:
        """Return how far back evidence is looked for."""
        return timedelta(days=self.window_days)

    @property
    def looks_back(self) -> timedelta:
        """Return for how long after its last unit a series may still change what is said of it."""
        shares = (self.critical_rate.resolve_minutes, self.signals.resolve_minutes)
        minutes = max(self.regression.resolve_minutes, *shares)
        return timedelta(minutes=minutes + self.settle_max_minutes)

    @property
    def of_signals(self) -> Self:
        """Return the policy under which shares over all traffic are read."""
        return self.model_copy(
            update={
                "critical_rate": self.signals,
                "false_critical_per_month": self.false_signals_per_month,
            }
        )

    def unfit(self, windows: WindowPolicy) -> str | None:
        """Return the key that does not go with how windows are cut, with the cure; None if all do."""
        missing = [segment for segment in self.segments if segment not in windows.segments]
        if missing:
            return f"segments: {missing[0]} has no series; add it to windows.segments"
        if self.window > windows.retention:
            return (
                f"window_days: must be at most windows.retention_days ({windows.retention_days}), "
                "or evidence would be lost"
            )
        if self.regression.recent_minutes < windows.bucket_minutes:
            return (
                f"regression.recent_minutes: must be at least windows.bucket_minutes ({windows.bucket_minutes}), "
                "or it would look at nothing"
            )
        return None
