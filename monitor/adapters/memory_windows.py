"""The twin of the windows: the same port in plain dictionaries, for tests and scenarios."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import (
    BucketCounts,
    Cell,
    Contribution,
    Scope,
    contribution,
    entry_key,
    is_late,
    is_unit,
    rank,
)
from monitor.windows.case import Case, cases_of, worst_first
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied

Place = tuple[Scope, datetime]


class MemoryWindowStore:
    """The port `WindowStore` in memory."""

    def __init__(self, policy: WindowPolicy) -> None:
        """Begin empty."""
        self._policy = policy
        self._buckets: dict[Place, dict[Cell, int]] = {}
        self._cases: dict[Place, dict[tuple[str, int, str], Case]] = {}
        self._ledger: dict[str, tuple[int, Contribution]] = {}

    async def apply(
        self, records: Sequence[Judgment | JudgeFailure], *, now: datetime
    ) -> tuple[Applied, ...]:
        """Enter records, one after the other."""
        answers = tuple(self._apply(record, now) for record in records)
        for place in [place for place in self._buckets if is_late(place[1], now=now, policy=self._policy)]:
            del self._buckets[place]
            self._cases.pop(place, None)
        return answers

    def _apply(self, record: Judgment | JudgeFailure, now: datetime) -> Applied:
        added = contribution(record, self._policy)
        if added is None:
            return Applied.IGNORED
        if is_late(added.bucket, now=now, policy=self._policy):
            return Applied.LATE
        entry = entry_key(
            record.target, rubric_version=record.rubric_version, judge_version=record.judge.version
        )
        old = self._ledger.get(entry)
        if old is not None and old[0] >= rank(record):
            return Applied.REPEATED if old[0] == rank(record) else Applied.STALE
        if old is not None:
            self._take_out(entry, old[1])
        self._ledger[entry] = (rank(record), added)
        bucket = self._buckets.setdefault((added.scope, added.bucket), {})
        for cell in added.cells:
            bucket[cell] = bucket.get(cell, 0) + 1
        if isinstance(record, Judgment):
            self._keep_cases(entry, added, record)
        return Applied.NEW if old is None else Applied.SUPERSEDED

    def _take_out(self, entry: str, added: Contribution) -> None:
        place = (added.scope, added.bucket)
        bucket = self._buckets.get(place)
        if bucket is None:
            return
        for cell in added.cells:
            bucket[cell] -= 1
            if not bucket[cell]:
                del bucket[cell]
        kept = self._cases.get(place, {})
        self._cases[place] = {key: case for key, case in kept.items() if key[2] != entry}

    def _keep_cases(self, entry: str, added: Contribution, judgment: Judgment) -> None:
        kept = self._cases.setdefault((added.scope, added.bucket), {})
        for case in cases_of(judgment):
            kept[case.dimension, case.score, entry] = case
            for key in sorted(k for k in kept if k[0] == case.dimension)[self._policy.cases_per_bucket :]:
                del kept[key]

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end) and hold anything."""
        return {
            begin: dict(counts)
            for (owner, begin), counts in self._buckets.items()
            if owner == scope and start <= begin < end and counts
        }

    async def worst(
        self, scope: Scope, start: datetime, end: datetime, *, dimension: str | None = None
    ) -> tuple[Case, ...]:
        """Return the worst cases of the buckets in [start, end)."""
        cases = (
            case
            for (owner, begin), kept in self._cases.items()
            if owner == scope and start <= begin < end
            for case in kept.values()
            if dimension in {None, case.dimension}
        )
        return tuple(sorted(cases, key=worst_first))

    async def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that has a bucket."""
        return tuple(sorted({scope for scope, _ in self._buckets}, key=lambda scope: scope.model_dump_json()))

    async def begins(self) -> tuple[datetime, ...]:
        """Return the starts of all buckets."""
        return tuple(sorted({begin for _, begin in self._buckets}))

    async def forget(self, conversation_id: str) -> int:
        """Erase the cases of a conversation."""
        erased = 0
        for place, kept in self._cases.items():
            left = {key: case for key, case in kept.items() if case.conversation_id != conversation_id}
            erased += len(kept) - len(left)
            self._cases[place] = left
        return erased

    async def units(self) -> int:
        """Count the units of all kept buckets of conversations."""
        return sum(
            count
            for (scope, _), counts in self._buckets.items()
            if scope.target is TargetKind.CONVERSATION
            for cell, count in counts.items()
            if is_unit(cell)
        )
