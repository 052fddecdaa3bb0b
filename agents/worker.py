"""Faust stages in one process: each an app with a consumer group of its own, all on one loop.

The exit status is the orchestrator's signal: 0 after SIGTERM, 1 when a stage failed or stalled.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from agents import aggregate, anchors, assemble, changes, evaluate, judge, notify, shadow, watchdog
from agents.app import build_app
from agents.consume import Progress
from agents.heartbeat import Pulse, Ticks, instance_of, living_name
from agents.metering import MeteredExecutor, MeteredPublisher, start_metrics
from agents.publisher import FaustPublisher
from agents.receivers import build_receivers
from agents.services import Services
from monitor.alerting.agreement import Calibrated
from monitor.alerting.gathering import Background
from monitor.alerting.receiver import Receiver
from monitor.judging.cascade import Cascade
from monitor.judging.shadow import SHADOW
from monitor.metrics import Metrics, NoMetrics
from monitor.pipeline import Pipeline, Ports
from monitor.topics import DEAD_LETTERS, LED_STAGES

STAGES = ("assemble", "judge", "aggregate", "changes", "evaluate", "notify")
STALLED_AFTER_SECONDS = 600.0
"""An event in hand for longer than this means that the stage is stuck; ending the worker frees its partitions."""
HEALTH_EVERY_SECONDS = 5.0
STOP_LIMIT_SECONDS = 25.0
"""Longer than the calls in hand may take to end (`consume.STOP_LIMIT_SECONDS`), shorter than a SIGKILL's grace."""

log = structlog.get_logger()


@dataclass
class Stage:
    """One running stage."""

    name: str
    app: Any
    progress: Progress | None
    ticks: Ticks | None = None

    @property
    def in_hand_seconds(self) -> float:
        """Tell for how long the oldest event in hand has not been done."""
        return self.progress.oldest_undone_seconds() if self.progress else 0.0

    @property
    def living_name(self) -> str | None:
        """Return under which name it gives a sign of life now; a shadow's end is no trouble of the monitor's."""
        if self.name == SHADOW:
            return None
        leads = self.ticks is not None and bool(self.app.is_leader())
        return living_name(self.name, in_hand_seconds=self.in_hand_seconds, ticks=self.ticks, leads=leads)


def build_stage(
    name: str, services: Services, receivers: Mapping[str, Receiver], metrics: Metrics | None = None
) -> Stage:
    """Build the app of one stage with its agent or timer."""
    app = build_app(name, services.settings)
    prefix = services.settings.topic_prefix
    policy = services.policy
    alerts = services.stores.alerts
    metrics = metrics or NoMetrics()
    executor = MeteredExecutor(services.executor, metrics)
    ports = Ports(
        conversations=services.stores.conversations,
        windows=services.stores.windows,
        alerts=alerts,
        groups=services.stores.groups,
        review=services.stores.review,
        clock=services.stores.clock,
        executor=executor,
        cascade=_cascade(services, executor, metrics),
        judge_version=services.judge.identity.version,
        receivers=receivers,
        now=services.now,
        background=Background(
            changes=services.stores.changes, agreement=Calibrated(services.stores.calibrations)
        ),
        health=services.stores.health,
        baselines=services.stores.baselines,
        awaited=services.stores.awaited,
        census=services.stores.census,
        anchors=anchors.live_anchors(services),
        configurations=services.stores.configurations,
    )
    publisher = MeteredPublisher(FaustPublisher(app), metrics, stage=name, dead_letters=prefix + DEAD_LETTERS)
    pipeline = Pipeline(ports, policy, publisher, prefix=prefix)
    progress: Progress | None = None
    ticks = Ticks() if name in LED_STAGES else None
    match name:
        case "assemble":
            progress = assemble.attach(app, pipeline, policy.monitor.clock, prefix=prefix, metrics=metrics)
        case "judge":
            concurrency = policy.monitor.judge.concurrency
            progress = judge.attach(
                app, pipeline, concurrency=concurrency, prefix=prefix, metrics=metrics, gate=services.gate
            )
            anchors.attach(app, services)
        case "aggregate":
            progress = aggregate.attach(app, pipeline, prefix=prefix, metrics=metrics)
        case "changes":
            progress = changes.attach(app, pipeline, prefix=prefix, metrics=metrics)
        case "shadow":
            progress = shadow.attach(app, services, publisher, prefix=prefix, metrics=metrics)
        case "evaluate":
            evaluate.attach(
                app,
                pipeline,
                policy.monitor.clock,
                metrics=metrics,
                evaluated_through=alerts.evaluated_through,
                now=services.now,
                ticked=ticks.succeeded if ticks else None,
            )
        case "notify":
            notify.attach(
                app,
                pipeline,
                metrics=metrics,
                waiting=services.stores.groups.waiting_count,
                ticked=ticks.succeeded if ticks else None,
            )
            if policy.routing.watchdog is not None:
                watchdog.attach(
                    app,
                    policy.routing.watchdog,
                    receivers,
                    services.stores.heartbeats,
                    metrics=metrics,
                    now=services.now,
                )
        case _:
            raise ValueError(f"no stage {name!r}; there are {', '.join(STAGES)}")
    return Stage(name, app, progress, ticks)


def _cascade(services: Services, first: MeteredExecutor, metrics: Metrics) -> Cascade | None:
    if services.second is None:
        return None
    return Cascade(
        rules=services.rules,
        first=first,
        second=MeteredExecutor(services.second, metrics),
        policy=services.policy.monitor.judge.cascade,
    )


async def work(services: Services, names: Sequence[str]) -> int:
    """Run stages until SIGTERM or the failure of one; return the exit status."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    await services.stores.start()
    receivers = build_receivers(services.policy.routing, services.settings)
    metrics = start_metrics(services.settings)
    stages = [build_stage(name, services, receivers, metrics) for name in names]
    pulse = Pulse(services.stores.heartbeats, instance_of(services.settings), services.now)
    failure: str | None = "it did not start"
    starting = asyncio.ensure_future(_start(services, stages))
    try:
        if await _finished(starting, stopping):
            failure = await _until_over(
                stages, stopping, metrics, pulse, measure=partial(services.endpoints.measure, metrics)
            )
        else:
            log.warning("stopped_while_starting")
            failure = None
    finally:
        stopped = await _stop(stages, starting)
        for receiver in receivers.values():
            await receiver.close()
        if failure is None and stopped:
            await pulse.end()
        await services.close()
    if failure:
        log.critical("worker_failed", reason=failure)
    status = 1 if failure else 0
    if not stopped:
        # What Faust does not end would keep the loop, and with it the process, for ever.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


async def _start(services: Services, stages: Sequence[Stage]) -> None:
    if any(stage.name in {"judge", SHADOW} for stage in stages):
        await services.endpoints.probe()
    await asyncio.gather(*(_start_stage(stage) for stage in stages))


async def _start_stage(stage: Stage) -> None:
    stage.app.finalize()
    await stage.app.maybe_start()
    log.info("stage_started", stage=stage.name)


async def _finished(task: "asyncio.Future[None]", stopping: asyncio.Event) -> bool:
    """Wait for a task, but not beyond the wish to stop; return whether it is done, and raise what it raised."""
    wish: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
    await asyncio.wait([task, wish], return_when=asyncio.FIRST_COMPLETED)
    wish.cancel()
    if task.done():
        task.result()
    return task.done()


async def _stop(stages: Sequence[Stage], starting: "asyncio.Future[None]") -> bool:
    """Stop all stages, and the start if it is not over; return whether that worked in time."""
    starting.cancel()
    stops = [asyncio.ensure_future(_stop_stage(stage)) for stage in stages]
    # Faust waits without end for a broker that is gone, and does not always end when it is cancelled.
    _, undone = await asyncio.wait({starting, *stops}, timeout=STOP_LIMIT_SECONDS)
    if undone:
        log.warning("stages_not_stopped", count=len(undone - {starting}), after_seconds=STOP_LIMIT_SECONDS)
    return not undone


async def _stop_stage(stage: Stage) -> None:
    try:
        await stage.app.stop()
    except Exception as error:  # noqa: BLE001 - a crashed app may fail to stop; the others must stop all the same
        log.warning("stage_stopped_badly", stage=stage.name, error=type(error).__name__)


async def _until_over(
    stages: Sequence[Stage],
    stopping: asyncio.Event,
    metrics: Metrics,
    pulse: Pulse,
    *,
    measure: Callable[[], None],
) -> str | None:
    while not stopping.is_set():
        measure()
        for stage in stages:
            if stage.app.crashed:
                return f"{stage.name}: {stage.app.crash_reason!r}"
            if stage.app.should_stop:
                return f"{stage.name}: stopped by itself"
            waiting = stage.in_hand_seconds
            metrics.gauge("monitor_in_hand_seconds", waiting, stage=stage.name)
            if waiting > STALLED_AFTER_SECONDS:
                return f"{stage.name}: an event has been in hand for {waiting:.0f} s"
        await pulse.beat([name for stage in stages if (name := stage.living_name) is not None])
        try:
            async with asyncio.timeout(HEALTH_EVERY_SECONDS):
                await stopping.wait()
        except TimeoutError:
            continue
    return None
