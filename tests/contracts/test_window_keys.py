"""What the real store of windows leaves in its keys: how much, how evenly, and for how long."""

from collections.abc import Sequence
from datetime import timedelta

import redis.asyncio

from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.judging.judgment import Judgment
from monitor.windows.bucket import Granularity, Scope
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied
from tests.judgments import HOUR, MINUTE, NOON, a_judgment

MANY = 3000
FIELDS_MAX = 120


def many(revision: int = 1, *, at_hours: int = 0) -> Sequence[Judgment]:
    return [
        a_judgment(f"c-{i}", revision=revision, intent=f"i{i % 7}", at=NOON + at_hours * HOUR)
        for i in range(MANY)
    ]


async def chunks(valkey: redis.asyncio.Redis) -> list[bytes]:
    return [key async for key in valkey.scan_iter(match="test:*:l:*", count=1000)]


async def test_a_remembered_contribution_costs_at_most_60_bytes(valkey: redis.asyncio.Redis) -> None:
    """The ledger is most of the memory: nine days of a thousand an hour are 216,000 of them."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply(many(), now=NOON)

    keys = await chunks(valkey)
    assert sum([await valkey.hlen(key) for key in keys]) == MANY
    assert max([await valkey.hlen(key) for key in keys]) <= FIELDS_MAX
    assert {await valkey.object("ENCODING", key) for key in keys} == {b"listpack"}
    assert sum([await valkey.memory_usage(key, samples=0) for key in keys]) <= 60 * MANY


async def test_what_is_remembered_is_found_in_a_ledger_that_has_grown(valkey: redis.asyncio.Redis) -> None:
    """A chunk that was split must be looked for where its half went."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply(many(), now=NOON)

    assert set(await windows.apply(many(), now=NOON)) == {Applied.REPEATED}
    # Another period's ledger takes them over, and the old one forgets.
    moved = await windows.apply(many(2, at_hours=80), now=NOON + 80 * HOUR)
    assert set(moved) == {Applied.SUPERSEDED}
    assert set(await windows.apply(many(1), now=NOON)) == {Applied.STALE}
    assert sum([await valkey.hlen(key) for key in await chunks(valkey)]) == MANY
    assert await windows.units() == 4 * MANY


async def test_a_period_that_is_over_leaves_nothing_of_its_ledger(valkey: redis.asyncio.Redis) -> None:
    """A replay of months takes minutes, long before any key expires."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply(many(), now=NOON)

    later = NOON + timedelta(days=14)
    await windows.apply([a_judgment("new", at=later)], now=later)

    assert [await valkey.hlen(key) for key in await chunks(valkey)] == [1]


async def test_a_backlog_is_rolled_up_a_part_at_each_call_and_counts_meanwhile(
    valkey: redis.asyncio.Redis,
) -> None:
    """After a pause of days one call must not hold up the server for all of them."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    scope = Scope.of(a_judgment())
    await windows.apply([a_judgment(f"c{i}", at=NOON + 15 * i * MINUTE) for i in range(60)], now=NOON)
    later = NOON + timedelta(days=11)

    left = []
    for _ in range(9):
        await windows.apply([a_judgment(at=later, judge_version="clock")], now=later)
        left.append(len(await windows.buckets(scope, NOON, later)))
        hours = await windows.slices(scope, NOON, later, Granularity.HOUR)
        assert len(hours) == 15
        assert sum(sum(counts.values()) for counts in hours.values()) == 60 * 15

    assert left == [52, 44, 36, 28, 20, 12, 4, 0, 0]


async def test_a_flood_of_values_costs_no_more_than_its_limit(valkey: redis.asyncio.Redis) -> None:
    """An id in the place of an intent: the names of a day stay few, and so do those told apart beyond them."""
    policy = WindowPolicy(segment_values_max=10, strata_max=10)
    windows = RedisWindows(valkey, Keys("test"), policy)
    await windows.apply([a_judgment(f"c-{i}", intent=f"id-{i}") for i in range(1000)], now=NOON)

    scope = Scope.of(a_judgment())
    [counts] = (await windows.buckets(scope, NOON, NOON + HOUR)).values()
    assert len({cell.segment for cell in counts}) == 1 + 10 + 1 + 1
    assert sum((await windows.others(scope, NOON, NOON + HOUR)).values()) == 512
    [names] = await valkey.keys("test:*:n:*")
    assert await valkey.hlen(names) < 60
