"""Traffic in words in, drawn buckets out: weeks of judged conversations as counts, the same each time."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from monitor.intake.event import Environment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import CRITICAL, FAILED, OVERALL, Cell, Scope

QUARTER = timedelta(minutes=15)
MONDAY = datetime(2026, 3, 9, tzinfo=UTC)
"""Where a story begins, unless it says otherwise; its baseline lies before."""
SCOPE = Scope(
    assistant="support-bot",
    environment=Environment.PRODUCTION,
    target=TargetKind.CONVERSATION,
    judge_version="j1",
    rubric_version="r1",
)
GOOD = {"factual_correctness": (0.0, 0.0, 0.08, 0.36, 0.56), "policy_adherence": (0.0, 0.0, 0.02, 0.2, 0.78)}
"""Chances of the scores 1 to 5: means 4.48 and 4.76, which pass their gates by more than 0.25."""
TRAFFIC: dict[str, Any] = {
    "per_hour": 300,
    "night": 1.0,
    "weekend": 1.0,
    "night_quality": 0.0,
    "weekend_quality": 0.0,
    "local_hours": 0,
    "intents": {"billing": 0.5, "shipping": 0.4, "returns": 0.1},
    "critical": 0.0015,
    "failed": 0.0,
    "prompt_hash": "aa11",
    "flagged": 0.0,
}
"""What is ordinary; a story's `traffic` and its changes say what is different."""
RATE, FLAGGED_RATE, FLAGGED_FALL = "0.05", "0.25", 0.35
NIGHT = range(6)
SATURDAY = 5
Bucket = dict[Cell, int]


class Drawn:
    """One story's traffic; a bucket depends on its place and the seed alone."""

    def __init__(self, story: Mapping[str, Any]) -> None:
        self.start = datetime.fromisoformat(story["starts"]) if "starts" in story else MONDAY
        self._ordinary = TRAFFIC | story.get("traffic", {})
        self._changes = story.get("changes", [])
        self._seed = story.get("seed", 7)

    def bucket(self, begin: datetime, *, share: float = 1.0, fall: float = 0.0) -> Bucket:
        """Draw a bucket, or a share of it that is `fall` points worse than the whole."""
        hour = (begin - self.start) / timedelta(hours=1)
        say = dict(self._ordinary)
        falls: list[tuple[str, str | None, float]] = [(name, None, fall) for name in GOOD]
        for change in self._changes:
            low, high = change["hours"]
            if low <= hour < high:
                say |= {name: value for name, value in change.items() if name in TRAFFIC}
                points = change.get("fall", 0.0)
                if change.get("ramp"):
                    points *= (hour - low) / (high - low)
                falls.append((change.get("dimension", "factual_correctness"), change.get("intent"), points))
        local = begin + timedelta(hours=say["local_hours"])
        is_night = local.hour in NIGHT
        is_weekend = local.weekday() >= SATURDAY
        for key, holds in (("night", is_night), ("weekend", is_weekend)):
            falls += [(name, None, -say[f"{key}_quality"]) for name in GOOD if holds]
        quantity = say["per_hour"] / 4 * share
        quantity *= say["night"] if is_night else 1.0
        quantity *= say["weekend"] if is_weekend else 1.0
        chance = np.random.default_rng([self._seed, int(begin.timestamp()) // 900, int(share * 1000)])
        return dict(_cells(chance, say, quantity, falls))


def _cells(
    chance: np.random.Generator,
    say: Mapping[str, Any],
    quantity: float,
    falls: list[tuple[str, str | None, float]],
) -> Iterator[tuple[Cell, int]]:
    total: Bucket = {}
    for intent, share in say["intents"].items():
        for rate, part, own in (
            (RATE, 1 - say["flagged"], 0.0),
            (FLAGGED_RATE, say["flagged"] * 5, FLAGGED_FALL),
        ):
            n = int(chance.poisson(quantity * share * part))
            if not n:
                continue
            failed = int(chance.binomial(n, say["failed"])) if say["failed"] else 0
            judged = n - failed
            critical = int(chance.binomial(judged, say["critical"]))
            marks = [
                (CRITICAL, FAILED, failed),
                (CRITICAL, "1", critical),
                (CRITICAL, "0", judged - critical),
            ]
            for dimension, good in GOOD.items():
                down = own + sum(p for d, i, p in falls if d == dimension and i in {None, intent})
                counts = chance.multinomial(judged, fallen(good, down)).tolist()
                marks += [(dimension, str(score), count) for score, count in enumerate(counts, 1)]
            stratum = f"{intent},web,en,unknown"
            for dimension, mark, count in marks:
                for segment in (OVERALL, f"intent={intent}", f"prompt_hash={say['prompt_hash']}"):
                    cell = Cell(dimension, segment, stratum, mark, rate)
                    total[cell] = total.get(cell, 0) + count
    yield from ((cell, count) for cell, count in total.items() if count)


def fallen(chances: tuple[float, ...], points: float) -> np.ndarray:
    """Return chances whose mean is lower by so many points: from each score to the one below it."""
    p = np.array(chances)
    left = points
    for score in (4, 3, 2, 1):
        moved = min(left, p[score]) if left > 0 else (max(left, -p[score - 1]) if score == 4 else 0.0)
        p[score] -= moved
        p[score - 1] += moved
        left -= moved
    return p / p.sum()
