"""The pipeline on the twins: topics as lists, hops as calls, trouble where a test wants it."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from monitor.adapters.memory import MemoryAnswers, MemoryClock, MemoryPublisher, MemoryReview
from monitor.adapters.memory_alerts import MemoryAlertStore, MemoryReceiver
from monitor.adapters.memory_awaited import MemoryAwaited
from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.memory_changes import MemoryChanges
from monitor.adapters.memory_conversations import MemoryConversations
from monitor.adapters.memory_groups import MemoryGroupStore
from monitor.adapters.memory_sampling import MemoryCensus, MemorySampling
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.alerting.gathering import Background
from monitor.clock import MARKER_HEADER, ClockKind, Watermark
from monitor.hops.inbound import Inbound
from monitor.intake.dead_letter import Position
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    JUDGMENT_RECORD,
    DimensionScore,
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    JudgeRequest,
    Judgment,
)
from monitor.pipeline import Pipeline, Ports
from monitor.policy import MonitorPolicy, Policy, load_policy
from monitor.sampling.decision import Decision
from monitor.sampling.sampler import DECISION_HEADER, SOURCE_HEADER, encode_decision
from tests.events import ALL, MINUTE, NOON

DIMENSIONS = ("factual_correctness", "safety")
IDENTITY = JudgeIdentity(stage="fake", backend="fake", version="j", model_asked="fake")


class FakeJudge:
    """Scores by the name of its target alone, fails on some, and counts how often it was asked."""

    identity = IDENTITY

    def __init__(
        self,
        *,
        fails: Callable[[str], bool] = lambda _: False,
        why: FailureKind = FailureKind.UNAVAILABLE,
    ) -> None:
        self._fails = fails
        self._why = why
        self.requests: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        target = request.target
        name = f"{target.conversation_id}/{target.revision}/{target.turn_event_id}"
        if self._fails(name):
            return NotScored(kind=self._why, reason="the judge is set to fail")
        digest = hashlib.blake2b(name.encode(), digest_size=2).digest()
        return Scored(
            scores=tuple(
                DimensionScore(dimension=dimension, score=1 + byte % 5, reason="by its name")
                for dimension, byte in zip(DIMENSIONS, digest, strict=True)
            )
        )

    async def close(self) -> None:
        pass


class Flaky:
    """A port that now and then does what it is asked and says that it could not: a reply that got lost."""

    def __init__(self, port: Any, trouble: Iterator[bool]) -> None:
        self._port, self._trouble = port, trouble

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            answer = await method(*args, **kwargs)
            if next(self._trouble, False):
                raise StoreUnavailable(f"{name}: the reply was lost")
            return answer

        return call


class World:
    """One deployment on the twins, on the stream's clock unless said otherwise."""

    def __init__(
        self,
        *,
        clock: ClockKind = ClockKind.STREAM,
        judge: FakeJudge | None = None,
        trouble: Iterator[bool] | None = None,
        alerts: MemoryAlertStore | None = None,
        **monitor: dict[str, Any],
    ) -> None:
        self.policy = a_policy(clock, **monitor)
        self.judge = judge or FakeJudge()
        self.now = NOON
        self.conversations = MemoryConversations(self.policy.monitor.conversations)
        self.windows = MemoryWindowStore(self.policy.monitor.windows)
        self.alerts = alerts or MemoryAlertStore()
        self.groups = MemoryGroupStore()
        self.changes = MemoryChanges()
        self.baselines = MemoryBaselines()
        self.awaited = MemoryAwaited()
        self.census = MemoryCensus(MemorySampling(remember_hours=26))
        self.review = MemoryReview()
        self.clock = MemoryClock()
        self.answers = MemoryAnswers()
        self.console = MemoryReceiver("console")
        self.published = MemoryPublisher()
        wrapped = (lambda port: Flaky(port, trouble)) if trouble else (lambda port: port)
        self.ports = Ports(
            conversations=wrapped(self.conversations),
            windows=wrapped(self.windows),
            alerts=wrapped(self.alerts),
            groups=wrapped(self.groups),
            review=wrapped(self.review),
            clock=wrapped(self.clock),
            executor=Executor(
                self.judge,
                wrapped(self.answers),
                self.policy.rubric.version,
                ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=24)),
            ),
            judge_version=IDENTITY.version,
            receivers={"console": self.console},
            now=lambda: self.now,
            background=Background(changes=wrapped(self.changes)),
            baselines=wrapped(self.baselines),
            awaited=wrapped(self.awaited),
            census=wrapped(self.census),
        )
        self.sender = wrapped(self.published)
        self.pipeline = Pipeline(self.ports, self.policy, self.sender)

    def on(self, topic: str) -> list[Inbound]:
        """Return what was sent to a topic, as the next hop is given it."""
        return [
            Inbound(
                Position(topic=topic, partition=one.partition or 0, offset=place),
                one.key,
                one.value or b"",
                dict(one.headers),
            )
            for place, one in enumerate(self.published.on(topic))
        ]

    def requests(self) -> list[JudgeRequest]:
        """Return what was asked of the judge."""
        events = [one for one in self.on("judge-requests") if not one.is_marker]
        return [JudgeRequest.model_validate_json(one.value) for one in events]

    def records(self) -> list[Judgment | JudgeFailure]:
        """Return the judge's records in the order in which they were sent."""
        return [JUDGMENT_RECORD.validate_json(one.value) for one in self.on("judgments") if not one.is_marker]

    async def judge_all(self, since: int = 0) -> None:
        """Give the judge what was asked from a place on, markers in their place."""
        for one in self.on("judge-requests")[since:]:
            await (self.pipeline.pass_marker(one) if one.is_marker else self.pipeline.judge(one))

    async def run(self, messages: Sequence[Inbound]) -> None:
        """Take messages all the way to the windows, once."""
        asked, judged = len(self.on("judge-requests")), len(self.on("judgments"))
        await self.pipeline.assemble(messages)
        await self.judge_all(asked)
        await self.pipeline.aggregate(self.on("judgments")[judged:])


@lru_cache(maxsize=1)
def the_default() -> Policy:
    """Return the default policy. It is frozen, and reading it takes longer than most tests."""
    return load_policy()


def a_policy(clock: ClockKind, **monitor: dict[str, Any]) -> Policy:
    """Return the default policy with two partitions and what a test says of config/monitor.yaml."""
    default = the_default()
    sections: dict[str, Any] = {"clock": {"kind": clock}, "topics": {"partitions": 2}}
    for name, section in monitor.items():
        sections[name] = sections.get(name, {}) | section
    return Policy(**(dict(default) | {"monitor": MonitorPolicy.model_validate(sections)}))


def kept(
    value: bytes, offset: int = 0, *, decision: Decision = ALL, partition: int = 0, source: str | None = None
) -> Inbound:
    """Return an event as the sampler sends it on; its source is its offset unless said otherwise."""
    headers = {
        DECISION_HEADER: encode_decision(decision),
        SOURCE_HEADER: (source or f"conversation-events/{partition}/{offset}").encode(),
    }
    position = Position(topic="sampled-events", partition=partition, offset=offset)
    return Inbound(position, b"c1", value, headers)


def mark(moment: datetime, offset: int = 0, *, partition: int = 0, source: str = "events/0") -> Inbound:
    """Return the sampler's marker."""
    value = Watermark(times={source: moment}).model_dump_json().encode()
    position = Position(topic="sampled-events", partition=partition, offset=offset)
    return Inbound(position, b"", value, {MARKER_HEADER: b"1"})


LATER = NOON + timedelta(days=3)
"""After the end of everything that a test lets happen."""
CLOSED = NOON + 40 * MINUTE
"""When a conversation of noon is over by its idleness."""
