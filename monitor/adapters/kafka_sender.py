"""Messages in, onto Kafka out, for commands that send a few by hand; blocking, sent means confirmed."""

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from monitor.adapters.kafka_admin import BrokerUnavailable
from monitor.publishing import Outgoing
from monitor.settings import Settings

CONFIRM_TIMEOUT_SECONDS = 30.0
"""How long a person waits for the broker before being told that it does not answer."""
QUEUE_PAUSE_SECONDS = 0.1


class KafkaSender:
    """Sends through confluent-kafka."""

    def __init__(self, settings: Settings) -> None:
        """Build the producer; it connects when something is sent."""
        self._address = settings.kafka
        self._producer = Producer(
            settings.confluent
            | {
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(CONFIRM_TIMEOUT_SECONDS * 1000),
            }
        )
        self._failed: list[KafkaError] = []

    def send(self, messages: Sequence[Outgoing]) -> int:
        """Send in order and return how many, once all are confirmed; raises BrokerUnavailable."""
        self._failed.clear()
        for message in messages:
            self._produce(message)
        left = self._producer.flush(CONFIRM_TIMEOUT_SECONDS)
        if left or self._failed:
            reason = self._failed[0].str() if self._failed else f"{left} messages unconfirmed"
            raise self._unavailable(reason)
        return len(messages)

    def _produce(self, message: Outgoing) -> None:
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    value=message.value,
                    key=message.key,
                    partition=-1 if message.partition is None else message.partition,
                    headers=list(message.headers),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(QUEUE_PAUSE_SECONDS)
            except KafkaException as error:
                raise self._unavailable(str(error)) from error
            else:
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _unavailable(self, reason: str) -> BrokerUnavailable:
        return BrokerUnavailable(
            f"Kafka at {self._address}: {reason}; what was sent before may have arrived, and sending it again is safe"
        )
