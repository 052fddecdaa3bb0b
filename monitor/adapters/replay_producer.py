"""Events with their times in, onto the source topics out: in order, paced, with clock markers between them."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import xxhash
from confluent_kafka import KafkaError, Message, Producer

from monitor.publishing import PublishError
from monitor.settings import Settings
from monitor.topics import CONVERSATION_EVENTS, SOURCES, SUMMARY_EVENTS

MARKER_EVERY = timedelta(minutes=15)
CONFIRM_TIMEOUT_SECONDS = 60.0
PAUSE_MIN_SECONDS = 0.005


def marks(
    marked: datetime, event: datetime, up_to: datetime, *, quiet_after: timedelta
) -> Iterator[datetime]:
    """Return the times to tell after `marked` and up to `up_to`: every step of 15 minutes while things may happen.

    Nothing happens later than `quiet_after` the last event; of a quiet stretch only the last step is told, or
    two years of sparse traffic would be 70,000 markers to every partition.
    """
    quiet_from = event + quiet_after
    mark = marked + MARKER_EVERY
    while mark <= up_to:
        if mark > quiet_from:
            mark += (up_to - mark) // MARKER_EVERY * MARKER_EVERY
        yield mark
        mark += MARKER_EVERY


class ReplayProducer:
    """Writes a replay; every partition is told the time, whether it has events or not."""

    def __init__(
        self,
        settings: Settings,
        *,
        partitions: int,
        speed: float | None,
        quiet_after: timedelta,
        progress: Callable[[int, datetime], None] = lambda _count, _time: None,
    ) -> None:
        """Take `speed` as seconds of the stream a second of the wall; None is as fast as the broker takes it.

        For `quiet_after` from an event on the clock goes on in its steps, so that whatever was open is over by
        its own time; then it may leap to the next event, however far away that is.
        """
        self._producer = Producer(settings.confluent | {"enable.idempotence": True, "linger.ms": 5})
        self._prefix = settings.topic_prefix
        self._partitions = partitions
        self._speed = speed
        self._quiet_after = quiet_after
        self._progress = progress
        self._failed: list[KafkaError] = []

    def run(self, events: Iterable[tuple[datetime, Mapping[str, Any] | bytes]], *, until: timedelta) -> int:
        """Send events in the order given and return how many; the clock then runs on by `until`."""
        count = 0
        first = marked = moment = last = None
        started = time.monotonic()
        for moment, event in events:
            if first is None or marked is None:
                first = marked = moment
                self._tell(moment, count)
            for mark in marks(marked, last or moment, moment, quiet_after=self._quiet_after):
                self._pace(first, mark, started)
                self._tell(mark, count)
                marked = mark
            self._send(event)
            last = moment
            count += 1
        if moment is not None and marked is not None:
            for mark in marks(marked, moment, moment + until, quiet_after=self._quiet_after):
                self._mark(mark)
            self._mark(moment + until)
            self._progress(count, moment)
        left = self._producer.flush(CONFIRM_TIMEOUT_SECONDS)
        if left or self._failed:
            reason = self._failed[0].str() if self._failed else f"{left} messages unconfirmed"
            raise PublishError(f"replay: {reason}")
        return count

    def _tell(self, mark: datetime, count: int) -> None:
        self._mark(mark)
        self._progress(count, mark)

    def _pace(self, first: datetime, moment: datetime, started: float) -> None:
        if self._speed is None:
            return
        ahead = (moment - first).total_seconds() / self._speed - (time.monotonic() - started)
        if ahead > PAUSE_MIN_SECONDS:
            time.sleep(ahead)

    def _mark(self, moment: datetime) -> None:
        value = json.dumps({"type": "clock", "time": moment.isoformat()}).encode()
        for topic in SOURCES:
            for partition in range(self._partitions):
                self._produce(self._prefix + topic, partition, b"", value)

    def _send(self, event: Mapping[str, Any] | bytes) -> None:
        if isinstance(event, bytes):
            # What is no event has no conversation; it goes where its bytes send it.
            partition = xxhash.xxh3_64_intdigest(event) % self._partitions
            self._produce(self._prefix + CONVERSATION_EVENTS, partition, b"", event)
            return
        conversation = str(event["conversation_id"])
        topic = SUMMARY_EVENTS if event.get("type") == "summary" else CONVERSATION_EVENTS
        partition = xxhash.xxh3_64_intdigest(conversation.encode()) % self._partitions
        self._produce(self._prefix + topic, partition, conversation.encode(), json.dumps(event).encode())

    def _produce(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(
                    topic, value=value, key=key, partition=partition, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)
