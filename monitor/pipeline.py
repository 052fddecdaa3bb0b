"""The way of the data, one hop a method. Read this first.

    events -> SAMPLE -> sampled-events -> ASSEMBLE -> judge-requests -> JUDGE -> judgments -> AGGREGATE
           -> windows (Redis) -> EVALUATE -> outbox (Redis) -> NOTIFY -> alerts topic, receivers
    change-events -> CHANGES -> change log (Redis), which EVALUATE and AGGREGATE read for evidence

SAMPLE sees all traffic, so it has a loop of its own (`monitor/sampling/sampler.py`, `agents/sample.py`). The
others are here; each lives in `monitor/hops/` and sees ports only. What holds for all of them:

- When a hop returns, what it sends is confirmed and what it stores is stored. Only then is its message acked.
- When the store or the broker is out of luck it raises, nothing is acked, and everything is done again.
- Doing it again changes nothing: every effect is keyed by an id (event, judgment, transition).
- What it cannot take goes to the dead letters with its reason and bytes; nothing is dropped in silence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monitor.alerting.alert import Transition
from monitor.alerting.delivery import Attempt
from monitor.alerting.gathering import Background
from monitor.alerting.group_store import GroupStore
from monitor.alerting.judges import LiveAnchors
from monitor.alerting.receiver import Receiver
from monitor.alerting.regressions import Detection
from monitor.alerting.store import AlertStore
from monitor.clock import ClockStore
from monitor.conversations.store import ConversationStore
from monitor.detection.pinning import BaselineStore
from monitor.detection.registry import ConfigurationStore
from monitor.detection.settling import AwaitedStore
from monitor.hops.aggregate import Aggregate
from monitor.hops.assemble import Assemble
from monitor.hops.changes import RecordChanges
from monitor.hops.evaluate import Evaluate
from monitor.hops.inbound import Inbound, Now
from monitor.hops.judge import JudgeHop
from monitor.hops.notify import Notify
from monitor.intake.intents import IntentClassifier
from monitor.judging.cascade import Cascade
from monitor.judging.executor import Executor
from monitor.judging.health import HealthStore
from monitor.judging.judgment import Record
from monitor.policy import Policy
from monitor.publishing import Publisher
from monitor.review.item import ReviewQueue
from monitor.sampling.census import CensusStore
from monitor.windows.store import WindowStore


@dataclass(frozen=True)
class Ports:
    """Everything that hops need of the world."""

    conversations: ConversationStore[Record]
    windows: WindowStore
    alerts: AlertStore
    groups: GroupStore
    review: ReviewQueue
    clock: ClockStore
    executor: Executor
    judge_version: str
    receivers: Mapping[str, Receiver]
    now: Now
    background: Background = field(default_factory=Background)
    health: HealthStore | None = None
    baselines: BaselineStore | None = None
    """What is normal; without it no sustained change is found."""
    awaited: AwaitedStore | None = None
    """What the judge was asked and has not answered; without it a bucket counts as soon as it has settled."""
    census: CensusStore | None = None
    """Exact counts over all traffic; without it no share of escalations and the like is watched."""
    anchors: LiveAnchors | None = None
    """The anchors of the judge whose series speak; None where none are judged."""
    configurations: ConfigurationStore | None = None
    cascade: Cascade | None = None
    """Several judges in stages, in the executor's place; None for one judge."""


class Pipeline:
    """The hops, built once from ports and policy."""

    def __init__(self, ports: Ports, policy: Policy, publisher: Publisher, *, prefix: str = "") -> None:
        """Build all hops; `prefix` stands before the names of the namespace's topics."""
        kind = policy.monitor.clock.kind
        partitions = policy.monitor.topics.partitions
        self._assemble = Assemble(
            store=ports.conversations,
            clock=ports.clock,
            clock_kind=kind,
            publisher=publisher,
            policy=policy.monitor.conversations,
            classifier=IntentClassifier(policy.monitor.intents),
            phone_region=policy.monitor.intake.phone_region,
            prefix=prefix,
            now=ports.now,
            awaited=ports.awaited,
            windows=policy.monitor.windows,
        )
        self._judge = JudgeHop(
            executor=ports.executor,
            publisher=publisher,
            prefix=prefix,
            now=ports.now,
            cascade=ports.cascade,
        )
        self._aggregate = Aggregate(
            windows=ports.windows,
            conversations=ports.conversations,
            alerts=ports.alerts,
            review=ports.review,
            clock=ports.clock,
            clock_kind=kind,
            gates=policy.gates,
            publisher=publisher,
            prefix=prefix,
            now=ports.now,
            background=ports.background,
            health=ports.health,
            awaited=ports.awaited,
            window_policy=policy.monitor.windows,
            configurations=ports.configurations,
        )
        self._evaluate = Evaluate(
            windows=ports.windows,
            alerts=ports.alerts,
            clock=ports.clock,
            clock_policy=policy.monitor.clock,
            gates=policy.gates,
            bucket_minutes=policy.monitor.windows.bucket_minutes,
            partitions=partitions,
            judge_versions=(ports.judge_version,),
            now=ports.now,
            background=ports.background,
            health=ports.health,
            health_policy=policy.monitor.judge.health,
            detection=_detection(ports, policy),
            anchors=ports.anchors,
            configurations=ports.configurations,
        )
        self._changes = RecordChanges(
            background=ports.background, publisher=publisher, prefix=prefix, now=ports.now
        )
        self._notify = Notify(
            alerts=ports.alerts,
            groups=ports.groups,
            receivers=ports.receivers,
            routing=policy.routing,
            publisher=publisher,
            prefix=prefix,
            now=ports.now,
        )

    async def assemble(self, batch: Sequence[Inbound]) -> None:
        """Kept events in; judge requests, the archive and clock markers out."""
        await self._assemble(batch)

    async def close_due(self, partition: int) -> int:
        """Close the conversations of a partition that are over by the wall's clock; return how many."""
        return await self._assemble.close_due(partition, self._assemble.wall_now())

    async def judge(self, message: Inbound) -> None:
        """One judge request in; one record out, a judgment or a failure with its reason."""
        await self._judge(message)

    async def pass_marker(self, message: Inbound) -> None:
        """Send a clock marker past the judge, once all before it is judged."""
        await self._judge.pass_marker(message)

    async def aggregate(self, batch: Sequence[Inbound]) -> None:
        """Judgments in; buckets, outcomes and critical alerts out."""
        await self._aggregate(batch)

    async def record_changes(self, batch: Sequence[Inbound]) -> None:
        """Change events in; the change log, from which evidence is drawn, out."""
        await self._changes(batch)

    async def evaluate(self) -> list[Transition]:
        """Evaluate the boundaries that the clock has crossed; return what changed in the life of alerts."""
        return await self._evaluate()

    async def notify(self) -> tuple[Attempt, ...]:
        """Put transitions on the alerts topic, decide which groups are told, and tell the receivers."""
        return await self._notify()


def _detection(ports: Ports, policy: Policy) -> Detection | None:
    if ports.baselines is None:
        return None
    return Detection(
        ports.baselines,
        policy.monitor.detection,
        policy.monitor.windows,
        awaited=ports.awaited,
        census=ports.census,
        census_strata=policy.sampling.strata,
    )
