"""The twin of the windows: the same port in plain dictionaries, for tests and scenarios."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from monitor.intake.moments import floor
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import (
    OTHER,
    OVERALL,
    BucketCounts,
    Cell,
    Contribution,
    Granularity,
    Scope,
    contribution,
    entry_key,
    is_late,
    is_unit,
    rank,
)
from monitor.windows.case import Case, cases_of, worst_first
from monitor.windows.other import STRATA
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied
from monitor.windows.window import merged

Place = tuple[Scope, datetime]
_DAY = 1440


class MemoryWindowStore:
    """The port `WindowStore` in memory."""

    def __init__(self, policy: WindowPolicy) -> None:
        """Begin empty."""
        self._policy = policy
        self._levels: dict[Granularity, dict[Place, dict[Cell, int]]] = {one: {} for one in Granularity}
        self._buckets = self._levels[Granularity.BUCKET]
        self._cases: dict[Place, dict[tuple[str, int, str], Case]] = {}
        self._ledger: dict[datetime, dict[str, tuple[int, Contribution]]] = defaultdict(dict)
        self._names: dict[tuple[Place, str], set[str]] = defaultdict(set)
        self._late: dict[datetime, set[str]] = defaultdict(set)
        self._others: dict[tuple[Place, str], set[str]] = defaultdict(set)

    async def apply(
        self, records: Sequence[Judgment | JudgeFailure], *, now: datetime
    ) -> tuple[Applied, ...]:
        """Enter records, one after the other."""
        policy = self._policy
        period = timedelta(days=policy.ledger_days)
        for begin in [one for one in self._ledger if one + period <= now - policy.retention]:
            del self._ledger[begin]
        answers = tuple(self._apply(record, now) for record in records)
        for record, answer in zip(records, answers, strict=True):
            if answer is Applied.LATE:
                self._late[floor(now, minutes=_DAY)].add(_entry(record))
        self._roll_up(Granularity.BUCKET, Granularity.HOUR, now - policy.retention)
        self._roll_up(Granularity.HOUR, Granularity.DAY, now - timedelta(days=policy.hourly_days))
        self._roll_up(Granularity.DAY, None, now - timedelta(days=policy.daily_days))
        return answers

    def _apply(self, record: Judgment | JudgeFailure, now: datetime) -> Applied:
        added = contribution(record, self._policy)
        if added is None:
            return Applied.IGNORED
        entry = _entry(record)
        period, old = next(((p, one[entry]) for p, one in self._ledger.items() if entry in one), (None, None))
        if old is not None and old[0] >= rank(record):
            return Applied.REPEATED if old[0] == rank(record) else Applied.STALE
        if self._is_over(added, now) or (old is not None and self._is_over(old[1], now)):
            return Applied.LATE
        if old is not None and period is not None:
            self._take_out(entry, old[1])
            del self._ledger[period][entry]
        added = self._admitted(added)
        self._ledger[floor(added.bucket, minutes=self._policy.ledger_days * _DAY)][entry] = (
            rank(record),
            added,
        )
        bucket = self._buckets.setdefault((added.scope, added.bucket), {})
        for cell in added.cells:
            bucket[cell] = bucket.get(cell, 0) + 1
        if isinstance(record, Judgment):
            self._keep_cases(entry, added, record)
        return Applied.NEW if old is None else Applied.SUPERSEDED

    def _is_over(self, added: Contribution, now: datetime) -> bool:
        """Tell whether a bucket is late, or has been rolled up already by another worker's clock."""
        scope, bucket = added.scope, added.bucket
        return is_late(bucket, now=now, policy=self._policy) or (
            (scope, bucket) not in self._buckets
            and any(
                (scope, floor(bucket, minutes=one.minutes(self._policy))) in self._levels[one]
                for one in (Granularity.HOUR, Granularity.DAY)
            )
        )

    def _admitted(self, added: Contribution) -> Contribution:
        """Put `*other` where a day has enough values of a key, or strata."""
        day = (added.scope, floor(added.bucket, minutes=_DAY))
        policy = self._policy
        if not self._admits(day, STRATA, added.stratum, policy.strata_max):
            added = added._replace(stratum=",".join([OTHER] * len(policy.strata)))
        segments = [
            segment
            if segment == OVERALL
            or self._admits(day, segment.partition("=")[0], segment, policy.segment_values_max)
            else f"{segment.partition('=')[0]}={OTHER}"
            for segment in added.segments
        ]
        return added._replace(segments=tuple(segments))

    def _admits(self, day: Place, key: str, name: str, most: int) -> bool:
        names = self._names[day, key]
        if len(names) < most:
            names.add(name)
        elif name not in names:
            self._others[day, key].add(name)
        return name in names

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

    def _roll_up(self, level: Granularity, into: Granularity | None, horizon: datetime) -> None:
        size = (into or level).minutes(self._policy)
        leaving = [place for place in self._levels[level] if place[1] < floor(horizon, minutes=size)]
        for place in leaving:
            counts = self._levels[level].pop(place)
            self._cases.pop(place, None)
            if into is not None:
                whole = (place[0], floor(place[1], minutes=size))
                self._levels[into][whole] = dict(merged([self._levels[into].get(whole, {}), counts]))

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end) and hold anything."""
        return await self.slices(scope, start, end, Granularity.BUCKET)

    async def slices(
        self, scope: Scope, start: datetime, end: datetime, granularity: Granularity
    ) -> Mapping[datetime, BucketCounts]:
        """Return buckets, hours or days, each with what of it still stands in finer slices."""
        size = granularity.minutes(self._policy)
        parts: dict[datetime, list[BucketCounts]] = defaultdict(list)
        for (owner, begin), counts in self._up_to(granularity):
            whole = floor(begin, minutes=size)
            if owner == scope and start <= whole < end and counts:
                parts[whole].append(counts)
        return {begin: merged(found) for begin, found in parts.items()}

    def _up_to(self, granularity: Granularity) -> Iterator[tuple[Place, BucketCounts]]:
        size = granularity.minutes(self._policy)
        for level, slices in self._levels.items():
            if level.minutes(self._policy) <= size:
                yield from slices.items()

    async def others(self, scope: Scope, start: datetime, end: datetime) -> Mapping[str, int]:
        """Count the values that became `*other`, by key."""
        found: dict[str, set[str]] = defaultdict(set)
        for ((owner, day), key), names in self._others.items():
            if owner == scope and floor(start, minutes=_DAY) <= day < end:
                found[key] |= names
        return {key: len(names) for key, names in found.items()}

    async def late(self, start: datetime, end: datetime) -> int:
        """Count what came too late."""
        days = (day for day in self._late if floor(start, minutes=_DAY) <= day < end)
        return sum(len(self._late[day]) for day in days)

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

    async def scopes(self, granularity: Granularity = Granularity.BUCKET) -> tuple[Scope, ...]:
        """Return every scope that has a slice of this length or a shorter one."""
        found = {scope for (scope, _), _ in self._up_to(granularity)}
        return tuple(sorted(found, key=lambda scope: scope.model_dump_json()))

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


def _entry(record: Judgment | JudgeFailure) -> str:
    return entry_key(record.target, rubric_version=record.rubric_version, judge_version=record.judge.version)
