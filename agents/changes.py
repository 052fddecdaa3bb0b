"""The agent of the hop CHANGES: change events in batches, one round of Redis each."""

from functools import partial
from typing import Any

from agents.consume import Progress, batches
from agents.inbound import inbound, patiently
from agents.metering import metered
from monitor.metrics import Metrics
from monitor.pipeline import Pipeline
from monitor.topics import CHANGE_EVENTS

BATCH = 100
LINGER_SECONDS = 0.05


def attach(app: Any, pipeline: Pipeline, *, prefix: str, metrics: Metrics) -> Progress:
    """Attach the agent to an app; return what health reads."""
    progress = Progress()
    topic = app.topic(prefix + CHANGE_EVENTS, key_serializer="raw", value_serializer="raw")

    async def handle(events: list[Any]) -> None:
        messages = [inbound(event) for event in events]
        await patiently("changes", metered(metrics, "changes", partial(pipeline.record_changes, messages)))

    async def changes(stream: Any) -> None:
        await batches(app, stream, handle, size=BATCH, linger_seconds=LINGER_SECONDS, progress=progress)

    app.agent(topic, name="changes")(changes)
    return progress
