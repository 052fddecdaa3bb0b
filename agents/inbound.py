"""A Faust event in, what a hop is given out; and the patience that a hop needs when a server is away."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from monitor.adapters.redis_functions import StoreUnavailable
from monitor.alerting.evaluation import Contended
from monitor.hops.inbound import Inbound
from monitor.intake.dead_letter import Position
from monitor.publishing import PublishError

PASSING = (StoreUnavailable, PublishError, Contended)
"""What passes by itself: the event stays un-acked and is tried again."""
PATIENCE_SECONDS = 300.0
"""How long a hop waits for a server before the worker ends with a failure and its orchestrator decides."""
PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS = 0.2, 5.0

log = structlog.get_logger()


def inbound(event: Any) -> Inbound:
    """Take a Faust event apart."""
    message = event.message
    return Inbound(
        position=Position(topic=message.topic, partition=message.partition, offset=message.offset),
        key=event.key or b"",
        value=event.value or b"",
        headers=dict(message.headers or ()),
    )


async def patiently(stage: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do idempotent work until it succeeds; after `PATIENCE_SECONDS` of failures the last one is raised."""
    started = time.monotonic()
    pause = PAUSE_FIRST_SECONDS
    while True:
        try:
            await work()
        except PASSING as error:
            if time.monotonic() - started > PATIENCE_SECONDS:
                raise
            log.warning("waiting", stage=stage, reason=_reason(error), pause_seconds=pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX_SECONDS)
        else:
            return


def _reason(error: Exception) -> str:
    # Our own sentences name servers, never payloads.
    return f"{type(error).__name__}: {error}"[:300]
