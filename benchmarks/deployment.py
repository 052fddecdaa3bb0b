"""Buckets in, what people are told of sustained changes out: the product's own `Detection`, over memory stores.

Everything that decides is production's: `monitor.alerting.regressions.Detection` with its detectors, its alerts,
their ends and the evidence that counts anew, the anchors' shift, the baseline as `monitor baseline pin` takes it,
the shipped configuration. Only the buckets are drawn, and handed out as a store hands them out.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from simulated import BASELINE_HOURS, BUCKET, MONDAY, PER_HOUR, Trace

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_anchors import MemoryAnchors
from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import OPEN, AlertState, Transition
from monitor.alerting.gathering import Background
from monitor.alerting.judges import AnchorShifts
from monitor.alerting.observing import observe
from monitor.alerting.regressions import Detection
from monitor.detection.baseline import Baseline
from monitor.detection.counts import SeriesCounts, SeriesKey
from monitor.detection.critical_rate import share_increments
from monitor.detection.finding import Severity
from monitor.detection.multiplicity import patience
from monitor.detection.pinning import pinned_of
from monitor.detection.policy import MINUTES_PER_MONTH, DetectionPolicy
from monitor.detection.regression import increments, payoffs
from monitor.intake.event import Environment
from monitor.judging.anchors import AnchorScore
from monitor.judging.rubric import TargetKind
from monitor.policy import Policy
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts, Granularity, Scope
from monitor.windows.window import merged

SCOPE = Scope(
    assistant="bench",
    environment=Environment.PRODUCTION,
    target=TargetKind.CONVERSATION,
    judge_version="j1",
    rubric_version="r1",
)
_ROUNDING = 0.01
"""Nats by which the same sum may come out otherwise over other arrays."""


@dataclass(frozen=True)
class Said:
    """One alert's beginning, or its end. Rows are buckets since the start of the trace."""

    row: int
    key: SeriesKey
    ended: bool = False
    onset: float = 0.0
    low: float = 0.0
    high: float = 0.0
    effect: float = 0.0
    page: bool = False


@dataclass(frozen=True)
class Late:
    """Units that come hours after their time: the row at whose begin they are known, and their buckets by row."""

    known: int
    cells: Mapping[int, BucketCounts]


class DrawnWindows(MemoryWindowStore):
    """The port `WindowStore` over a drawn trace; it hands out the same object until a bucket changes."""

    def __init__(self, policy: Policy, trace: Trace, late: Sequence[Late]) -> None:
        """Take what is known of each bucket at its end, and what comes later."""
        super().__init__(policy.monitor.windows)
        self._trace = trace
        self._late = sorted(late, key=lambda one: one.known, reverse=True)
        self._more: dict[int, BucketCounts] = {}
        self._handed: dict[int, BucketCounts] = {}

    def advance(self, row: int) -> None:
        """Let everything come that is known by the time at which a row begins."""
        while self._late and self._late[-1].known <= row:
            for place, cells in self._late.pop().cells.items():
                self._more[place] = merged([self._more.get(place, {}), cells])
                self._handed.pop(place, None)

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end)."""
        assert scope == SCOPE
        rows = range(max(-(-(start - MONDAY) // BUCKET), 0), -(-(end - MONDAY) // BUCKET))
        return {MONDAY + row * BUCKET: cells for row in rows if (cells := self._bucket(row))}

    async def scopes(self, granularity: Granularity = Granularity.BUCKET) -> tuple[Scope, ...]:
        """Return the one scope."""
        return (SCOPE,) if granularity is Granularity.BUCKET else ()

    def _bucket(self, row: int) -> BucketCounts:
        cells = self._handed.get(row)
        if cells is None:
            cells = self._trace.bucket(row)
            if row in self._more:
                cells = merged([cells, self._more[row]])
            self._handed[row] = cells
        return cells


class Deployment:
    """One assistant that is watched from the end of its baseline on."""

    def __init__(
        self,
        policy: Policy,
        trace: Trace,
        rows: int,
        *,
        late: Sequence[Late] = (),
        anchors: Sequence[AnchorScore] = (),
    ) -> None:
        """Take a configuration and a trace of so many rows."""
        # The gates' window is read for its coverage alone, which a single bucket has as well.
        gates = policy.gates.model_copy(update={"window_minutes": 15})
        self.policy, self.rows = policy.model_copy(update={"gates": gates}), rows
        self.base = BASELINE_HOURS * PER_HOUR
        self._windows = DrawnWindows(policy, trace, late)
        self._trace, self._anchors = trace, anchors
        self._whole = not late and not anchors
        self.evaluate_ms: list[float] = []

    def run(
        self, *, every: bool = False, enough: Callable[[Sequence[Said], int], bool] | None = None
    ) -> list[Said]:
        """Evaluate every boundary after the baseline, until it is `enough`; return what was told, in its order.

        Where the sum of the evidence over all starts lets nothing speak, and nothing fires, an evaluation has
        nothing to say and is left out, unless `every`. That changes no result.
        """
        return asyncio.run(self._run(every, enough))

    async def _run(self, every: bool, enough: Callable[[Sequence[Said], int], bool] | None) -> list[Said]:
        alerts, baselines = MemoryAlertStore(), MemoryBaselines()
        settings = self.policy.monitor.detection
        overall = [one for one in self._trace.series(0, self.base) if one.segment == OVERALL]
        at = MONDAY + self.base * BUCKET
        pinned = pinned_of(SCOPE, overall, release="first week", at=at, by="bench", policy=settings.baseline)
        await baselines.pin(pinned)
        background = Background(shifts=await self._shifts() if self._anchors else None)
        detection = Detection(baselines, settings, self.policy.monitor.windows)
        may_speak = np.ones(self.rows + 1, dtype=bool)
        if self._whole and not every:
            may_speak[self.base :] = speaks_at_most(
                self._trace.series(self.base, self.rows), pinned.baseline, settings
            )
        said: list[Said] = []
        firing = 0
        for row in range(self.base + 1, self.rows + 1):
            self._windows.advance(row)
            if not may_speak[row] and not firing:
                continue
            began = time.process_time()
            changes = await self._evaluate(detection, alerts, background, MONDAY + row * BUCKET)
            self.evaluate_ms.append(1000 * (time.process_time() - began))
            said += [one for change in changes if (one := _said(row, change)) is not None]
            firing = len(await alerts.all(OPEN))
            if enough is not None and enough(said, row):
                break
        return said

    async def _evaluate(
        self, detection: Detection, alerts: MemoryAlertStore, background: Background, now: datetime
    ) -> list[Transition]:
        gates = self.policy.gates
        (observed,) = await observe(self._windows, gates, now, None)
        return await detection.evaluate(
            self._windows,
            alerts,
            gates,
            observed,
            background=background,
            open_alerts={alert.fingerprint: alert for alert in await alerts.all(OPEN)},
            now=now,
        )

    async def _shifts(self) -> AnchorShifts:
        store = MemoryAnchors()
        for score in self._anchors:
            await store.add(score, judge_version=SCOPE.judge_version, rubric_version=SCOPE.rubric_version)
        return AnchorShifts(store, self.policy.monitor.judge.anchors)


def speaks_at_most(series: Sequence[SeriesCounts], baseline: Baseline, policy: DetectionPolicy) -> np.ndarray:
    """Return [row + 1] whether any series could speak at the end of a row, the first entry being no row.

    The sum over all starts since the baseline, R_t = (1 + R_(t-1)) exp(l_t), is at least what a detector finds that
    looks back a week or to an alert's end; and e-d-BH lets more speak where evidence is more.
    """
    scored = [one for one in series if one.dimension != CRITICAL]
    shares = [one for one in series if one.dimension == CRITICAL]
    pairs = [(one, payoffs(one, baseline.dimensions[one.dimension], policy.regression)) for one in scored]
    rises = share_increments([(one, baseline.shares[CRITICAL]) for one in shares], policy.critical_rate)
    return _may_speak(increments(pairs).wealth, scored, policy.false_pages_per_month) | _may_speak(
        rises.wealth, shares, policy.false_critical_per_month, half_for_all=True
    )


def _may_speak(
    wealth: np.ndarray, series: Sequence[SeriesCounts], budget: float, *, half_for_all: bool = False
) -> np.ndarray:
    whole = np.array([one.segment == OVERALL for one in series])
    h0 = patience(evaluations_per_month=MINUTES_PER_MONTH / 15, false_per_month=budget)
    live = np.stack([one.counts.sum(axis=(1, 2)).cumsum() > 0 for one in series]).sum(axis=0)
    may = np.zeros(wealth.shape[1] + 1, dtype=bool)
    total = np.zeros((wealth.shape[0], wealth.shape[2]))
    for row in range(wealth.shape[1]):
        total = np.minimum((1 + total) * np.exp(np.minimum(wealth[:, row], 300.0)), 1e200)
        evidence = np.log(np.maximum(total.mean(axis=1), 1e-300))
        if half_for_all:
            # Segments weigh less than this, never more.
            evidence = evidence + whole * np.log(max(live[row] / 2 / whole.sum(), 1))
        evidence = np.sort(evidence)[::-1]
        ranks = np.arange(1, len(evidence) + 1)
        may[row + 1] = (evidence >= h0 + np.log(max(live[row], 1) / ranks) - _ROUNDING).any()
    return may


def _said(row: int, change: Transition) -> Said | None:
    alert = change.alert
    key = alert.labels["dimension"], alert.labels["segment"]
    if alert.state is AlertState.RESOLVED:
        return Said(row, key, ended=True)
    known = alert.finding.sustained
    if alert.fired_at != change.at or known is None:
        return None
    return Said(
        row,
        key,
        onset=(known.onset - MONDAY) / BUCKET,
        low=(known.onset_low - MONDAY) / BUCKET,
        high=(known.onset_high - MONDAY) / BUCKET,
        effect=known.effect,
        page=alert.severity is Severity.PAGE,
    )
