"""The agent of the hop ASSEMBLE: batches in order, and a tick that closes the quiet conversations."""

import asyncio
from functools import partial
from typing import Any

import structlog

from agents.consume import Progress, batches
from agents.inbound import PASSING, inbound, patiently
from agents.metering import metered
from monitor.clock import ClockKind, ClockPolicy
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline
from monitor.topics import SAMPLED_EVENTS

BATCH = 200
"""Events in one round of Redis and Kafka; larger batches delay the first of them."""
LINGER_SECONDS = 0.05

log = structlog.get_logger()


def attach(app: Any, pipeline: Pipeline, clock: ClockPolicy, *, prefix: str, metrics: Metrics) -> Progress:
    """Attach agent and tick to an app; return what health reads."""
    progress = Progress()
    topic = app.topic(prefix + SAMPLED_EVENTS, key_serializer="raw", value_serializer="raw")
    # A batch and a tick must not look after one conversation at the same time.
    turn_taking = asyncio.Lock()

    async def handle(events: list[Any]) -> None:
        async with turn_taking:
            messages = [inbound(event) for event in events]
            await patiently("assemble", metered(metrics, "assemble", partial(pipeline.assemble, messages)))
        log.debug("assembled", events=len(events))

    async def assemble(stream: Any) -> None:
        await batches(app, stream, handle, size=BATCH, linger_seconds=LINGER_SECONDS, progress=progress)

    app.agent(topic, name="assemble")(assemble)

    async def tick() -> None:
        for partition in sorted(_own_partitions(app, prefix + SAMPLED_EVENTS)):
            try:
                async with turn_taking:
                    closed = await pipeline.close_due(partition)
            except PASSING as error:
                log.warning("tick_failed", stage="assemble", reason=str(error)[:300])
                return
            if closed:
                log.info("closed", conversations=closed, partition=partition)

    if clock.kind is ClockKind.WALL:
        app.timer(clock.tick_seconds, name="close_due")(tick)
    return progress


def _own_partitions(app: Any, topic: str) -> set[int]:
    return {tp.partition for tp in app.consumer.assignment() if tp.topic == topic} if app.consumer else set()
