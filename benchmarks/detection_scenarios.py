"""A scenario's name in, what is drawn and what in it must be found out; the simulator's own, and what it lacks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np
from deployment import Said
from simulated import BASELINE_HOURS, PER_HOUR

from monitor.windows.bucket import CRITICAL, OVERALL

WATCHED_HOURS = 96
CALM_HOURS = 24
"""How long what must not be told of is watched."""
AFTERWARDS_HOURS = 6
"""How long a fall that was found is watched on, for an end that comes too early."""


@dataclass(frozen=True)
class Variant:
    """A scenario of the simulator with what the simulator does not draw."""

    base: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of its scenario."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Of its world."""
    late: float = 0.0
    """Share of the units that come hours after their time."""
    judge_points: float | None = None
    """By how much the judge becomes harsher at the change; None where there are no anchors."""
    judge_ramp_hours: float = 0.0


VARIANTS: dict[str, Variant] = {
    "night_team": Variant("stationary", config={"diurnal_quality": 0.10}),
    "night_team_0.2": Variant("step_0.2", config={"diurnal_quality": 0.10}),
    "wander3": Variant("stationary", config={"ar_sd": 0.045}),
    "wander3_0.2": Variant("step_0.2", config={"ar_sd": 0.045}),
    "mediated_0.2": Variant("mediated_0.2", config={"risk_drop": 1.2}),
    "mediated_null": Variant("stationary", config={"risk_drop": 1.2}),
    "recovers_0.2": Variant("step_0.2", {"length_h": 24.0}),
    "late": Variant("stationary", late=0.01),
    "late_0.2": Variant("step_0.2", late=0.01),
    "anchors": Variant("stationary", judge_points=0.0),
    "judge_drift": Variant("step_0.2", {"drop": 0.0, "bad": False}, judge_points=0.2),
    "judge_drift_slow": Variant(
        "step_0.2", {"drop": 0.0, "bad": False}, judge_points=0.2, judge_ramp_hours=72
    ),
    "judge_drift+step_0.2": Variant("step_0.2", judge_points=0.2),
}


@dataclass(frozen=True)
class Asked:
    """What is drawn, and what in it must be found."""

    scenario: Any
    variant: Variant
    hours: int
    targets: frozenset[tuple[str, str]]
    """Series whose findings are right after the change."""
    nothing: bool
    """Nothing happens: all of the time is watched for false findings."""

    @property
    def ends(self) -> float | None:
        """Return after how many hours it is well again; None if never."""
        length = float(self.scenario.length_h)
        return length if self.scenario.bad and np.isfinite(length) else None


def asked_of(simulator: ModuleType, name: str, months: float) -> Asked:
    """Return what a scenario's name stands for."""
    variant = VARIANTS.get(name, Variant(name))
    scenario = replace(simulator.SCENARIOS[variant.base], **variant.changes)
    nothing = variant.base in {"stationary", "night"}
    segment = OVERALL if scenario.intents is None else f"intent=i{scenario.intents[0]}"
    hurt = [CRITICAL] if scenario.crit is not None else [simulator.DIMS[i] for i in scenario.dims]
    targets = {(one, place) for one in hurt for place in (OVERALL, segment)} if scenario.bad else set()
    hours = BASELINE_HOURS + (
        round(720 * months) if nothing else WATCHED_HOURS + int(variant.judge_ramp_hours)
    )
    return Asked(scenario, variant, hours, frozenset(targets), nothing)


def enough_of(asked: Asked, t0: float | None) -> Callable[[Sequence[Said], int], bool] | None:
    """Return what tells that a replicate has shown all that is asked of it, None if that takes all of its time.

    A fall must be found, and some hours gone by; what must not be told of is watched for a day, or as long as the
    judge goes on drifting and a day.
    """
    if t0 is None or asked.ends is not None:
        return None
    change, ramp = t0 * PER_HOUR, asked.variant.judge_ramp_hours * PER_HOUR

    def enough(said: Sequence[Said], row: int) -> bool:
        if not asked.targets:
            return row >= change + ramp + CALM_HOURS * PER_HOUR
        found = (one.row for one in said if one.key in asked.targets and one.row > change)
        return row >= next(found, row + 1) + AFTERWARDS_HOURS * PER_HOUR

    return enough
