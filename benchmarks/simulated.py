"""The simulator's judged turns in, the product's own buckets out."""

import importlib.util
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

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


def buckets_of(units: Mapping[str, np.ndarray], dimensions: Sequence[str]) -> dict[datetime, BucketCounts]:
    """Fill the product's buckets: one in each cell of the overall series and of the intent's."""
    cells: dict[int, dict[Cell, int]] = defaultdict(dict)
    marks = [(name, units["scores"][:, i].astype(int)) for i, name in enumerate(dimensions)]
    rate_of = dict(zip(units["stratum"].tolist(), (f"{rate:.6g}" for rate in units["rate"]), strict=True))
    for name, mark in [*marks, (CRITICAL, units["critical"])]:
        codes, counts = np.unique((units["row"] * 32 + units["stratum"]) * 8 + mark, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            row, stratum, value = code // 256, code // 8 % 32, code % 8
            intent = f"i{stratum // 2}"
            for segment in (OVERALL, f"intent={intent}"):
                cell = Cell(name, segment, intent, str(value), rate_of[stratum])
                # Rare intents are sampled at other rates; two classes never share a cell by rate within an intent.
                cells[row][cell] = cells[row].get(cell, 0) + count
    return {MONDAY + row * BUCKET: found for row, found in cells.items()}
