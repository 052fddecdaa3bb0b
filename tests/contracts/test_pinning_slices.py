"""A span that reaches from hours into buckets, read for a baseline, whoever keeps the windows. Both stores."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import redis.asyncio

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.detection.baseline import Baseline, BaselinePolicy
from monitor.detection.pinning import Span, overall_series, overall_slices, pinned_of
from monitor.judging.judgment import Judgment
from monitor.windows.bucket import BucketCounts, Granularity, Scope, contribution
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import WindowStore
from monitor.windows.window import Window, merged
from tests.judgments import HOUR, MINUTE, NOON, a_failure, a_judgment

DAY = timedelta(days=1)
POLICY = WindowPolicy(shards=2)
SCOPE = Scope.of(a_judgment())
START = NOON - 22 * DAY


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> WindowStore:
    if request.param == "memory":
        return MemoryWindowStore(POLICY)
    return RedisWindows(request.getfixturevalue(request.param), Keys("test", POLICY.shards), POLICY)


def judged(start: datetime, end: datetime) -> list[Judgment]:
    """Return a judgment every quarter, of one intent of two, worse on weekends."""
    quarters = round((end - start) / (15 * MINUTE))
    return [
        a_judgment(
            f"c-{at.isoformat()}",
            at=at,
            intent="returns" if number % 3 else "billing",
            rate=0.05 if number % 5 else 0.25,
            scores={"actionability": 3 if at.weekday() >= 5 else 4 + number % 2},
        )
        for number in range(quarters)
        for at in (start + number * 15 * MINUTE,)
    ]


def baseline(slices: dict[datetime, BucketCounts], span: Span) -> Baseline:
    series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
    return pinned_of(SCOPE, series, release="r", at=NOON, by="jo", policy=BaselinePolicy()).baseline


async def lived(store: WindowStore) -> list[Judgment]:
    """Let three weeks be judged as time goes by, so that buckets leave on the way."""
    records = judged(START, NOON)
    for begin in range(0, len(records), 8):
        batch = records[begin : begin + 8]
        await store.apply(batch, now=batch[-1].observed_at)
    # One call rolls up eight slices of a shard; the clock of another scope's failures goes on.
    for number in range(12):
        await store.apply([a_failure(f"tick-{number}", at=NOON, judge_version="clock")], now=NOON)
    return records


async def test_three_weeks_of_hours_and_buckets_are_the_baseline_of_all_that_was_judged(
    store: WindowStore,
) -> None:
    """To the last unit: the same as from the judgments themselves, and it knows the weekend."""
    records = await lived(store)
    span = Span(NOON - 21 * DAY, NOON, Granularity.HOUR, 60)
    slices = await overall_slices(store, SCOPE, span)

    assert min(await store.buckets(SCOPE, START, NOON)) == NOON - 9 * DAY
    by_quarter: dict[datetime, list[BucketCounts]] = {}
    for record in records:
        added = contribution(record, POLICY)
        if added is not None and record.observed_at >= span.start:
            by_quarter.setdefault(added.bucket, []).append(dict.fromkeys(added.cells, 1))
    raw = {at: merged(found) for at, found in by_quarter.items()}
    exact = baseline(raw, Span(span.start, span.end, Granularity.BUCKET, 15))
    found = baseline(slices, span)
    assert found.shares == exact.shares
    for name, known in exact.dimensions.items():
        means = {stratum: (one.mean, one.variance, one.n) for stratum, one in known.strata.items()}
        strata = found.dimensions[name].strata
        assert {stratum: (one.mean, one.variance, one.n) for stratum, one in strata.items()} == means
    assert len(found.dimensions["actionability"].profile) == 168


async def test_an_hour_of_which_half_has_left_is_read_whole(store: WindowStore) -> None:
    """Eleven scopes share a shard, and a call takes eight slices: hours stand in both levels in between."""
    crowd = [
        a_judgment(f"c{number}-{scope}", at=NOON + number * 15 * MINUTE, judge_version=f"j{scope}")
        for number in range(4)
        for scope in range(11)
    ]
    await store.apply(crowd, now=NOON + HOUR)
    whole = Span(NOON, NOON + 2 * HOUR, Granularity.HOUR, 60)
    before = await overall_slices(store, SCOPE, whole)

    left = []
    for number in range(12):
        now = NOON + 9 * DAY + HOUR
        await store.apply([a_failure(f"tick-{number}", at=now, judge_version="clock")], now=now)
        left.append(len(await store.buckets(SCOPE, NOON, NOON + HOUR)))
        assert await overall_slices(store, SCOPE, whole) == before

    assert left[-1] == 0
    if isinstance(store, RedisWindows):
        assert any(0 < buckets < 4 for buckets in left)


class Overtaken(RedisWindows):
    """A reader who is overtaken by a worker's roll-up, before it reads counts or between buckets and hours."""

    def __init__(self, client: redis.asyncio.Redis, *, halfway: bool) -> None:
        super().__init__(client, Keys("test"), WindowPolicy())
        self.readings, self._halfway = 0, halfway

    async def roll_up(self) -> None:
        """Let a worker's clock go on; a call rolls up eight slices."""
        now = NOON + 9 * DAY + HOUR
        await self.apply([a_failure(f"tick-{self.readings}", at=now, judge_version="clock")], now=now)

    async def _counts(
        self, scope: Scope, slices: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], BucketCounts]:
        self.readings += 1
        if self.readings > 1:
            return await super()._counts(scope, slices)
        early = [one for one in slices if self._halfway and one[0] == "b"]
        counted = await super()._counts(scope, early)
        await self.roll_up()
        return counted | await super()._counts(scope, [one for one in slices if one not in early])


@pytest.mark.parametrize("halfway", [False, True])
async def test_buckets_that_leave_while_they_are_read_are_counted_once(
    valkey: redis.asyncio.Redis, halfway: bool
) -> None:
    """Workers go on while people pin: what is rolled up meanwhile is neither lost nor doubled."""
    reader = Overtaken(valkey, halfway=halfway)
    await reader.start()
    crowd = [
        a_judgment(f"c{number}-{scope}", at=NOON + number * 15 * MINUTE, judge_version=f"j{scope}")
        for number in range(4)
        for scope in range(1, 6)
    ]
    await reader.apply(crowd, now=NOON + HOUR)
    if halfway:
        # The hour is there already when it is looked for.
        await reader.roll_up()

    (hour,) = (await reader.slices(SCOPE, NOON, NOON + HOUR, Granularity.HOUR)).values()

    assert Window(NOON, NOON + HOUR, hour).units == 4
    assert reader.readings == 2
