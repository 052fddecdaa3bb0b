"""Notifications as JSON on a topic of the deployment's own broker, keyed by group."""

import asyncio
import json

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from monitor.alerting.notification import GroupNotification
from monitor.alerting.receiver import Delivered, Delivery, Pace, Undelivered
from monitor.alerting.render_json import as_json
from monitor.alerting.webhook import ID_HEADER
from monitor.settings import Settings


class KafkaReceiver:
    """The port `Receiver` on Kafka; delivered is what the broker has confirmed."""

    pace = Pace(first_seconds=1, most_seconds=60)

    def __init__(self, name: str, *, topic: str, settings: Settings, timeout_seconds: float = 10) -> None:
        """Take the topic, which must be there; nothing is connected yet."""
        self._name = name
        self._topic = topic
        self._timeout = timeout_seconds
        self._producer = Producer(
            settings.confluent
            | {
                "enable.idempotence": True,
                "message.timeout.ms": int(timeout_seconds * 1000),
                "allow.auto.create.topics": False,
            }
        )

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: GroupNotification) -> Delivery:
        """Send a notification and wait for the broker."""
        return await asyncio.to_thread(self._send, notification)

    async def close(self) -> None:
        """Have nothing to let go of: every call has waited for its message."""

    def _send(self, notification: GroupNotification) -> Delivery:
        failed: list[KafkaError | None] = []

        def answered(error: KafkaError | None, _: Message) -> None:
            failed.append(error)

        try:
            self._producer.produce(
                self._topic,
                key=notification.group_id.encode(),
                value=json.dumps(as_json(notification), ensure_ascii=False).encode(),
                headers=[(ID_HEADER, notification.id.encode())],
                on_delivery=answered,
            )
        except (KafkaException, BufferError) as error:
            return Undelivered(receiver=self._name, reason=str(error)[:200], retry=True)
        self._producer.flush(self._timeout + 1)
        answer = failed[0] if failed else None
        if failed and answer is None:
            return Delivered(receiver=self._name)
        reason = answer.str() if answer else "the broker did not answer"
        too_large = answer is not None and answer.code() == KafkaError.MSG_SIZE_TOO_LARGE
        return Undelivered(receiver=self._name, reason=reason[:200], retry=not too_large)
