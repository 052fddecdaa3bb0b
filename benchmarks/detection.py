"""How soon a fall of quality is found, and how often nothing is: the product's detectors on simulated traffic.

    python benchmarks/detection.py --scenario step_0.2 [--replicates 36] [--seed 5001] [--world-seed 501]
        [--rate 1000] [--profile default|fast|cautious] [--months 1] [--beside]

The simulator (`../shared/bench/traffic_simulator.py`, seen from the repository) draws judged turns, `--rate` an
hour. The product's unit is a conversation, so its three turns (on average) become one: scored by its last turn,
or by a critical turn if it has one, and counted at the bucket of that turn. `--rate 1000` is thus 333 units an
hour; `--rate 3000` is 1000. Strata are the intents; the sampling class (a thumb down) only makes the weight.
Buckets are the product's own cells, pinned after the first seven days, evaluated every quarter of an hour with
40 series (overall and nine intents, of four dimensions) and ten of critical failures, whose budget is their own.
A finding is one of any level. Each replicate has a world and a seed of its own. `--beside` adds river's ADWIN and
Page-Hinkley and the guide's rule (the six-hour mean 0.2 below the baseline at three hourly evaluations on end).
The last line is JSON.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from detection_peers import alarms_of
from simulated import BASELINE_HOURS, BUCKET, MONDAY, PER_HOUR, buckets_of, load_simulator, units_of

from monitor.detection.baseline import Baseline, pin
from monitor.detection.counts import CountsCache
from monitor.detection.critical_rate import ShareRisePolicy, assess_shares, share_increments
from monitor.detection.multiplicity import patience, speaking
from monitor.detection.regression import RegressionPolicy, assess, increments, payoffs
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts

WATCHED_HOURS = 96
WINDOW = 7 * 24 * PER_HOUR
MONTH = 30 * 24 * PER_HOUR
PROFILES = {  # false findings a month that the bound allows: of scores, of critical failures; nats beyond a blip
    "default": (1.0, 1.0, 4.6),
    "fast": (20.0, 10.0, 4.0),
    "cautious": (0.1, 0.1, 6.0),
}
VARIANTS: dict[
    str, tuple[str, dict[str, Any], dict[str, Any]]
] = {  # scenario it is drawn from, scenario, config
    "night_team": ("stationary", {}, {"diurnal_quality": 0.10}),
    "night_team_0.2": ("step_0.2", {}, {"diurnal_quality": 0.10}),
    "wander3": ("stationary", {}, {"ar_sd": 0.045}),
    "mediated_0.2": ("mediated_0.2", {}, {"risk_drop": 1.2}),
    "mediated_null": ("stationary", {}, {"risk_drop": 1.2}),
    "recovers_0.2": ("step_0.2", {"length_h": 24.0}, {}),
}


@dataclass
class Outcome:
    """What one detector said in all replicates."""

    delays: list[float] = field(default_factory=list)
    """Hours; infinite where it said nothing."""
    onset_errors: list[float] = field(default_factory=list)
    onset_covered: list[bool] = field(default_factory=list)
    effects: list[float] = field(default_factory=list)
    false: int = 0
    false_keys: list[str] = field(default_factory=list)
    overall: int = 0
    others: int = 0
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
        return {
            "false_pages_per_month": round(self.false / self.months, 4) if self.months else None,
            "false_pages": self.false,
            "false_series": self.false_keys[:20],
            "months": round(self.months, 2),
            "delay_median_hours": at(0.5),
            "delay_p90_hours": at(0.9),
            "power": round(float(np.isfinite(self.delays).mean()), 3) if self.delays else None,
            "overall_pages": self.overall,
            "other_findings": self.others,
            "page_level": self.pages,
            "onset_error_hours_p90": round(float(np.quantile(errors, 0.9)), 2) if len(errors) else None,
            "onset_covered": round(statistics.mean(self.onset_covered), 2) if self.onset_covered else None,
            "effect_median": round(statistics.median(self.effects), 3) if self.effects else None,
            "resolved_while_bad": self.resolved_early,
            "resolve_median_hours": round(statistics.median(self.resolve_delays), 2)
            if self.resolve_delays
            else None,
            "replicates": replicates,
        }


@dataclass(frozen=True)
class Said:
    """One finding, or the end of one."""

    row: int
    key: tuple[str, str]
    ended: bool = False
    onset: int = 0
    low: int = 0
    high: int = 0
    effect: float = 0.0
    page: bool = False


class Watch:
    """The product's evaluation over one trace, quarter of an hour by quarter."""

    def __init__(self, buckets: Mapping[datetime, BucketCounts], rows: int, profile: str) -> None:
        budget, share_budget, trimmed = PROFILES[profile]
        self.policy = RegressionPolicy(trimmed_min_nats=trimmed)
        self.shares = ShareRisePolicy()
        self.h0 = patience(evaluations_per_month=MONTH, false_per_month=budget)
        self.share_h0 = patience(evaluations_per_month=MONTH, false_per_month=share_budget)
        self.rows = rows
        cache = CountsCache(bucket_minutes=15, span=rows * BUCKET)
        cache.update(buckets)
        end = MONDAY + rows * BUCKET
        everything = [cache.series(key, MONDAY, end) for key in cache.keys]
        base = BASELINE_HOURS * PER_HOUR
        overall = [one.rows(0, base) for one in everything if one.segment == OVERALL]
        self.baseline: Baseline = pin(overall, scope_id="bench", label="first week")
        self.scored = [one for one in everything if one.dimension != CRITICAL]
        self.critical = [one for one in everything if one.dimension == CRITICAL]
        self.pairs = [
            (one, payoffs(one, self.baseline.dimensions[one.dimension], self.policy)) for one in self.scored
        ]
        self.sums = increments(self.pairs)
        self.share_sums = share_increments(
            [(one, self.baseline.shares[CRITICAL]) for one in self.critical], self.shares
        )
        self.keys = [one.key for one in (*self.scored, *self.critical)]
        self.base = base

    def run(self) -> list[Said]:
        """Evaluate every boundary after the baseline.

        Where even the sum over all starts cannot reach the lowest threshold, and nothing fires, an evaluation
        has nothing to say and is left out; that is the same result in a tenth of the time.
        """
        since = np.full(len(self.keys), self.base)
        firing = np.zeros(len(self.keys), dtype=bool)
        said: list[Said] = []
        ceiling = self._ceiling()
        for row in range(self.base + 1, self.rows + 1):
            if ceiling[row] < 0 and not firing.any():
                continue
            said += self._evaluate(row, since, firing)
        return said

    def _evaluate(self, row: int, since: np.ndarray, firing: np.ndarray) -> list[Said]:
        first = max(row - WINDOW, 0)
        start = np.maximum(since - first, 0)
        n = len(self.scored)
        found = assess(_cut(self.sums, first, row), self.policy, since=start[:n])
        rises = assess_shares(_cut(self.share_sums, first, row), self.shares, since=start[n:])
        allowed = speaking(dict(zip(self.keys[:n], found.evidence.tolist(), strict=True)), self.h0)
        allowed |= speaking(dict(zip(self.keys[n:], rises.evidence.tolist(), strict=True)), self.share_h0)
        sustained = np.r_[found.sustained, rises.sustained]
        recovered = np.r_[found.recovered, rises.recovered]
        said = []
        for i, key in enumerate(self.keys):
            if key in allowed and sustained[i] and not firing[i]:
                firing[i] = True
                if i < n:
                    said.append(
                        Said(
                            row,
                            key,
                            onset=first + int(found.onset[i]),
                            low=first + int(found.onset_low[i]),
                            high=first + int(found.onset_high[i]),
                            effect=float(found.effect[i]),
                            page=bool(found.pages[i]),
                        )
                    )
                else:
                    onset = first + int(rises.onset[i - n])
                    share = float(rises.share[i - n])
                    said.append(Said(row, key, onset=onset, low=onset - 1, high=onset, effect=share))
            elif firing[i] and recovered[i]:
                firing[i], since[i] = False, row
                said.append(Said(row, key, ended=True))
        return said

    def _ceiling(self) -> np.ndarray:
        """Return [row] how far the most evidence is above the lowest threshold of its family.

        By the recursion R_t = (1 + R_(t-1)) exp(l_t), whose sum is over all starts.
        """
        top = np.full(self.rows + 1, -np.inf)
        for wealth, h0 in ((self.sums.wealth, self.h0), (self.share_sums.wealth, self.share_h0)):
            total = np.zeros((wealth.shape[0], wealth.shape[2]))
            for row in range(self.base, self.rows):
                total = (1 + total) * np.exp(np.minimum(wealth[:, row], 300.0))
                total = np.minimum(total, 1e200)
                top[row + 1] = max(top[row + 1], float(np.log(total.mean(axis=1)).max()) - h0)
        return top

    def evaluate_ms(self) -> float:
        """Return the milliseconds of one evaluation of all series over seven days, from the dense counts."""
        cut = [(one.rows(self.rows - WINDOW, self.rows), paid) for one, paid in self.pairs]
        times = []
        for _ in range(7):
            began = time.perf_counter()
            assess(increments(cut), self.policy)
            times.append(1000 * (time.perf_counter() - began))
        return statistics.median(times)


def _cut(found: Any, first: int, last: int) -> Any:
    parts = {
        name: value[:, first:last]
        for name, value in vars(found).items()
        if isinstance(value, np.ndarray) and value.ndim > 1
    }
    return replace(found, **parts)


def score(said: Sequence[Said], outcome: Outcome, *, t0: float | None, targets: set[tuple[str, str]], span: int,
          ends: float | None = None) -> None:  # fmt: skip
    """Enter what was said in one replicate. Incidents that explain one another still count one by one."""
    began = [one for one in said if not one.ended]
    change = span if t0 is None else t0 * PER_HOUR
    outcome.false += sum(one.row <= change for one in began)
    outcome.false_keys += ["/".join(one.key) for one in began if one.row <= change]
    outcome.months += (min(change, span) - BASELINE_HOURS * PER_HOUR) / MONTH
    if t0 is None:
        return
    after = [one for one in began if one.row > change]
    outcome.overall += any(one.key[1] == OVERALL for one in after)
    hurt = {dimension for dimension, _ in targets}
    outcome.others += sum(one.key[0] not in hurt for one in after)
    if not targets:
        return
    hits = [one for one in after if one.key in targets]
    outcome.delays.append((hits[0].row - change) / PER_HOUR if hits else np.inf)
    if hits:
        first = hits[0]
        outcome.onset_errors.append((first.onset - change) / PER_HOUR)
        outcome.onset_covered.append(first.low <= change <= first.high)
        outcome.effects.append(first.effect)
        outcome.pages += first.page
        over = [one.row for one in said if one.ended and one.key == first.key and one.row > first.row]
        bad_until = np.inf if ends is None else change + ends * PER_HOUR
        outcome.resolved_early += any(row <= bad_until for row in over)
        if ends is not None:
            outcome.resolve_delays += [(row - bad_until) / PER_HOUR for row in over if row > bad_until][:1]


def enter(
    alarms: Mapping[str, list[float]], hours: float, t0: float | None, outcomes: dict[str, Outcome]
) -> None:
    """Enter what the peers said in one replicate."""
    change = hours if t0 is None else t0
    for name, times in alarms.items():
        outcome = outcomes.setdefault(name, Outcome())
        outcome.false += sum(hour < change for hour in times)
        outcome.months += (change - BASELINE_HOURS) / 720
        after = [hour - change for hour in times if hour >= change]
        if t0 is not None:
            outcome.overall += bool(after)
            outcome.delays.append(after[0] if after else np.inf)


def main() -> None:
    """Run the replicates of one scenario and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", default="step_0.2")
    parser.add_argument("--replicates", type=int, default=36)
    parser.add_argument("--seed", type=int, default=5001)
    parser.add_argument("--world-seed", type=int, default=501)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="default")
    parser.add_argument(
        "--months", type=float, default=1.0, help="watched per replicate where nothing happens"
    )
    parser.add_argument("--beside", action="store_true")
    asked = parser.parse_args()
    simulator = load_simulator()
    base, changes, config = VARIANTS.get(asked.scenario, (asked.scenario, {}, {}))
    scenario = replace(simulator.SCENARIOS[base], **changes)
    nothing = base in ("stationary", "night")
    hours = BASELINE_HOURS + (round(720 * asked.months) if nothing else WATCHED_HOURS)
    names = simulator.DIMS
    segment = OVERALL if scenario.intents is None else f"intent=i{scenario.intents[0]}"
    hurt = [CRITICAL] if scenario.crit is not None else [names[i] for i in scenario.dims]
    targets = {(name, one) for name in hurt for one in (OVERALL, segment)} if scenario.bad else set()
    ends = scenario.length_h if scenario.bad and np.isfinite(scenario.length_h) else None

    outcome, others, took = Outcome(), {}, []
    for replicate in range(asked.replicates):
        world = simulator.Config(rate=asked.rate, world_seed=asked.world_seed + replicate, **config)
        drawn = simulator.simulate(scenario, world, hours, asked.seed + replicate)
        units = units_of(drawn, simulator.world(world)["pi"].reshape(-1))
        watch = Watch(buckets_of(units, names), hours * PER_HOUR, asked.profile)
        t0 = None if nothing else float(drawn["t0"])
        score(watch.run(), outcome, t0=t0, targets=targets, span=watch.rows, ends=ends)
        took.append(watch.evaluate_ms())
        if asked.beside:
            last = float(units["row"].max()) / PER_HOUR
            enter(alarms_of(units, scenario.dims[0]), last, t0, others)
    result = {"scenario": asked.scenario, "rate": asked.rate, "profile": asked.profile}
    result |= outcome.report(asked.replicates) | {"evaluate_ms": round(statistics.median(took), 2)}
    for name, other in others.items():
        result[name] = other.report(asked.replicates)
    for name, value in result.items():
        print(f"{name:26s} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
