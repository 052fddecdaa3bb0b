"""The twins of the small ports: the stream's clock, the judges' answers, and the way to Kafka."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.publishing import Outgoing, PublishError
from monitor.review.item import ReviewItem


class MemoryClock:
    """The port `ClockStore` in memory."""

    def __init__(self) -> None:
        """Begin without a time."""
        self._times: defaultdict[tuple[str, int], dict[str, datetime]] = defaultdict(dict)

    async def advance(
        self, hop: str, partition: int, times: Mapping[str, datetime], *, idle: Collection[str] = ()
    ) -> dict[str, datetime]:
        """Raise the times of a partition's sources and leave out the idle ones; return all that are known."""
        known = self._times[hop, partition]
        for source, moment in times.items():
            known[source] = max(moment, known.get(source, moment))
        for source in idle:
            if len(known) > 1:
                known.pop(source, None)
        return dict(known)

    async def read(self, hop: str) -> dict[int, datetime]:
        """Return the least time of each partition that has one."""
        return {
            partition: min(times.values())
            for (name, partition), times in sorted(self._times.items())
            if name == hop and times
        }


class MemoryAnswers:
    """The port `Answers` in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self._answers: dict[str, Judgment | JudgeFailure] = {}

    async def get(self, judgment_id: str) -> Judgment | JudgeFailure | None:
        """Return the answer that was given under this id."""
        return self._answers.get(judgment_id)

    async def put(self, record: Judgment | JudgeFailure) -> None:
        """Keep an answer."""
        self._answers[record.judgment_id] = record

    async def forget(self, judgment_ids: list[str]) -> None:
        """Erase answers, with the words in them."""
        for judgment_id in judgment_ids:
            self._answers.pop(judgment_id, None)


class MemoryReview:
    """The port `ReviewQueue` in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self._items: dict[str, ReviewItem] = {}

    async def add(self, items: Sequence[ReviewItem]) -> int:
        """Add items; return how many were new."""
        before = len(self._items)
        for item in items:
            self._items.setdefault(item.judgment_id, item)
        return len(self._items) - before

    async def waiting(self, limit: int) -> list[ReviewItem]:
        """Return items, the oldest first."""
        ordered = sorted(self._items.values(), key=lambda item: (item.observed_at, item.judgment_id))
        return ordered[:limit]


class MemoryPublisher:
    """The port `Publisher` in memory: what was sent, in order; it can be set to refuse."""

    def __init__(self) -> None:
        """Begin with nothing sent."""
        self.sent: list[Outgoing] = []
        self.refuses = False

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send in order."""
        if self.refuses:
            raise PublishError("the broker is set to refuse")
        self.sent += messages

    def on(self, topic: str) -> list[Outgoing]:
        """Return what was sent to one topic, in order."""
        return [one for one in self.sent if one.topic == topic]
