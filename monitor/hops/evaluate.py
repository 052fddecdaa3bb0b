"""The clock in; what changes in the life of alerts out, boundary by boundary, each effect once."""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from monitor.alerting.alert import OPEN, Alert, Transition
from monitor.alerting.configurations import evaluate_configurations
from monitor.alerting.evaluation import evaluate
from monitor.alerting.gathering import Background
from monitor.alerting.judges import (
    AnchorShifts,
    LiveAnchors,
    Speaking,
    evaluate_drift,
    evaluate_judges,
)
from monitor.alerting.regressions import Detection
from monitor.alerting.store import AlertStore
from monitor.clock import ClockKind, ClockPolicy, ClockStore
from monitor.detection.critical import CriticalPolicy
from monitor.detection.gates import GatePolicy
from monitor.detection.registry import ConfigurationStore
from monitor.hops.aggregate import HOP as AGGREGATE
from monitor.hops.inbound import Now
from monitor.intake.moments import ceiling, floor
from monitor.judging.health import HealthPolicy, HealthStore
from monitor.windows.store import WindowStore

CATCH_UP_MAX = 200
"""Boundaries evaluated in one go; a replay crosses many, and the leader must go on answering."""


class Evaluate:
    """The hop from windows to alerts; runs on the leader, and a second leader does no harm."""

    def __init__(
        self,
        *,
        windows: WindowStore,
        alerts: AlertStore,
        clock: ClockStore,
        clock_policy: ClockPolicy,
        gates: GatePolicy,
        bucket_minutes: int,
        partitions: int,
        judge_versions: Collection[str],
        now: Now,
        background: Background | None = None,
        health: HealthStore | None = None,
        health_policy: HealthPolicy | None = None,
        detection: Detection | None = None,
        anchors: LiveAnchors | None = None,
        configurations: ConfigurationStore | None = None,
    ) -> None:
        """Take the ports, and the judges whose series speak."""
        self._detection = detection
        # For as long a window without a unit may still change what is said of it.
        self._looks_back = max(gates.window, detection.policy.looks_back if detection else gates.window)
        self._background = background or Background()
        self._windows = windows
        self._alerts = alerts
        self._clock = clock
        self._policy = clock_policy
        self._gates = gates
        self._minutes = bucket_minutes
        self._partitions = partitions
        self._judge_versions = judge_versions
        self._now = now
        self._health = health
        self._health_policy = health_policy or HealthPolicy()
        self._anchors = anchors
        self._configurations = configurations

    async def __call__(self) -> list[Transition]:
        """Evaluate each boundary that was crossed since the last time, in order; jump over what is empty."""
        settled = await self._settled()
        if settled is None:
            return []
        last = floor(settled, minutes=self._minutes)
        through = await self._alerts.evaluated_through()
        if through is None:
            await self._alerts.claim_evaluation(await self._beginning(last), None)
            return []
        transitions: list[Transition] = []
        for _ in range(CATCH_UP_MAX):
            boundary = await self._next(through, last)
            if boundary is None:
                return transitions
            # Anew for each boundary, which must know every score up to it.
            anchors = self._anchors.once() if self._anchors else None
            background = self._known_with(anchors)
            transitions += await evaluate(
                self._windows,
                self._alerts,
                self._gates,
                now=boundary,
                judge_versions=self._judge_versions,
                background=background,
                detection=self._detection,
            )
            if self._health is not None:
                transitions += await evaluate_judges(
                    self._health,
                    self._alerts,
                    self._health_policy,
                    now=boundary,
                    speaking=Speaking(self._windows, self._judge_versions, self._gates.environments),
                )
            transitions += await evaluate_drift(anchors, self._alerts, now=boundary)
            if self._configurations is not None:
                transitions += await evaluate_configurations(
                    self._configurations,
                    self._alerts,
                    self._gates,
                    now=boundary,
                    background=background,
                )
            if not await self._alerts.claim_evaluation(boundary, through):
                return transitions
            through = boundary
        return transitions

    def _known_with(self, anchors: LiveAnchors | None) -> Background:
        if anchors is None:
            return self._background
        shifts = AnchorShifts(anchors.store, anchors.policy)
        return replace(self._background, anchors=anchors, shifts=shifts)

    async def _next(self, through: datetime, last: datetime) -> datetime | None:
        """Return the next boundary to evaluate up to `last`; None when all are done."""
        boundary = floor(through, minutes=self._minutes) + timedelta(minutes=self._minutes)
        if boundary >= last:
            # The common case, one boundary at a time, pays nothing for jumping.
            return boundary if boundary == last else None
        target = next_filled(
            await self._windows.begins(),
            boundary,
            last,
            window=self._looks_back,
            bucket=timedelta(minutes=self._minutes),
        )
        if target == boundary:
            return boundary
        for alert in await self._alerts.all(OPEN):
            speaks = speaks_at(alert, self._gates.critical)
            if speaks is not None:
                target = min(target, max(boundary, ceiling(speaks, minutes=self._minutes)))
        return target

    async def _beginning(self, last: datetime) -> datetime:
        """Return where evaluation begins: on the stream's clock at its first bucket, however far time is by now."""
        begins = await self._windows.begins() if self._policy.kind is ClockKind.STREAM else ()
        return min(begins[0], last) if begins else last

    async def _settled(self) -> datetime | None:
        settle = timedelta(minutes=self._policy.settle_minutes)
        if self._policy.kind is ClockKind.WALL:
            return self._now() - settle
        times = await self._clock.read(AGGREGATE)
        return min(times.values()) - settle if len(times) == self._partitions else None


def next_filled(
    begins: Sequence[datetime], boundary: datetime, last: datetime, *, window: timedelta, bucket: timedelta
) -> datetime:
    """Return the first boundary from `boundary` on whose window may hold anything; `last` if there is none.

    `begins` are the starts of buckets in their order; a window that ends at B holds those in [B - window, B).
    """
    place = bisect_left(begins, boundary - window)
    if place == len(begins):
        return last
    return min(max(boundary, begins[place] + bucket), last)


def speaks_at(alert: Alert, policy: CriticalPolicy) -> datetime | None:
    """Return when an open alert changes though nothing is judged; None if never, however long that takes.

    No data begins the count of a recovery anew, and cases that were held back are told after a while; with
    neither to do, an alert stays as it is.
    """
    if alert.clear_since is not None:
        return alert.clear_since
    if alert.total > alert.notified_total:
        return (
            alert.failed_at
            if alert.notified_at is None
            else alert.notified_at + policy.repeat(alert.severity)
        )
    return None
