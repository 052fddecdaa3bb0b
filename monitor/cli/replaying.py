"""A replay from beginning to end: a deployment of its own, events in, a drained funnel out."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.supervisor import Deployment
from monitor.adapters.replay_producer import ReplayProducer
from monitor.cli.views import Views
from monitor.funnel import Funnel, difference
from monitor.policy import Policy

LOOK_EVERY_SECONDS = 0.5
STUCK_AFTER_SECONDS = 60.0
"""A funnel that has not moved for this long will not: the replay ends and reports what is lost."""


@dataclass(frozen=True)
class Replayed:
    """What a replay came to."""

    events: int
    funnel: Funnel
    """What this replay added."""

    @property
    def lost(self) -> int:
        """Return how many events have no final outcome; one that still waits counts as lost."""
        return self.events - self.funnel.finished


def run_on(
    deployment: Deployment,
    views: Views,
    events: Iterable[tuple[datetime, Mapping[str, Any] | bytes]],
    *,
    speed: float | None,
    sent: Callable[[int, datetime], None],
    look: Callable[[Funnel], None],
) -> Replayed:
    """Send the events through a running deployment and wait until each has its outcome, or nothing moves."""
    policy = deployment.policy

    def progress(count: int, moment: datetime) -> None:
        deployment.check()
        sent(count, moment)

    before = views.funnel()
    producer = ReplayProducer(
        deployment.settings,
        partitions=policy.monitor.topics.partitions,
        speed=speed,
        quiet_after=_quiet_after(policy),
        progress=progress,
    )
    last: list[datetime] = []

    def remembered() -> Iterable[tuple[datetime, Mapping[str, Any] | bytes]]:
        for moment, event in events:
            last[:] = [moment]
            yield moment, event

    count = producer.run(remembered(), until=_beyond(policy))
    end = last[0] if last else None
    funnel = _drained(deployment, views, before, count=count, end=end, look=look)
    return Replayed(count, funnel)


def _quiet_after(policy: Policy) -> timedelta:
    """Return after how long without events nothing is open any more: idle conversations are over, windows settled."""
    conversations = policy.monitor.conversations
    seconds = conversations.idle_seconds + conversations.end_grace_seconds
    return timedelta(seconds=seconds, minutes=policy.monitor.clock.settle_minutes + 30)


def _beyond(policy: Policy) -> timedelta:
    """Return how far the clock must run on, so that every conversation is over and its window settled."""
    conversations = policy.monitor.conversations
    seconds = conversations.max_age_seconds + conversations.idle_seconds + conversations.end_grace_seconds
    return timedelta(seconds=seconds, minutes=policy.monitor.clock.settle_minutes + 60)


def _drained(
    deployment: Deployment,
    views: Views,
    before: Funnel,
    *,
    count: int,
    end: datetime | None,
    look: Callable[[Funnel], None],
) -> Funnel:
    moved_at = time.monotonic()
    seen: tuple[Funnel, datetime | None] | None = None
    while True:
        deployment.check()
        funnel = difference(views.funnel(), before)
        evaluated = views.evaluated_through()
        look(funnel)
        if funnel.finished >= count and (end is None or (evaluated is not None and evaluated > end)):
            return funnel
        if (funnel, evaluated) != seen:
            seen, moved_at = (funnel, evaluated), time.monotonic()
        if time.monotonic() - moved_at > STUCK_AFTER_SECONDS:
            return funnel
        time.sleep(LOOK_EVERY_SECONDS)
