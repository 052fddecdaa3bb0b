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
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

# The matrices are small: more threads than one cost more than they give. numpy reads it when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from deployment import Deployment, Late
from detection_outcome import Outcome, enter, score
from detection_peers import alarms_of
from detection_scenarios import Asked, asked_of, enough_of
from simulated import (
    PER_HOUR,
    Harshness,
    Trace,
    anchor_scores,
    comes_late,
    load_simulator,
    units_of,
)

from monitor.policy import Policy, load_policy

PROFILES: dict[
    str, tuple[dict[str, float], float | None]
] = {  # changes of `detection`, nats left beyond a blip
    "shipped": ({}, None),
    "g6": ({}, 6.0),
    "fast": ({"false_pages_per_month": 20.0, "false_critical_per_month": 10.0}, 4.0),
    "cautious": ({"false_pages_per_month": 0.1, "false_critical_per_month": 0.1}, 6.0),
}


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
