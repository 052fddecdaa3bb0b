"""The process that sees all traffic: events in, the few that are kept out, everything else counted.

A loop on confluent-kafka, not a Faust agent, for it must cost microseconds an event. The order in each round
is what makes it lose nothing: decide, send, confirm, remember and count, and only then commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from monitor.clock import MARKER_HEADER, Watermark
from monitor.intake.dead_letter import Position, dead_letter
from monitor.metrics import Metrics, NoMetrics
from monitor.publishing import PublishError
from monitor.sampling.sampler import Forward, PartitionTally, Sampled, Sampler
from monitor.sampling.store import SamplingStore, Source

BATCH = 5000
"""Events a round: the most that a killed sampler leaves to be read again."""
POLL_SECONDS = 0.1
CONFIRM_TIMEOUT_SECONDS = 30.0
SHARE_EVERY_ROUNDS = 50
# The client tells of much that it goes on to mend by itself; ending for it would only cost a rebalance more.
PASSING = frozenset(
    getattr(KafkaError, name)
    for name in (
        *(
            "_PARTITION_EOF",
            "_MAX_POLL_EXCEEDED",
            "_TRANSPORT",
            "_ALL_BROKERS_DOWN",
            "_RESOLVE",
            "_TIMED_OUT",
        ),
        *("_WAIT_COORD", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_OR_PART"),
        *("LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT"),
        *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"),
    )
)

log = structlog.get_logger()


@dataclass(frozen=True)
class SampleTopics:
    """The topics that the sampler reads and writes."""

    sources: tuple[str, ...]
    sampled: str
    dead_letters: str
    partitions: int


@dataclass(frozen=True)
class MarkerPolicy:
    """How the stream's clock is carried on; None of this happens on the wall's clock."""

    every_seconds: float
    idle_seconds: float


class Overtaken(Exception):  # noqa: N818 - it states a condition
    """Another sampler counted this partition meanwhile; begin anew from what is counted and committed."""


class SampleLoop:
    """One sampler process."""

    def __init__(
        self,
        *,
        consumer: Consumer,
        producer: Producer,
        sampler: Sampler,
        store: SamplingStore,
        topics: SampleTopics,
        identify: Callable[[str, int], Source],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        markers: MarkerPolicy | None,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the clients, the room and the store; `identify` names a source partition for good."""
        self._consumer = consumer
        self._producer = producer
        self._sampler = sampler
        self._store = store
        self._topics = topics
        self._identify = identify
        self._now = now
        self._monotonic = monotonic
        self._markers = markers
        self._metrics = metrics or NoMetrics()
        self._newest: dict[tuple[str, int], tuple[datetime | None, float]] = {}
        self._marked_at = 0.0
        self._spoke = False
        """Whether the last marker named a time; one more is owed when all has fallen silent."""
        self._rounds = 0
        self._failed: list[KafkaError] = []

    def run(self, stopping: Callable[[], bool]) -> None:
        """Sample until told to stop; a round that has begun is finished."""
        self._consumer.subscribe(
            list(self._topics.sources), on_assign=self._on_assign, on_revoke=self._on_revoke
        )
        try:
            while not stopping():
                self.round()
        finally:
            self._consumer.close()

    def round(self) -> int:
        """Take one batch all the way; return how many messages it had."""
        messages: list[Any] = [one for one in self._consumer.consume(BATCH, POLL_SECONDS) if _usable(one)]
        if messages:
            sampled = self._sampler.take(messages, now=self._now())
            self._send(sampled)
            self._remember(sampled)
            self._commit(sampled)
            self._measure(sampled)
        if self._markers is not None:
            self._mark(self._markers)
        self._rounds += 1
        return len(messages)

    def _measure(self, sampled: Sampled) -> None:
        self._metrics.count("monitor_sampled_events_total", len(sampled.forward), outcome="kept")
        for tally in sampled.tallies.values():
            for outcome, count in tally.dropped.items():
                self._metrics.count("monitor_sampled_events_total", count, outcome=outcome)
        if sampled.buried:
            self._metrics.count("monitor_dead_letters_total", len(sampled.buried), stage="sample")

    def _send(self, sampled: Sampled) -> None:
        for one in sampled.forward:
            self._produce(self._topics.sampled, one)
        for record, rejected in sampled.buried:
            position = Position(topic=record.topic(), partition=record.partition(), offset=record.offset())
            letter = dead_letter(
                stage="sample",
                fault=rejected.fault,
                reason=rejected.reason,
                position=position,
                value=record.value(),
                now=self._now(),
            )
            key = letter.id.encode()
            self._produce(self._topics.dead_letters, Forward(-1, key, letter.model_dump_json().encode(), []))
        self._confirm()

    def _produce(self, topic: str, one: Forward) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    value=one.value,
                    key=one.key,
                    partition=one.partition,
                    headers=[*one.headers],
                    on_delivery=self._delivered,
                )
            except BufferError:
                # The local queue is full: wait for the broker instead of dropping.
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _confirm(self) -> None:
        left = self._producer.flush(CONFIRM_TIMEOUT_SECONDS)
        if left or self._failed:
            reason = self._failed[0].str() if self._failed else f"{left} messages unconfirmed"
            self._failed.clear()
            raise PublishError(f"{self._topics.sampled}: {reason}")

    def _remember(self, sampled: Sampled) -> None:
        now = self._now()
        for (topic, partition), tally in sampled.tallies.items():
            if tally.dropped or tally.census or tally.remember:
                fresh = self._store.record(self._identify(topic, partition), tally, now=now)
                if not fresh:
                    raise Overtaken(f"{topic}/{partition}")
            if tally.newest is not None:
                self._saw((topic, partition), tally)
        if self._sampler.prompts.sightings or self._rounds % SHARE_EVERY_ROUNDS == 0:
            self._share()

    def _share(self) -> None:
        prompts = self._sampler.prompts
        for one in self._store.share(prompts.sightings):
            prompts.learn((one.assistant, one.environment), one.prompt_hash, one.first_seen)
        prompts.sightings.clear()

    def _commit(self, sampled: Sampled) -> None:
        offsets = [
            TopicPartition(topic, partition, tally.next_offset)
            for (topic, partition), tally in sampled.tallies.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in PASSING:
                raise
            # No loss: the next commit says the same and more, or whoever has the partition now reads again.
            log.warning("commit_put_off", reason=error.args[0].name())

    def _saw(self, source: tuple[str, int], tally: PartitionTally) -> None:
        known, _ = self._newest.get(source, (None, 0.0))
        newest = max(filter(None, (tally.newest, known)))
        self._newest[source] = (newest, self._monotonic())

    def _mark(self, policy: MarkerPolicy) -> None:
        at = self._monotonic()
        if not self._newest or at - self._marked_at < policy.every_seconds:
            return
        self._marked_at = at
        quiet = {place: at - seen > policy.idle_seconds for place, (_, seen) in self._newest.items()}
        active = {
            f"{topic}/{partition}": time
            for (topic, partition), (time, _) in self._newest.items()
            if time is not None and not quiet[topic, partition]
        }
        # A partition that was given to us a moment ago may hold old events: its silence says nothing yet.
        unheard = any(time is None and not quiet[place] for place, (time, _) in self._newest.items())
        idle = tuple(f"{topic}/{partition}" for (topic, partition), silent in quiet.items() if silent)
        if unheard or not (active or self._spoke):
            return
        self._spoke = bool(active)
        value = Watermark(times=active, idle=idle).model_dump_json().encode()
        for partition in range(self._topics.partitions):
            self._produce(self._topics.sampled, Forward(partition, b"", value, [(MARKER_HEADER, b"1")]))
        self._confirm()

    def _on_assign(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        self._share()
        for one in partitions:
            remembered = self._store.remembered(self._identify(one.topic, one.partition), now=self._now())
            source = (one.topic, one.partition)
            self._sampler.own(source, remembered.kept, remembered.counted_through)
            self._newest.setdefault(source, (None, self._monotonic()))
        log.info("partitions_assigned", count=len(partitions))

    def _on_revoke(self, _: Any, partitions: Sequence[TopicPartition]) -> None:
        for one in partitions:
            self._sampler.disown((one.topic, one.partition))
            self._newest.pop((one.topic, one.partition), None)
        log.info("partitions_revoked", count=len(partitions))


def _usable(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    # What is not known to pass may stand for a message that could not be read: going on would lose it.
    if error.fatal() or error.code() not in PASSING:
        raise KafkaException(error)
    log.debug("consumer_waits", reason=error.name())
    return False
