"""Consumer and producer that behave as confluent-kafka's, and a journal of what was done in which order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from agents.sample import MarkerPolicy, SampleLoop, SampleTopics
from monitor.adapters.memory_sampling import MemorySampling
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.clock import MARKER_HEADER, Watermark
from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.sampling.policy import SamplingPolicy
from monitor.sampling.sampler import PartitionTally, Sampler
from monitor.sampling.store import Source
from tests.events import NOON

EVENTS = "conversation-events"
TOPICS = SampleTopics(sources=(EVENTS,), sampled="sampled", dead_letters="dead", partitions=2)
IDLE_SECONDS = 30.0
Journal = list[tuple[Any, ...]]


class FakeMessage:
    """A consumed message, or an error in the place of one."""

    def __init__(
        self, value: bytes | None, offset: int = 0, partition: int = 0, *, error: KafkaError | None = None
    ) -> None:
        self._value, self._offset, self._partition, self._error = value, offset, partition, error

    def topic(self) -> str:
        return EVENTS

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> KafkaError | None:
        return self._error


@dataclass
class FakeConsumer:
    """Hands out batches; the callbacks of a rebalance run inside `consume()`, as the real ones do."""

    journal: Journal
    batches: list[list[FakeMessage]] = field(default_factory=list)
    refuses: KafkaError | None = None
    on_assign: Callable[[Any, Any], None] | None = None
    on_revoke: Callable[[Any, Any], None] | None = None
    rebalances: list[tuple[str, Sequence[int]]] = field(default_factory=list)

    def subscribe(self, topics: list[str], *, on_assign: Any, on_revoke: Any) -> None:
        self.on_assign, self.on_revoke = on_assign, on_revoke
        self.journal.append(("subscribed", *topics))

    def consume(self, most: int, timeout: float) -> list[FakeMessage]:
        assert most > 0
        assert timeout < 1
        while self.rebalances:
            what, partitions = self.rebalances.pop(0)
            places = [TopicPartition(EVENTS, one) for one in partitions]
            callback = self.on_assign if what == "assign" else self.on_revoke
            assert callback is not None
            callback(self, places)
        return self.batches.pop(0) if self.batches else []

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        assert not asynchronous
        if self.refuses is not None:
            raise KafkaException(self.refuses)
        self.journal.append(("committed", *((one.partition, one.offset) for one in offsets)))

    def close(self) -> None:
        self.journal.append(("closed",))


@dataclass
class FakeProducer:
    """Queues what is produced; it is delivered, or is not, only in `poll()` and `flush()`."""

    journal: Journal
    room: int = 10_000
    fails: KafkaError | None = None
    stuck: int = 0
    waiting: list[tuple[dict[str, Any], Any]] = field(default_factory=list)
    delivered: list[dict[str, Any]] = field(default_factory=list)

    def produce(self, topic: str, *, on_delivery: Any, **message: Any) -> None:
        if len(self.waiting) >= self.room:
            raise BufferError("Local: Queue full")
        self.waiting.append(({"topic": topic} | message, on_delivery))

    def poll(self, timeout: float) -> int:
        assert timeout > 0
        return self._deliver()

    def flush(self, timeout: float) -> int:
        assert timeout > 0
        self._deliver()
        return self.stuck

    def _deliver(self) -> int:
        done, self.waiting = self.waiting, []
        for message, on_delivery in done:
            if self.fails is None:
                self.delivered.append(message)
                self.journal.append(("delivered", message["topic"]))
            on_delivery(self.fails, None)
        return len(done)

    def on(self, topic: str) -> list[dict[str, Any]]:
        """Return what arrived at one topic."""
        return [message for message in self.delivered if message["topic"] == topic]


class JournalledSampling(MemorySampling):
    """The twin of the sampler's memory, with a journal; it can be out of reach."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(remember_hours=26)
        self._journal = journal
        self.gone = False

    def record(self, source: Source, tally: PartitionTally, *, now: datetime) -> bool:
        if self.gone:
            raise StoreUnavailable("sampling: gone")
        self._journal.append(("recorded", source.partition, tally.next_offset))
        return super().record(source, tally, now=now)


class SampleWorld:
    """A loop between its fakes."""

    def __init__(
        self,
        *,
        rate: float = 1.0,
        markers: bool = False,
        store: JournalledSampling | None = None,
        offsets: dict[int, int] | None = None,
    ) -> None:
        self.journal: list[tuple[Any, ...]] = []
        self.consumer = FakeConsumer(self.journal)
        self.producer = FakeProducer(self.journal)
        self.store = store or JournalledSampling(self.journal)
        self.seconds = 1000.0
        self.offsets = dict(offsets or {})
        policy = {"default_rate": rate, "priority": {"new_prompt_hash": {"rate": 1.0, "for_hours": 6}}}
        self.loop = SampleLoop(
            consumer=self.consumer,
            producer=self.producer,
            sampler=Sampler(
                SamplingPolicy.model_validate({"cohort": "main"} | policy),
                IntentClassifier(IntentPolicy()),
                partitions=2,
                max_bytes=2000,
                max_ahead=None,
            ),
            store=self.store,
            topics=TOPICS,
            identify=lambda topic, partition: Source("cluster", topic, "id", partition),
            now=lambda: NOON,
            monotonic=lambda: self.seconds,
            markers=MarkerPolicy(every_seconds=0.25, idle_seconds=IDLE_SECONDS) if markers else None,
        )

    def feed(self, *values: bytes | None, partition: int = 0) -> "SampleWorld":
        first = self.offsets.get(partition, 0)
        self.offsets[partition] = first + len(values)
        self.consumer.batches.append(
            [FakeMessage(value, first + place, partition) for place, value in enumerate(values)]
        )
        return self

    def run(self, *rebalances: tuple[str, list[int]]) -> "SampleWorld":
        """Run rounds until nothing is left; the first sees these rebalances."""
        self.consumer.rebalances += rebalances
        rounds = iter([False] * max(1, len(self.consumer.batches)) + [True])
        self.loop.run(lambda: next(rounds))
        return self

    def marks(self) -> list[Watermark]:
        """Return the markers of one partition, in order."""
        return [
            Watermark.model_validate_json(one["value"])
            for one in self.producer.on("sampled")
            if dict(one["headers"]).get(MARKER_HEADER) and one["partition"] == 0
        ]
