"""What was said in each replicate in, the figures of the issue out."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from deployment import Said
from detection_scenarios import Asked
from simulated import BASELINE_HOURS, PER_HOUR

from monitor.windows.bucket import OVERALL

MONTH = 30 * 24 * PER_HOUR


@dataclass
class Outcome:
    """What one detector said in all replicates."""

    delays: list[float] = field(default_factory=list)
    """Hours; infinite where it said nothing."""
    onset_errors: list[float] = field(default_factory=list)
    onset_covered: list[bool] = field(default_factory=list)
    effects: list[float] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    """What spoke before anything happened: the world, the series, hours into the watch and the effect."""
    overall: int = 0
    parts_first: int = 0
    """Replicates in which another part of what fell was told of before it."""
    others: list[str] = field(default_factory=list)
    disturbed: int = 0
    """Replicates in which anything was said after the change that is not about what changed."""
    pages: int = 0
    resolved_early: int = 0
    resolve_delays: list[float] = field(default_factory=list)
    months: float = 0.0

    def report(self, replicates: int) -> dict[str, Any]:
        """Return the figures by their names in the issue."""

        def at(share: float) -> float | None:
            value = float(np.quantile(self.delays, share, method="higher")) if self.delays else np.inf
            return round(value, 2) if np.isfinite(value) else None

        errors = np.abs(self.onset_errors)
        low, high = poisson_interval(len(self.false))
        return {
            "false_pages_per_month": round(len(self.false) / self.months, 4) if self.months else None,
            "false_pages_95": [round(low / self.months, 3), round(high / self.months, 3)]
            if self.months
            else None,
            "false_pages": len(self.false),
            "false_series": self.false[:20],
            "months": round(self.months, 2),
            "delay_median_hours": at(0.5),
            "delay_p90_hours": at(0.9),
            "power": round(float(np.isfinite(self.delays).mean()), 3) if self.delays else None,
            "overall_pages": self.overall,
            "parts_first": self.parts_first,
            "other_findings": len(self.others),
            "other_series": self.others[:20],
            "replicates_with_others": self.disturbed,
            "page_level": self.pages,
            "onset_error_hours_p90": round(float(np.quantile(errors, 0.9)), 2) if len(errors) else None,
            "onset_covered": round(statistics.mean(self.onset_covered), 2) if self.onset_covered else None,
            "effect_median": round(statistics.median(self.effects), 3) if self.effects else None,
            "resolved_while_bad": self.resolved_early,
            "resolved": len(self.resolve_delays),
            "resolve_median_hours": round(statistics.median(self.resolve_delays), 2)
            if self.resolve_delays
            else None,
            "replicates": replicates,
        }


def score(said: Sequence[Said], outcome: Outcome, asked: Asked, t0: float | None, world: int) -> None:
    """Enter what was said in one replicate, which has this world."""
    span = asked.hours * PER_HOUR
    began = [one for one in said if not one.ended]
    change = span if t0 is None else t0 * PER_HOUR
    outcome.false += [_named(one, world, BASELINE_HOURS * PER_HOUR) for one in began if one.row <= change]
    outcome.months += (min(change, span) - BASELINE_HOURS * PER_HOUR) / MONTH
    if t0 is None:
        return
    after = [one for one in began if one.row > change]
    outcome.overall += any(one.key[1] == OVERALL for one in after)
    hurt = {dimension for dimension, _ in asked.targets}
    others = [one for one in after if one.key[0] not in hurt]
    outcome.others += [_named(one, world, change) for one in others]
    outcome.disturbed += bool(others)
    if not asked.targets:
        return
    hits = [one for one in after if one.key in asked.targets]
    outcome.delays.append((hits[0].row - change) / PER_HOUR if hits else np.inf)
    if not hits:
        return
    first = hits[0]
    outcome.parts_first += any(one.row < first.row and one.key[0] in hurt for one in after)
    outcome.onset_errors.append((first.onset - change) / PER_HOUR)
    outcome.onset_covered.append(first.low <= change <= first.high)
    outcome.effects.append(first.effect)
    outcome.pages += first.page
    over = [one.row for one in said if one.ended and one.key == first.key and one.row > first.row]
    bad_until = np.inf if asked.ends is None else change + asked.ends * PER_HOUR
    outcome.resolved_early += any(row <= bad_until for row in over)
    if asked.ends is not None:
        outcome.resolve_delays += [(row - bad_until) / PER_HOUR for row in over if row > bad_until][:1]


def _named(one: Said, world: int, since: float) -> str:
    return f"{world}:{'/'.join(one.key)}:{(one.row - since) / PER_HOUR:.2f}h:{one.effect:+.3f}"


def enter(
    alarms: Mapping[str, list[float]], hours: float, t0: float | None, outcomes: dict[str, Outcome]
) -> None:
    """Enter what the peers said in one replicate."""
    change = hours if t0 is None else t0
    for name, times in alarms.items():
        outcome = outcomes.setdefault(name, Outcome())
        outcome.false += [f"{hour:.1f}h" for hour in times if hour < change]
        outcome.months += (change - BASELINE_HOURS) / 720
        after = [hour - change for hour in times if hour >= change]
        if t0 is not None:
            outcome.overall += bool(after)
            outcome.delays.append(after[0] if after else np.inf)


def poisson_interval(count: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a Poisson mean (Garwood, Biometrika 28, 1936)."""

    def tail(mean: float, most: int) -> float:
        return float(
            np.exp(-mean) * sum(mean**k / float(np.prod(np.arange(1.0, k + 1))) for k in range(most + 1))
        )

    def solved(most: int, chance: float) -> float:
        low, high = 0.0, 10.0 + 4 * most
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle, most) > chance else (low, middle)
        return low

    return (solved(count - 1, 0.975) if count else 0.0), solved(count, 0.025)
