"""How soon a fall of quality is found, and how often nothing is: what production runs, on simulated traffic.

    python benchmarks/detection.py --scenario step_0.2 [--replicates 36] [--seed 5001] [--world-seed 501]
        [--rate 1000] [--profile shipped g6 fast cautious] [--months 1] [--alone] [--every] [--short]

The simulator (`../shared/bench/traffic_simulator.py`, seen from the repository) draws judged turns, `--rate` an
hour. The product's unit is a conversation, so its three turns (on average) become one: scored by its last turn,
or by a critical turn if it has one, and counted at the bucket of that turn. `--rate 1000` is thus 333 units an
hour; `--rate 3000` is 1000. Strata are the intents; the sampling class (a thumb down) only makes the weight.
Buckets are the product's own cells; the baseline is pinned after the first seven days; then `Detection` is asked
every quarter of an hour, as the worker asks it (`deployment.py`), with 40 series (overall and nine intents, of four
dimensions) and ten of critical failures, whose budget is their own. A finding is an alert that people are told of,
of any level. Each replicate has a world and a seed of its own. `--profile` is `shipped` (config/monitor.yaml) or a
change of it; the first is reported at the top, others under their names, on the same traffic.

River's ADWIN and Page-Hinkley (defaults and tuned) and the guide's rule (the six-hour mean 0.2 below the baseline
at three hourly evaluations on end) run on the first dimension of the same traffic, unless `--alone`. `--every`
leaves no evaluation out. `--short` is what `make bench` runs. The last line is JSON.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

# The matrices are small: more threads than one cost more than they give. numpy reads it when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from deployment import Deployment, Late, Said
from detection_peers import alarms_of
from simulated import (
    BASELINE_HOURS,
    PER_HOUR,
    Harshness,
    Trace,
    anchor_scores,
    comes_late,
    load_simulator,
    units_of,
)

from monitor.policy import Policy, load_policy
from monitor.windows.bucket import CRITICAL, OVERALL

WATCHED_HOURS = 96
CALM_HOURS = 24
"""How long what must not be told of is watched."""
AFTERWARDS_HOURS = 6
"""How long a fall that was found is watched on, for an end that comes too early."""
MONTH = 30 * 24 * PER_HOUR
PROFILES: dict[
    str, tuple[dict[str, float], float | None]
] = {  # changes of `detection`, nats left beyond a blip
    "shipped": ({}, None),
    "g6": ({}, 6.0),
    "fast": ({"false_pages_per_month": 20.0, "false_critical_per_month": 10.0}, 4.0),
    "cautious": ({"false_pages_per_month": 0.1, "false_critical_per_month": 0.1}, 6.0),
}


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


def drawn(simulator: ModuleType, asked: Asked, config: Any, seed: int, policy: Policy) -> tuple[Any, ...]:
    """Draw one replicate: the conversations, t0, and what a deployment is given."""
    turns = simulator.simulate(asked.scenario, config, asked.hours, seed)
    units = units_of(turns, simulator.world(config)["pi"].reshape(-1))
    t0 = None if asked.nothing else float(turns["t0"])
    anchors = []
    if asked.variant.judge_points is not None:
        judge = Harshness(asked.variant.judge_points, t0 or 0.0, asked.variant.judge_ramp_hours)
        chances = judge.chances(units["scores"])
        anchors = anchor_scores(simulator, judge, chances, hours=asked.hours, seed=seed)
        units["scores"] = judge.judged(units["row"] / PER_HOUR, units["scores"], chances, seed)
    known = comes_late(units, asked.variant.late, seed)
    in_time = known == units["row"] + 1

    late = []
    for row in np.unique(known[~in_time]).tolist():
        coming = ~in_time & (known == row)
        # Few buckets, numbered anew: a trace of their own would be empty nearly everywhere.
        places, number = np.unique(units["row"][coming], return_inverse=True)
        part = {name: values[coming] for name, values in units.items()} | {"row": number}
        few = Trace(part, len(places), simulator.DIMS, policy.monitor.windows.strata)
        late.append(Late(row, {place: few.bucket(i) for i, place in enumerate(places.tolist())}))
    soon = {name: values[in_time] for name, values in units.items()}
    trace = Trace(soon, asked.hours * PER_HOUR, simulator.DIMS, policy.monitor.windows.strata)
    return units, t0, {"trace": trace, "late": late, "anchors": anchors}


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


def policies(names: Sequence[str]) -> Iterator[tuple[str, Policy]]:
    """Yield the shipped configuration with the changes of each profile."""
    shipped = load_policy()
    for name in names:
        changes, trimmed = PROFILES[name]
        detection = shipped.monitor.detection.model_copy(update=changes)
        if trimmed is not None:
            regression = detection.regression.model_copy(update={"trimmed_min_nats": trimmed})
            detection = detection.model_copy(update={"regression": regression})
        monitor = shipped.monitor.model_copy(update={"detection": detection})
        yield name, shipped.model_copy(update={"monitor": monitor})


def measured(asked_for: argparse.Namespace) -> dict[str, Any]:
    """Run the replicates of one scenario."""
    simulator = load_simulator()
    asked = asked_of(simulator, asked_for.scenario, asked_for.months)
    configured = dict(policies(asked_for.profile))
    outcomes = {name: Outcome() for name in configured}
    peers: dict[str, Outcome] = {}
    took: list[float] = []
    began = time.process_time()
    for replicate in range(asked_for.replicates):
        world = asked_for.world_seed + replicate
        config = simulator.Config(rate=asked_for.rate, world_seed=world, **asked.variant.config)
        shipped = next(iter(configured.values()))
        units, t0, given = drawn(simulator, asked, config, asked_for.seed + replicate, shipped)
        for name, policy in configured.items():
            deployment = Deployment(policy, rows=asked.hours * PER_HOUR, **given)
            said = deployment.run(every=asked_for.every, enough=enough_of(asked, t0))
            score(said, outcomes[name], asked, t0, world)
            took += deployment.evaluate_ms
        if not asked_for.alone:
            last = float(units["row"].max()) / PER_HOUR
            enter(alarms_of(units, asked.scenario.dims[0]), last, t0, peers)
    names = list(configured)
    result = {"scenario": asked_for.scenario, "rate": asked_for.rate, "profile": names[0]}
    result |= outcomes[names[0]].report(asked_for.replicates)
    result["evaluate_ms"] = round(statistics.median(took), 2) if took else None
    result["cpu_seconds"] = round(time.process_time() - began, 1)
    for name in names[1:]:
        result[name] = outcomes[name].report(asked_for.replicates)
    for name, other in peers.items():
        result[name] = other.report(asked_for.replicates) | {"false_series": None, "other_series": None}
    return result


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", default="step_0.2")
    parser.add_argument("--replicates", type=int, default=36)
    parser.add_argument("--seed", type=int, default=5001)
    parser.add_argument("--world-seed", type=int, default=501)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--profile", nargs="+", choices=sorted(PROFILES), default=["shipped"])
    parser.add_argument("--months", type=float, default=1.0, help="watched where nothing happens")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--every", action="store_true", help="leave no evaluation out")
    parser.add_argument(
        "--short", action="store_true", help="four replicates, and a week where nothing happens"
    )
    asked_for = parser.parse_args()
    if asked_for.short:
        asked_for.replicates, asked_for.months = 4, 0.25
    result = measured(asked_for)
    for name, value in result.items():
        print(f"{name:26s} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
