"""The simulator's judged turns in, the product's own buckets out; and what it does not draw: lateness, the judge."""

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from monitor.conversations.conversation import UNKNOWN
from monitor.detection.counts import SeriesCounts
from monitor.judging.anchors import AnchorPolicy, AnchorScore
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts, Cell

SIMULATOR = Path(__file__).parents[2] / "shared/bench/traffic_simulator.py"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
BUCKET = timedelta(minutes=15)
PER_HOUR = 4
BASELINE_HOURS = 168


def load_simulator() -> ModuleType:
    """Import the simulator by its path; leave with a message where it is absent."""
    if not SIMULATOR.exists():
        print(f"skipped: there is no simulator at {SIMULATOR}")
        print(json.dumps({"skipped": "no simulator"}))
        sys.exit(0)
    spec = importlib.util.spec_from_file_location("traffic_simulator", SIMULATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def units_of(drawn: Mapping[str, Any], rates: np.ndarray) -> dict[str, np.ndarray]:
    """Make conversations of judged turns: bucket, intent, rate, score of each dimension, critical or not."""
    first = np.r_[0, np.nonzero(np.diff(drawn["conv"]))[0] + 1]
    last = np.r_[first[1:], len(drawn["conv"])] - 1
    worst = np.minimum.reduceat(drawn["x"], first)
    scores = np.where(worst <= 2, worst, drawn["x"][last])
    return {
        "row": (drawn["t"][last] * PER_HOUR).astype(int),
        "stratum": drawn["stratum"][last].astype(int),
        "rate": rates[drawn["stratum"][last]],
        "scores": scores,
        "critical": (worst <= 2).any(axis=1).astype(int),
    }


class Trace:
    """Conversations counted once, as arrays; a bucket becomes the product's cells when somebody asks for it.

    `strata` are the attributes that make a stratum; the simulator knows the intent alone.
    """

    def __init__(
        self, units: Mapping[str, np.ndarray], rows: int, dimensions: Sequence[str], strata: Sequence[str]
    ) -> None:
        """Count units by bucket, class and mark, in the overall series and in the intent's."""
        classes = sorted(
            {(f"i{code // 2}", f"{rate:.6g}", code) for code, rate in _pairs(units["stratum"], units["rate"])}
        )
        place = np.zeros(64, dtype=int)
        place[[code for _, _, code in classes]] = np.arange(len(classes))
        self.intents = [intent for intent, _, _ in classes]
        self.rates = [rate for _, rate, _ in classes]
        self.strata = [
            ",".join(intent if key == "intent" else UNKNOWN for key in strata) for intent in self.intents
        ]
        cell = units["row"] * len(classes) + place[units["stratum"]]
        self.counts: dict[str, np.ndarray] = {}
        for i, name in enumerate((*dimensions, CRITICAL)):
            marks = 2 if name == CRITICAL else 5
            mark = units["critical"] if name == CRITICAL else units["scores"][:, i].astype(int) - 1
            counted = np.bincount(cell * marks + mark, minlength=rows * len(classes) * marks)
            self.counts[name] = counted[: rows * len(classes) * marks].reshape(rows, len(classes), marks)
        self._cells: dict[tuple[str, int, int], tuple[Cell, Cell]] = {}

    def bucket(self, row: int) -> BucketCounts:
        """Return the cells of one bucket: each unit in the overall series and in that of its intent."""
        cells: dict[Cell, int] = {}
        for name, counts in self.counts.items():
            for column, mark in np.argwhere(counts[row]).tolist():
                count = int(counts[row, column, mark])
                for one in self._cells_of(name, column, mark):
                    # Two classes of one rate are one cell.
                    cells[one] = cells.get(one, 0) + count
        return cells

    def series(self, first: int, last: int) -> list[SeriesCounts]:
        """Return every series over the rows [first, last), as the product's cache would hold them."""
        found = []
        for name, counts in self.counts.items():
            for segment in (OVERALL, *dict.fromkeys(self.intents)):
                mine = [i for i, intent in enumerate(self.intents) if segment in {OVERALL, intent}]
                found.append(
                    SeriesCounts(
                        dimension=name,
                        segment=segment if segment == OVERALL else f"intent={segment}",
                        start=MONDAY + first * BUCKET,
                        bucket_minutes=15,
                        columns=tuple((self.strata[i], self.rates[i]) for i in mine),
                        weights=np.array([1 / float(self.rates[i]) for i in mine]),
                        values=np.arange(2.0) if name == CRITICAL else np.arange(1.0, 6.0),
                        counts=counts[first:last, mine].astype(float),
                    )
                )
        return found

    def _cells_of(self, name: str, column: int, mark: int) -> tuple[Cell, Cell]:
        cells = self._cells.get((name, column, mark))
        if cells is None:
            value = str(mark if name == CRITICAL else mark + 1)
            stratum, rate = self.strata[column], self.rates[column]
            segments = (OVERALL, f"intent={self.intents[column]}")
            one, other = (Cell(name, segment, stratum, value, rate) for segment in segments)
            cells = self._cells[name, column, mark] = one, other
        return cells


def _pairs(codes: np.ndarray, values: np.ndarray) -> list[tuple[int, float]]:
    found, first = np.unique(codes, return_index=True)
    return list(zip(found.tolist(), values[first].tolist(), strict=True))


def comes_late(units: Mapping[str, np.ndarray], share: float, seed: int) -> np.ndarray:
    """Return the row at whose end each unit is known: its own, or hours later (2 at least, 5 on average)."""
    chance = np.random.default_rng([seed, 2])
    n = len(units["row"])
    later = np.ceil(PER_HOUR * (2 + chance.exponential(3, n))).astype(int)
    return units["row"] + 1 + np.where(chance.random(n) < share, later, 0)


@dataclass(frozen=True)
class Harshness:
    """A judge that from some hour on scores a 4 or a 5 one lower, so often that a dimension's mean loses `points`."""

    points: float
    from_hour: float
    ramp_hours: float = 0.0

    def chances(self, scores: np.ndarray) -> np.ndarray:
        """Return [dimension] how often a 4 or a 5 of these [unit, dimension] must become one less."""
        chances: np.ndarray = self.points / np.maximum((scores > 3).mean(axis=0), 0.05)
        return np.minimum(chances, 1.0)

    def judged(self, hours: np.ndarray, scores: np.ndarray, chances: np.ndarray, seed: int) -> np.ndarray:
        """Return the scores [unit, dimension] that it gives."""
        past = hours - self.from_hour
        part = np.clip(past / self.ramp_hours, 0, 1) if self.ramp_hours else past >= 0
        lower = np.random.default_rng([seed, 3]).random(scores.shape) < part[:, None] * chances
        judged: np.ndarray = scores - (lower & (scores > 3))
        return judged


def anchor_scores(
    simulator: ModuleType,
    judge: Harshness,
    chances: np.ndarray,
    *,
    hours: int,
    seed: int,
    anchors: int = 64,
    per_round: int = AnchorPolicy().per_round,
) -> list[AnchorScore]:
    """Judge the anchor set, all of it in the first hour and then as many an hour as the product does.

    Of an anchor's score 85 % of the latent variance is its own; the rest is what the judge says otherwise each time.
    """
    config = simulator.Config()
    chance = np.random.default_rng([seed, 4])
    level = simulator._mean_to_m(config)(np.array(config.dim_mean))  # noqa: SLF001 - the score model is its own
    own = chance.normal(0, 0.85**0.5, (anchors, len(level))) + level
    found, turn = [], 0
    for hour in range(hours):
        asked = range(anchors) if hour == 0 else [(turn + i) % anchors for i in range(per_round)]
        turn = 0 if hour == 0 else (turn + per_round) % anchors
        z = own[list(asked)] + chance.normal(0, 0.15**0.5, (len(asked), len(level)))
        raw = 3 + (z > 0) + (z > config.gap)
        said = judge.judged(np.full(len(asked), hour + 0.5), raw, chances, seed + 7919 * (hour + 1))
        at = MONDAY + timedelta(hours=hour, minutes=30)
        found += [
            AnchorScore(
                anchor=f"a{i}", round=hour, at=at, scores=dict(zip(simulator.DIMS, row.tolist(), strict=True))
            )
            for i, row in zip(asked, said, strict=True)
        ]
    return found
