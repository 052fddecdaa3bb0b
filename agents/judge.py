"""The agent of the hop JUDGE: many calls at once, acks in order, clock markers behind what came before them."""

import asyncio
from collections import defaultdict
from functools import partial
from typing import Any

import structlog

from agents.consume import Progress, each
from agents.inbound import inbound, patiently
from agents.metering import metered
from monitor.judging.executor import Gate
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline
from monitor.topics import JUDGE_REQUESTS

log = structlog.get_logger()


def attach(
    app: Any,
    pipeline: Pipeline,
    *,
    concurrency: int,
    prefix: str,
    metrics: Metrics,
    gate: Gate | None = None,
) -> Progress:
    """Attach the agent to an app; return what health reads.

    While the gate of the judge's endpoint holds, nothing is taken: an outage waits in Kafka.
    """
    progress = Progress()
    if gate is not None:
        progress.holds = lambda: gate.holding
    topic = app.topic(prefix + JUDGE_REQUESTS, key_serializer="raw", value_serializer="raw")
    under_way: defaultdict[int, set[asyncio.Task[Any]]] = defaultdict(set)

    async def handle(event: Any) -> None:
        message = inbound(event)
        others = under_way[message.position.partition]
        # Tasks start in the order of their events, so these are the ones that came before.
        before = set(others)
        own = asyncio.current_task()
        if own is not None:
            others.add(own)
        try:
            if message.is_marker:
                if before:
                    await asyncio.wait(before)
                await patiently("judge", partial(pipeline.pass_marker, message))
            else:
                await patiently("judge", metered(metrics, "judge", partial(pipeline.judge, message)))
        finally:
            if own is not None:
                others.discard(own)

    ready = None if gate is None else gate.opened

    async def judge(stream: Any) -> None:
        await each(app, stream, handle, concurrency=concurrency, progress=progress, ready=ready)

    app.agent(topic, name="judge")(judge)
    return progress
