"""A story with a baseline in, what people were told out; each boundary is evaluated by two leaders."""

import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_awaited import MemoryAwaited
from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import Transition
from monitor.alerting.evaluation import evaluate
from monitor.alerting.gathering import Background
from monitor.alerting.regressions import Detection
from monitor.detection.baseline import BaselinePolicy
from monitor.detection.gates import GatePolicy
from monitor.detection.pinning import Pinned, overall_series, pinned_of
from monitor.detection.policy import DetectionPolicy
from monitor.detection.settling import Awaited, Group
from monitor.judging.drift import Shift
from monitor.windows.bucket import Cell
from monitor.windows.policy import WindowPolicy
from tests.drawn import GOOD, QUARTER, SCOPE, Drawn

WINDOWS = WindowPolicy()
OWNER = ("support-bot", "production", None)


def a_shift(points: float, wide: float) -> Shift:
    """Return a judge's shift that is known so exactly."""
    return Shift(
        mean=points, low=points - wide, high=points + wide, n=50, se=wide / 2, repeats=100, noise=None
    )


class Anchors:
    """The port `ShiftSource` as a story has it: what the anchor set says of the judge, from some hour on."""

    def __init__(self, story: dict[str, Any]) -> None:
        self._said = story.get("judge_shift")
        self._start = Drawn(story).start

    async def shifts(
        self, *, judge_version: str, rubric_version: str, since: datetime, now: datetime
    ) -> dict[str, Shift]:
        assert (judge_version, rubric_version) == (SCOPE.judge_version, SCOPE.rubric_version)
        assert since == self._start
        if self._said is None or now < self._start + timedelta(hours=self._said["from_hour"]):
            return {}
        points, wide = self._said["points"], self._said["within"]
        return {name: a_shift(points, wide) for name in GOOD}

    async def since_onset(
        self, *, judge_version: str, rubric_version: str, since: datetime, onset: datetime, now: datetime
    ) -> dict[str, Shift] | None:
        assert since <= onset < now
        told = self._said.get("told_from_hour", 0) if self._said else 0
        if now < self._start + timedelta(hours=told):
            return None
        return await self.shifts(
            judge_version=judge_version, rubric_version=rubric_version, since=since, now=now
        )


class Sustained:
    """One deployment whose buckets are drawn."""

    def __init__(self, story: dict[str, Any], gates: GatePolicy) -> None:
        self.story = story
        self.drawn = Drawn(story)
        self.gates = gates
        self.policy = DetectionPolicy.model_validate(story.get("detection", {}))
        self.windows = MemoryWindowStore(WINDOWS)
        self.alerts = MemoryAlertStore()
        self.baselines = MemoryBaselines()
        self.awaited = MemoryAwaited()
        self.later: dict[datetime, tuple[datetime, dict[Cell, int]]] = {}
        """By the time at which it is judged: a bucket's begin and what is still to come of it."""
        self.leaders = [self.a_leader(), self.a_leader()]

    def a_leader(self) -> Detection:
        """Return an evaluator that remembers nothing yet, as after a restart."""
        return Detection(self.baselines, self.policy, WINDOWS, awaited=self.awaited)

    async def pin(self, days: int) -> None:
        """Pin the baseline from the days before the story; nothing of them stays in the windows."""
        said = {name: self.story[name] for name in ("traffic", "seed", "starts") if name in self.story}
        await self.baselines.pin(pinned_before(json.dumps(said), days))

    def put(self, begin: datetime, cells: dict[Cell, int], *, sign: int = 1) -> None:
        """Add units to a bucket, or take them out."""
        known = self.windows._buckets.setdefault((SCOPE, begin), {})
        for cell, count in cells.items():
            known[cell] = max(known.get(cell, 0) + sign * count, 0)
            if not known[cell]:
                del known[cell]

    async def happen(self, begin: datetime) -> None:
        """Let a quarter of an hour of traffic be judged, with whatever the story says of lateness."""
        place, rest = self.later.pop(begin, (begin, {}))
        self.put(place, rest)
        await self.awaited.answer([(place, f"{place}/{n}") for n in range(sum(rest.values()))])
        hour = (begin - self.drawn.start) / timedelta(hours=1)
        whole = self.drawn.bucket(begin)
        for trouble in self.story.get("troubles", []):
            low, high = trouble["hours"]
            if not low <= hour < high:
                continue
            aside = {cell: round(count * trouble["share"]) for cell, count in whole.items()}
            aside = {cell: count for cell, count in aside.items() if count}
            if "moved_hours" in trouble:
                # A wrong clock, or a flood that comes late: units lie in another bucket than their time.
                for cell, count in aside.items():
                    whole[cell] -= count
                self.put(begin + timedelta(hours=trouble["moved_hours"]), aside)
            if "revised_hours" in trouble:
                # A resumed conversation: the old contribution goes out, the new one comes in.
                self.put(begin - timedelta(hours=trouble["revised_hours"]), aside, sign=-1)
                self.put(begin, aside)
            if "worst_first_hours" in trouble:
                # What is suspicious is judged first, the rest when its turn comes.
                rest, whole = whole, self.drawn.bucket(begin, share=trouble["share"], fall=trouble["fall"])
                for cell in set(whole) & set(rest):
                    rest[cell] = max(rest[cell] - whole[cell], 0)
                self.later[begin + timedelta(hours=trouble["worst_first_hours"])] = (begin, rest)
                await self.awaited.ask(
                    [
                        Awaited(f"{begin}/{n}", begin, Group(*OWNER, cell.stratum))
                        for n, cell in enumerate(c for c, count in rest.items() for _ in range(count))
                    ]
                )
        self.put(begin, {cell: count for cell, count in whole.items() if count})

    async def evaluate(self, now: datetime) -> list[Transition]:
        """Evaluate a boundary twice, by two leaders in turn; the second has nothing to add."""
        first, second = self.leaders
        known = Background(shifts=Anchors(self.story))
        found = await evaluate(
            self.windows, self.alerts, self.gates, now=now, background=known, detection=first
        )
        if found or (now.minute == 0 and now.hour % 6 == 0):
            again = await evaluate(
                self.windows, self.alerts, self.gates, now=now, background=known, detection=second
            )
            assert again == (), [(t.reason, t.alert.labels, t.alert.state) for t in (*found, *again)]
            self.leaders.reverse()
        return list(found)


@lru_cache(maxsize=32)
def pinned_before(said: str, days: int) -> Pinned:
    """Return the baseline of ordinary traffic before a story; stories of one traffic share it."""
    drawn = Drawn(json.loads(said))
    start = drawn.start - timedelta(days=days)
    buckets = {
        begin: drawn.bucket(begin) for begin in (start + number * QUARTER for number in range(days * 96))
    }
    series = overall_series(buckets, start=start, end=drawn.start, bucket_minutes=15)
    return pinned_of(SCOPE, series, release="release 1", at=drawn.start, by="jo", policy=BaselinePolicy())


async def play_sustained(story: dict[str, Any], gates: GatePolicy) -> list[tuple[float, Transition]]:
    """Play a story; what was told, and at which hour after the baseline."""
    world = Sustained(story, gates)
    await world.pin(story["baseline"]["days"])
    told: list[tuple[float, Transition]] = []
    for number in range(round(story["hours"] * 4)):
        begin = world.drawn.start + number * QUARTER
        await world.happen(begin)
        changes = await world.evaluate(begin + QUARTER)
        told += [((number + 1) / 4, change) for change in changes if change.notify]
    assert len(await world.alerts.outbox(1000)) == len(told)
    return told
