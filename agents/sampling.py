"""The sampler's process: clients, room and store put together, and a loop that ends in order."""

import signal
import threading
import time
from datetime import timedelta
from types import FrameType

import structlog
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from agents.heartbeat import SamplerPulse, instance_of
from agents.metering import start_metrics
from agents.sample import MarkerPolicy, Overtaken, SampleLoop, SampleTopics
from agents.services import blocking_heartbeats, sampling_store, wall_now
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.clock import ClockKind
from monitor.intake.intents import IntentClassifier
from monitor.metrics import Metrics, NoMetrics
from monitor.policy import Policy
from monitor.publishing import PublishError
from monitor.sampling.sampler import Sampler
from monitor.sampling.store import Source
from monitor.settings import Settings
from monitor.topics import DEAD_LETTERS, SAMPLED_EVENTS, SOURCES

MARK_EVERY_SECONDS = 0.25
DESCRIBE_TIMEOUT_SECONDS = 20.0
HEADROOM_BYTES = 1_000_000
"""What a message may be longer than the longest event: headers, or a dead letter's base64."""

PASSING = (StoreUnavailable, PublishError, KafkaException, Overtaken)
"""What passes by itself: a server that is away, a partition that changed hands."""
PATIENCE_SECONDS = 300.0
"""How long the sampler waits for a server before it ends with a failure and its orchestrator decides."""
STEADY_SECONDS = 60.0
"""A loop that ran for this long was well again."""
PAUSE_SECONDS = 2.0

log = structlog.get_logger()


def build_loop(settings: Settings, policy: Policy, metrics: Metrics | None = None) -> SampleLoop:
    """Build the sampler's loop; raises KafkaException when the broker cannot be asked for the topics' ids."""
    prefix = settings.topic_prefix
    sources = tuple(prefix + name for name in SOURCES)
    clock = policy.monitor.clock
    streamed = clock.kind is ClockKind.STREAM
    store = sampling_store(settings, policy)
    store.start()
    cluster, ids = _identities(settings, sources)
    partitions = policy.monitor.topics.partitions
    sampler = Sampler(
        policy.sampling,
        IntentClassifier(policy.monitor.intents),
        partitions=partitions,
        max_bytes=policy.monitor.intake.max_event_bytes,
        max_ahead=None if streamed else timedelta(seconds=policy.monitor.intake.max_ahead_seconds),
    )
    return SampleLoop(
        consumer=Consumer(
            settings.confluent
            | {
                "group.id": f"{settings.namespace}-sample",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": settings.session_timeout_seconds * 1000,
                "fetch.min.bytes": 1,
                "fetch.wait.max.ms": 50,
            }
        ),
        producer=Producer(
            settings.confluent
            | {
                "enable.idempotence": True,
                "linger.ms": 5,
                "acks": "all",
                # An event that may come in must be able to go out, with its headers.
                "message.max.bytes": policy.monitor.intake.max_event_bytes + HEADROOM_BYTES,
            }
        ),
        sampler=sampler,
        store=store,
        topics=SampleTopics(sources, prefix + SAMPLED_EVENTS, prefix + DEAD_LETTERS, partitions),
        identify=lambda topic, partition: Source(cluster, topic, ids[topic], partition),
        now=wall_now,
        monotonic=time.monotonic,
        markers=MarkerPolicy(MARK_EVERY_SECONDS, clock.partition_idle_seconds) if streamed else None,
        metrics=metrics or NoMetrics(),
    )


def run_sampler(settings: Settings, policy: Policy) -> int:
    """Run the sampler until SIGTERM; return the exit status."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    metrics = start_metrics(settings)
    pulse = SamplerPulse(blocking_heartbeats(settings, policy), instance_of(settings), wall_now)

    def is_over() -> bool:
        pulse.beat()
        return stopping.is_set()

    failing_since: float | None = None
    while not stopping.is_set():
        began = time.monotonic()
        try:
            build_loop(settings, policy, metrics).run(is_over)
        except PASSING as error:
            # What a failed round had in hand was not committed: a new loop begins where the last one counted.
            at = time.monotonic()
            if failing_since is None or at - began > STEADY_SECONDS:
                failing_since = at
            if at - failing_since > PATIENCE_SECONDS:
                log.critical("sampler_failed", reason=str(error)[:300])
                return 1
            log.warning("waiting", stage="sample", reason=str(error)[:300])
            stopping.wait(PAUSE_SECONDS)
    pulse.end()
    log.info("sampler_stopped")
    return 0


def _identities(settings: Settings, topics: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    admin = AdminClient({**settings.confluent})
    described = admin.describe_topics(TopicCollection(list(topics)), request_timeout=DESCRIBE_TIMEOUT_SECONDS)
    ids = {name: str(future.result().topic_id) for name, future in described.items()}
    return admin.list_topics(timeout=DESCRIBE_TIMEOUT_SECONDS).cluster_id or "cluster", ids
