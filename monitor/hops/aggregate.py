"""Judgments in; buckets, outcomes and critical alerts out, each exactly once in effect."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import ValidationError

from monitor.alerting.changes import sightings_of
from monitor.alerting.evaluation import record_criticals
from monitor.alerting.gathering import Background
from monitor.alerting.store import AlertStore
from monitor.clock import ClockKind, ClockStore
from monitor.conversations.store import ConversationStore
from monitor.detection.gates import GatePolicy
from monitor.detection.registry import ConfigurationStore, sights_of
from monitor.detection.settling import AwaitedStore, answered_of
from monitor.hops.inbound import Burial, Inbound, Now, complaint
from monitor.judging.cascade import speaks
from monitor.judging.health import HealthStore
from monitor.judging.judgment import JUDGMENT_RECORD, Record
from monitor.judging.shadow import on_trial
from monitor.publishing import Publisher
from monitor.review.item import ReviewQueue, items_of
from monitor.topics import DEAD_LETTERS
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import WindowStore

HOP = "aggregate"


class Aggregate:
    """The hop from judgments to windows."""

    def __init__(
        self,
        *,
        windows: WindowStore,
        conversations: ConversationStore[Record],
        alerts: AlertStore,
        review: ReviewQueue,
        clock: ClockStore,
        clock_kind: ClockKind,
        gates: GatePolicy,
        publisher: Publisher,
        prefix: str,
        now: Now,
        background: Background | None = None,
        health: HealthStore | None = None,
        awaited: AwaitedStore | None = None,
        window_policy: WindowPolicy | None = None,
        configurations: ConfigurationStore | None = None,
    ) -> None:
        """Take the ports."""
        self._awaited = awaited
        self._window_policy = window_policy or WindowPolicy()
        self._background = background or Background()
        self._windows = windows
        self._conversations = conversations
        self._alerts = alerts
        self._review = review
        self._clock = clock
        self._stream_time = clock_kind is ClockKind.STREAM
        self._gates = gates
        self._burial = Burial(publisher, prefix + DEAD_LETTERS, now)
        self._now = now
        self._health = health
        self._configurations = configurations

    async def __call__(self, batch: Sequence[Inbound]) -> None:
        """Enter a batch; a clock marker counts only after all that came before it."""
        records: list[Record] = []
        times: dict[int, dict[str, datetime]] = {}
        for message in batch:
            if message.is_marker:
                mark = await self._burial.watermark(HOP, message)
                if mark is not None:
                    times.setdefault(message.position.partition, {}).update(mark.times)
                continue
            try:
                records.append(JUDGMENT_RECORD.validate_json(message.value))
            except ValidationError as error:
                reason = f"no judgment: {complaint(error)}"
                await self._burial.bury(HOP, message, fault="invalid", reason=reason)
        await self._enter(records)
        for partition, known in times.items():
            await self._clock.advance(HOP, partition, known)

    async def _enter(self, records: Sequence[Record]) -> None:
        if not records:
            return
        await self._windows.apply(records, now=await self._kept_from(records))
        # A judge on trial changes nothing of what is served, and answers nothing that the live one was asked.
        served = [one for one in records if not on_trial(one)]
        if self._awaited is not None:
            await self._awaited.answer(answered_of(served, self._window_policy))
        # A critical failure is told from the judgment itself: it must not wait for a timer.
        # First sightings stand before it, so that its evidence names the configuration that is new.
        if self._background.changes is not None:
            combination = self._gates.configurations.combination
            await self._background.changes.sight(sightings_of(served, combination))
        telling = [record for record in records if speaks(record)]
        await record_criticals(
            self._alerts,
            telling,
            policy=self._gates,
            now=self._moment(records),
            background=self._background,
        )
        await self._review.add(items_of(telling))
        if self._health is not None:
            streamed = self._stream_time
            await self._health.add(
                [(record.observed_at if streamed else record.judged_at, record) for record in records]
            )
        if self._configurations is not None:
            await self._configurations.count(sights_of(served, self._gates.configurations))
        # Outcomes come last: an event that counts as judged is in its window.
        await self._conversations.settle(records)

    async def _kept_from(self, records: Sequence[Record]) -> datetime:
        """Return the time from which the windows count what they keep.

        In a replay the judgments may be days ahead of the evaluator, which needs the buckets behind them still.
        """
        if not self._stream_time:
            return self._now()
        oldest = min(record.observed_at for record in records)
        through = await self._alerts.evaluated_through()
        return min(oldest, through) if through else oldest

    def _moment(self, records: Sequence[Record]) -> datetime:
        return max(record.observed_at for record in records) if self._stream_time else self._now()
