"""Kafka's administration by kafka-python: topics made and checked, lag, and batch reads of short topics."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from monitor.settings import Settings
from monitor.topics import COPARTITIONED, Topic

READ_IDLE_MS = 1500
BATCH_RECORDS_MAX = 20_000
"""More than one batch of a producer holds: a megabyte of small records."""
REQUEST_TIMEOUT_MS = 15_000


class BrokerUnavailable(Exception):  # noqa: N818 - it states a condition, in our words
    """Kafka cannot be reached or refuses; the message names the address."""


@dataclass(frozen=True)
class Held:
    """One message that was read back."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class KafkaAdmin:
    """What the command line asks of the broker; blocking."""

    def __init__(self, settings: Settings) -> None:
        """Connect; raises BrokerUnavailable."""
        self._address = settings.kafka
        self._connection: dict[str, Any] = {
            "bootstrap_servers": settings.kafka.split(","),
            "security_protocol": settings.kafka_security_protocol,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
        }
        if settings.kafka_sasl_mechanism:
            self._connection["sasl_mechanism"] = settings.kafka_sasl_mechanism
        if settings.kafka_username and settings.kafka_password:
            self._connection["sasl_plain_username"] = settings.kafka_username
            self._connection["sasl_plain_password"] = settings.kafka_password.get_secret_value()
        if settings.kafka_ca_file:
            self._connection["ssl_cafile"] = str(settings.kafka_ca_file)
        try:
            self._admin = KafkaAdminClient(**self._connection)
        except KafkaError as error:
            raise self._unavailable(error) from error

    def close(self) -> None:
        """Let go of the connection."""
        self._admin.close()

    def create(self, topics: Sequence[Topic]) -> list[str]:
        """Create the topics that are missing; return their names."""
        existing = self._describe([topic.name for topic in topics])
        made = []
        for topic in topics:
            if topic.name in existing:
                continue
            new = NewTopic(topic.name, topic.partitions, topic.replication, topic_configs=topic.config)
            try:
                self._admin.create_topics([new])
            except TopicAlreadyExistsError:
                continue
            except KafkaError as error:
                raise self._unavailable(error) from error
            made.append(topic.name)
        return made

    def check(self, topics: Sequence[Topic], *, prefix: str) -> list[str]:
        """Return what is wrong with the topics, each with its cure; an empty list means that all is well."""
        existing = self._describe([topic.name for topic in topics])
        inner = {prefix + name for name in COPARTITIONED}
        faults = []
        for topic in topics:
            partitions = existing.get(topic.name)
            if partitions is None:
                faults.append(f"{topic.name}: missing; `monitor topics create` makes it")
            elif topic.name in inner and partitions != topic.partitions:
                faults.append(
                    f"{topic.name}: has {partitions} partitions, monitor.yaml says {topic.partitions}; the three "
                    f"inner topics ({', '.join(sorted(inner))}) must have as many as topics.partitions"
                )
        return faults

    def lag(self, group: str, topics: Sequence[str]) -> dict[str, int]:
        """Return by topic how many messages a group has not committed yet."""
        partitions = self._partitions(topics)
        consumer = self._consumer()
        try:
            ends = consumer.end_offsets(partitions)
            starts = consumer.beginning_offsets(partitions)
            committed = self._committed(group)
        except KafkaError as error:
            raise self._unavailable(error) from error
        finally:
            consumer.close()
        found: dict[str, int] = dict.fromkeys(topics, 0)
        for one in partitions:
            found[one.topic] += max(0, ends[one] - committed.get(one, starts[one]))
        return found

    def read(self, topic: str, *, limit: int | None = None) -> Iterator[Held]:
        """Read a topic from its beginning to where it ends now, and at most one batch more; raises BrokerUnavailable.

        The embedded broker names the first offset of its last batch as the end: so that batch is waited for,
        each partition by itself, since a topic in use never falls silent as a whole.
        """
        partitions = self._partitions([topic])
        if not partitions:
            raise BrokerUnavailable(
                f"Kafka at {self._address}: there is no topic {topic}; is the namespace right (--name or "
                "MONITOR_NAMESPACE)? `monitor topics create` makes what is missing"
            )
        consumer = self._consumer()
        try:
            ends = consumer.end_offsets(partitions)
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            count = 0
            heard_at = dict.fromkeys(partitions, time.monotonic())
            while not all(
                consumer.position(one) > ends[one]
                or (consumer.position(one) == ends[one] and _silent(heard_at[one]))
                for one in partitions
            ):
                for one, records in consumer.poll(timeout_ms=READ_IDLE_MS).items():
                    heard_at[one] = time.monotonic()
                    for record in records:
                        if limit is not None and count >= limit:
                            return
                        count += 1
                        yield Held(
                            topic,
                            record.partition,
                            record.offset,
                            record.timestamp,
                            record.key,
                            record.value,
                            tuple(record.headers),
                        )
        except KafkaError as error:
            raise self._unavailable(error) from error
        finally:
            consumer.close()

    def _consumer(self) -> Any:
        # A batch is handed out whole, see `read`.
        return KafkaConsumer(
            **self._connection,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=BATCH_RECORDS_MAX,
        )

    def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        counts = self._describe(list(topics))
        return [TopicPartition(name, number) for name, count in counts.items() for number in range(count)]

    def _describe(self, topics: list[str]) -> dict[str, int]:
        try:
            described = self._admin.describe_topics(topics)
        except KafkaError as error:
            raise self._unavailable(error) from error
        return {one["name"]: len(one["partitions"]) for one in described if not one["error_code"]}

    def _committed(self, group: str) -> dict[TopicPartition, int]:
        offsets = self._admin.list_group_offsets(group)
        per_group = offsets.get(group, offsets) if isinstance(offsets, dict) else {}
        return {one: value.offset for one, value in per_group.items() if value.offset >= 0}

    def _unavailable(self, error: KafkaError) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"Kafka at {self._address}: {type(error).__name__}: {error}; is MONITOR_KAFKA right and the broker up?"
        )


def _silent(since: float) -> bool:
    return time.monotonic() - since >= READ_IDLE_MS / 1000
