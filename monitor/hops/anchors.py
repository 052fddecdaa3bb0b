"""The clock in, a round of anchors judged out: by the judge that judges the traffic, and into no window."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from monitor.clock import ClockKind, ClockStore
from monitor.hops.aggregate import HOP as AGGREGATE
from monitor.hops.inbound import Now
from monitor.intake.event import Value
from monitor.judging.anchors import Anchor, AnchorPolicy, AnchorStore, due, round_of, score_of
from monitor.judging.cascade import Recording
from monitor.judging.executor import Gate
from monitor.judging.judgment import JudgeFailure, Judgment

AT_ONCE = 4
"""Anchors judged side by side: traffic stands in the same line at the endpoint, and must not wait for them."""


class Round(Value):
    """What one round did."""

    number: int
    pinned: int
    """Anchors that got their first score under this judge and rubric."""
    repeated: int
    failed: int
    """Anchors without a judgment; the next round makes up for them."""


class JudgeAnchors:
    """The rounds of one judge. Each worker that judges has one, and a claim in the store lets one of them work."""

    def __init__(
        self,
        *,
        anchors: Sequence[Anchor],
        executor: Recording,
        store: AnchorStore,
        judge_version: str,
        rubric_version: str,
        policy: AnchorPolicy,
        clock: ClockStore,
        clock_kind: ClockKind,
        partitions: int,
        now: Now,
        gate: Gate | None = None,
    ) -> None:
        """Take the set, who judges it and where its scores go; while the gate holds, no round begins."""
        self._anchors = tuple(anchors)
        self._executor = executor
        self._store = store
        self._judge_version = judge_version
        self._rubric_version = rubric_version
        self._policy = policy
        self._clock = clock
        self._kind = clock_kind
        self._partitions = partitions
        self._now = now
        self._gate = gate

    async def __call__(self) -> Round | None:
        """Judge what is due; None where nothing is, or where another worker does it.

        Raises StoreUnavailable. A round that was broken off is made up for by the next.
        """
        moment = await self._moment()
        if moment is None or self._policy.every_minutes is None or (self._gate and self._gate.holding):
            return None
        number = round_of(moment, self._policy.every_minutes)
        last = await self._store.last_rounds(
            judge_version=self._judge_version, rubric_version=self._rubric_version
        )
        wanted = due(self._anchors, last, number=number, per_round=self._policy.per_round)
        if not wanted or not await self._store.claim(
            number, judge_version=self._judge_version, rubric_version=self._rubric_version
        ):
            return None
        places = asyncio.Semaphore(AT_ONCE)

        async def one(anchor: Anchor) -> bool | None:
            async with places:
                return await self._judged(anchor, number, moment)

        found = await asyncio.gather(*(one(anchor) for anchor in wanted))
        return Round(
            number=number,
            pinned=found.count(True),
            repeated=found.count(False),
            failed=found.count(None),
        )

    async def _judged(self, anchor: Anchor, number: int, moment: datetime) -> bool | None:
        """Judge one anchor; return whether it was pinned, None where there is no judgment."""
        record = await self._executor.record_of(anchor.request(number=number, now=self._now()), now=self._now)
        match record:
            case JudgeFailure():
                return None
            case Judgment():
                score = score_of(anchor, record, number=number, at=moment)
                return await self._store.add(
                    score, judge_version=self._judge_version, rubric_version=self._rubric_version
                )

    async def _moment(self) -> datetime | None:
        if self._kind is ClockKind.WALL:
            return self._now()
        times = await self._clock.read(AGGREGATE)
        return min(times.values()) if len(times) == self._partitions else None
