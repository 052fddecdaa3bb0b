"""Windows in, one finding per gate and segment out: pass, fail or no data. Equality passes."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.detection.critical import CriticalPolicy
from monitor.detection.exception import GateException, exception_of
from monitor.detection.finding import (
    Figure,
    Finding,
    FindingKind,
    Outcome,
    Persistence,
    Severity,
    labels_of,
)
from monitor.detection.registry import ConfigurationPolicy
from monitor.detection.slo import SloPolicy
from monitor.intake.event import Environment
from monitor.windows.bucket import CRITICAL, OVERALL, Scope
from monitor.windows.policy import ConfigurationKey, SegmentKey
from monitor.windows.window import WindowStats, no_stats

TOLERANCE = 1e-9
"""What two figures may differ by and still be equal: binary fractions must not fail a gate."""

Score = Annotated[float, Field(ge=1, le=5)]
Share = Annotated[float, Field(ge=0, le=1)]
Stats = Mapping[tuple[str, str], WindowStats]


class Gate(BaseModel):
    """What one dimension must reach in every window."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean_min: Score | None = None
    pass_at_4_min: Share | None = None
    severity: Severity = Severity.TICKET
    min_count: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if self.mean_min is None and self.pass_at_4_min is None:
            raise ValueError("a gate needs mean_min or pass_at_4_min")
        return self


class CriticalRateGate(BaseModel):
    """The share of units with a critical failure that is tolerated."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max: Share
    severity: Severity = Severity.PAGE
    min_count: Annotated[int, Field(ge=1)] | None = None


class ClearMargin(BaseModel):
    """How much better than the gate a window must be before a firing alert may end."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: Annotated[float, Field(ge=0, le=1)] = 0.05
    pass_at_4: Annotated[float, Field(ge=0, le=0.5)] = 0.005
    critical_rate: Annotated[float, Field(ge=0, le=0.5)] = 0.002


class GatePolicy(BaseModel):
    """config/gates.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window_minutes: Annotated[int, Field(ge=15, le=10_080)] = 360
    min_count: Annotated[int, Field(ge=1)] = 50
    coverage_min: Share = 0.8
    environments: Annotated[tuple[Environment, ...], Field(min_length=1)] = (Environment.PRODUCTION,)
    segments: tuple[SegmentKey, ...] = ("intent", "prompt_hash")
    clear_margin: ClearMargin = ClearMargin()
    persistence: Persistence = Persistence()
    gates: dict[str, Gate]
    critical_rate: CriticalRateGate | None = None
    critical: CriticalPolicy = CriticalPolicy()
    exceptions: tuple[GateException, ...] = ()
    slo: SloPolicy = SloPolicy()
    configurations: ConfigurationPolicy = ConfigurationPolicy()

    @model_validator(mode="after")
    def _exceptions_name_a_gate(self) -> Self:
        known = {*self.gates, *self.slo.objectives, CRITICAL}
        for exception in self.exceptions:
            if exception.gate not in known:
                raise ValueError(f"an exception names the gate {exception.gate}; there are {sorted(known)}")
        return self

    def persistence_of(self, kind: FindingKind) -> Persistence:
        """Return how long a finding must hold; a burn has shown over its two windows already."""
        if kind is not FindingKind.SLO:
            return self.persistence
        return self.persistence.model_copy(update={"for_minutes": 0})

    def with_exceptions(self, more: Iterable[GateException]) -> Self:
        """Return it with what people signed for outside the file; a gate that is gone needs none."""
        known = {*self.gates, *self.slo.objectives, CRITICAL}
        added = tuple(one for one in more if one.gate in known)
        return self.model_copy(update={"exceptions": (*self.exceptions, *added)}) if added else self

    @property
    def window(self) -> timedelta:
        """Return the length of the window that gates look at."""
        return timedelta(minutes=self.window_minutes)


def evaluate_gates(
    stats: Stats,
    policy: GatePolicy,
    *,
    scope: Scope,
    now: datetime,
    asked: Collection[tuple[str, str]] = (),
    hold: bool = True,
) -> tuple[Finding, ...]:
    """Judge every gate on the window that ends now, the overall ones first.

    `hold` is false where the judge's failures have to do with what is judged: then a window with many of them is
    no reason to wait. `asked` are (dimension, segment) that get a finding even when the window knows nothing of them.
    """
    found = []
    for dimension in (*policy.gates, *((CRITICAL,) if policy.critical_rate else ())):
        segments = {segment for name, segment in {*stats, *asked} if name == dimension}
        watched = sorted(s for s in segments if s.partition("=")[0] in policy.segments)
        for segment in (OVERALL, *watched):
            series = stats.get((dimension, segment), no_stats(dimension, segment))
            overall = stats.get((CRITICAL, OVERALL), no_stats(CRITICAL, OVERALL))
            found.append(_evaluate(series, overall, policy, scope, now, hold=hold))
    return tuple(found)


def _evaluate(
    series: WindowStats, overall: WindowStats, policy: GatePolicy, scope: Scope, now: datetime, *, hold: bool
) -> Finding:
    figures, severity, min_count = _figures(series, policy)
    outcome, clear, reason = _outcome(series, overall, figures, min_count, policy, hold=hold)
    labels = labels_of(scope, series.dimension, series.segment)
    exception = exception_of(FindingKind.GATE, labels, policy.exceptions, now=now)
    if outcome is Outcome.FAIL and exception is not None:
        outcome = Outcome.EXCEPTED
        reason = f"{reason}; {exception.signed}"
    if series.thinned:
        reason = f"{reason}; {series.thinned} more units were thinned out by judge.budget"
    return Finding(
        kind=FindingKind.GATE,
        labels=labels,
        severity=severity,
        outcome=outcome,
        clear=clear,
        reason=reason,
        since=now - policy.window,
        figures=figures,
    )


def _figures(series: WindowStats, policy: GatePolicy) -> tuple[tuple[Figure, ...], Severity, int]:
    n = series.n
    if series.dimension == CRITICAL:
        rate = policy.critical_rate or CriticalRateGate(max=1)
        figure = Figure(name="critical_rate", value=series.critical_rate, limit=rate.max, n=n)
        return (figure,), rate.severity, rate.min_count or policy.min_count
    gate = policy.gates[series.dimension]
    mean = Figure(
        name="mean", value=series.mean, limit=gate.mean_min, low=series.mean_low, high=series.mean_high, n=n
    )
    passing = Figure(name="pass_at_4", value=series.pass_at_4, limit=gate.pass_at_4_min, n=n)
    return (mean, passing), gate.severity, gate.min_count or policy.min_count


def _outcome(
    series: WindowStats,
    overall: WindowStats,
    figures: tuple[Figure, ...],
    min_count: int,
    policy: GatePolicy,
    *,
    hold: bool,
) -> tuple[Outcome, bool, str]:
    if _left_service(series) and overall.judged >= policy.min_count and _covered(overall, policy):
        # A configuration that serves nobody any more is over, and the judge demonstrably works.
        return Outcome.PASS, True, f"{series.segment} serves nobody; {overall.judged} others were judged"
    if series.n < min_count:
        return Outcome.NO_DATA, False, f"{series.n} judgments of the {min_count} it needs"
    failing = [figure for figure in figures if _short_by(figure, 0) > TOLERANCE]
    covered = _covered(series, policy)
    if not covered and (hold or not failing):
        # What fails is told; that all is well is not believed of a part that chance did not choose.
        return Outcome.NO_DATA, False, _missing(series)
    if failing:
        told = [*map(_sentence, failing), *(() if covered else (_missing(series),))]
        return Outcome.FAIL, False, "; ".join(told)
    near = [f for f in figures if _short_by(f, getattr(policy.clear_margin, f.name)) > TOLERANCE]
    if near:
        return Outcome.PASS, False, f"passes, but not by the margin: {'; '.join(map(_sentence, near))}"
    return Outcome.PASS, True, "; ".join(_sentence(figure) for figure in figures if figure.limit is not None)


def _missing(series: WindowStats) -> str:
    told = f"only {series.judged} of {series.judged + series.failed} units could be judged"
    if series.mean is None or series.bounds is None:
        return told
    low, high = series.bounds
    return f"{told}, so the mean lies between {low:.2f} and {high:.2f}"


def _left_service(series: WindowStats) -> bool:
    key = series.segment.partition("=")[0]
    return key in get_args(ConfigurationKey) and series.judged + series.failed == 0


def _covered(series: WindowStats, policy: GatePolicy) -> bool:
    return series.coverage is None or series.coverage >= policy.coverage_min - TOLERANCE


def _short_by(figure: Figure, margin: float) -> float:
    """Return how far a figure misses its limit plus the margin; negative if it reaches it."""
    if figure.limit is None or figure.value is None:
        return 0.0
    if figure.name == "critical_rate":
        # Half of what is left to perfection is the most that a margin may ask.
        return figure.value - (figure.limit - min(margin, figure.limit / 2))
    best = 5.0 if figure.name == "mean" else 1.0
    return figure.limit + min(margin, (best - figure.limit) / 2) - figure.value


def _sentence(figure: Figure) -> str:
    name = {"mean": "mean", "pass_at_4": "pass@4", "critical_rate": "critical rate"}[figure.name]
    bound = "at most" if figure.name == "critical_rate" else "at least"
    return f"{name} {figure.value:.3g}, asked {bound} {figure.limit:.3g} (n={figure.n})"
