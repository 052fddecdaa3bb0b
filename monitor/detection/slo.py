"""Windows in, how fast the budget of failures burns out: the share of scores of 4 and 5 against an objective.

Burn 1 uses up the budget in exactly the period. A burn must show in a long window, so that it matters, and in a
short one, so that it goes on (the SRE workbook's alerts; its five minutes are a bucket here).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.detection.exception import GateException, exception_of
from monitor.detection.finding import Figure, Finding, FindingKind, Outcome, Severity, labels_of
from monitor.windows.bucket import OVERALL, Scope
from monitor.windows.window import WindowStats

Objective = Annotated[float, Field(gt=0, lt=1)]
Minutes = Annotated[int, Field(ge=1, le=43_200)]
StatsOver = Callable[[timedelta], WindowStats]
"""The figures of one dimension over the time that ends now."""


class Burn(BaseModel):
    """How fast is too fast, over which windows, and how much people are disturbed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    long_minutes: Minutes
    short_minutes: Minutes
    factor: Annotated[float, Field(gt=0, le=1000)]
    severity: Severity

    @model_validator(mode="after")
    def _long_is_longer(self) -> Self:
        if self.short_minutes >= self.long_minutes:
            raise ValueError("short_minutes must be below long_minutes")
        return self

    @property
    def name(self) -> str:
        """Return it by its long window, which is part of an alert's identity."""
        return _length(self.long_minutes)


DEFAULT_BURNS = (
    Burn(long_minutes=60, short_minutes=15, factor=14.4, severity=Severity.PAGE),
    Burn(long_minutes=360, short_minutes=30, factor=6, severity=Severity.PAGE),
    Burn(long_minutes=4320, short_minutes=360, factor=1, severity=Severity.TICKET),
)


class SloPolicy(BaseModel):
    """The part of config/gates.yaml that is about budgets of failures. Without objectives it is off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objectives: dict[str, Objective] = Field(default_factory=dict)
    """Dimension -> the share of scores of 4 and 5 that the period must reach."""
    period_days: Annotated[int, Field(ge=1, le=90)] = 7
    min_count: Annotated[int, Field(ge=1)] = 50
    short_min_count: Annotated[int, Field(ge=1)] = 10
    burns: Annotated[tuple[Burn, ...], Field(min_length=1)] = DEFAULT_BURNS

    @model_validator(mode="after")
    def _burns_have_names_of_their_own(self) -> Self:
        names = [burn.name for burn in self.burns]
        if len(set(names)) != len(names):
            raise ValueError("burns: two have the same long_minutes, and would be one alert")
        return self

    @property
    def period(self) -> timedelta:
        """Return the time over which the budget is counted."""
        return timedelta(days=self.period_days)


def burn_rate(stats: WindowStats, objective: float) -> float | None:
    """Return how many times faster than allowed the budget burns; None where nothing was scored."""
    return None if stats.pass_at_4 is None else (1 - stats.pass_at_4) / (1 - objective)


def budget_left(stats: WindowStats, objective: float) -> float | None:
    """Return the share of the budget that a period's figures leave; negative if it is overdrawn."""
    burn = burn_rate(stats, objective)
    return None if burn is None else 1 - burn


def evaluate_slos(
    stats_of: Mapping[str, StatsOver],
    policy: SloPolicy,
    *,
    scope: Scope,
    now: datetime,
    coverage_min: float,
    exceptions: Iterable[GateException] = (),
    hold: bool = True,
) -> tuple[Finding, ...]:
    """Return one finding for each objective and burn, on all traffic of a scope; for `hold` see `evaluate_gates`."""
    signed = tuple(exceptions)
    found = []
    for dimension, objective in policy.objectives.items():
        over = stats_of[dimension]
        left = budget_left(over(policy.period), objective)
        for burn in policy.burns:
            long, short = (over(timedelta(minutes=m)) for m in (burn.long_minutes, burn.short_minutes))
            rates = burn_rate(long, objective), burn_rate(short, objective)
            outcome, reason = _outcome(long, short, rates, burn, policy, coverage_min=coverage_min, hold=hold)
            labels = labels_of(scope, dimension, OVERALL) | {"burn": burn.name}
            exception = exception_of(FindingKind.SLO, labels, signed, now=now)
            if outcome is Outcome.FAIL and exception is not None:
                outcome, reason = Outcome.EXCEPTED, f"{reason}; {exception.signed}"
            found.append(
                Finding(
                    kind=FindingKind.SLO,
                    labels=labels,
                    severity=burn.severity,
                    outcome=outcome,
                    clear=outcome is Outcome.PASS,
                    reason=reason if left is None else f"{reason}; {left:.0%} of the budget is left",
                    since=now - timedelta(minutes=burn.long_minutes),
                    figures=_figures(burn, rates, (long, short)),
                )
            )
    return tuple(found)


def _outcome(
    long: WindowStats,
    short: WindowStats,
    rates: tuple[float | None, float | None],
    burn: Burn,
    policy: SloPolicy,
    *,
    coverage_min: float,
    hold: bool,
) -> tuple[Outcome, str]:
    fails = all(rate is not None and rate >= burn.factor for rate in rates)
    for stats, least, name in (
        (long, policy.min_count, burn.name),
        (short, policy.short_min_count, _length(burn.short_minutes)),
    ):
        if stats.n < least:
            return Outcome.NO_DATA, f"{stats.n} judgments over {name} of the {least} it needs"
        low = stats.coverage is not None and stats.coverage < coverage_min
        # What burns is told; that all is well is not believed of a part that chance did not choose.
        if low and (hold or not fails):
            return Outcome.NO_DATA, f"only {stats.coverage:.0%} of the units over {name} could be judged"
    said = " and ".join(
        f"{rate or 0:.3g} times over {name}"
        for rate, name in zip(rates, (burn.name, _length(burn.short_minutes)), strict=True)
    )
    verdict = Outcome.FAIL if fails else Outcome.PASS
    return verdict, f"the budget burns {said}, allowed below {burn.factor:g}"


def _figures(
    burn: Burn, rates: tuple[float | None, float | None], stats: tuple[WindowStats, WindowStats]
) -> tuple[Figure, ...]:
    names = (f"burn over {burn.name}", f"burn over {_length(burn.short_minutes)}")
    return tuple(
        Figure(name=name, value=rate, limit=burn.factor, n=one.n)
        for name, rate, one in zip(names, rates, stats, strict=True)
    )


def _length(minutes: int) -> str:
    for size, unit in ((1440, "d"), (60, "h")):
        if minutes % size == 0:
            return f"{minutes // size}{unit}"
    return f"{minutes}m"
