"""What every window store must do: the twin and the real thing alike."""

import random  # noqa: TID251 - drawn from a seed
from collections.abc import Callable
from datetime import timedelta

import pytest
import redis.asyncio

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import CALL_MAX, RedisWindows
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import CRITICAL, FAILED, OVERALL, Cell, Scope
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied, WindowStore
from tests.judgments import DIMENSIONS, HOUR, MINUTE, NOON, a_failure, a_judgment
from tests.servers.valkey import absent_valkey

SCOPE = Scope.of(a_judgment())
POLICY = WindowPolicy(shards=3)
DAY = timedelta(days=1)


@pytest.fixture(params=["memory", "valkey", "valkey_cluster"])
def store(request: pytest.FixtureRequest) -> WindowStore:
    if request.param == "memory":
        return MemoryWindowStore(POLICY)
    return RedisWindows(request.getfixturevalue(request.param), Keys("test", POLICY.shards), POLICY)


async def total(store: WindowStore, wanted: Callable[[Cell], bool] = lambda _: True) -> int:
    buckets = await store.buckets(SCOPE, NOON - 30 * DAY, NOON + 30 * DAY)
    return sum(n for counts in buckets.values() for cell, n in counts.items() if wanted(cell))


class TestWindowStore:
    async def test_a_judgment_is_one_unit_in_each_dimension(self, store: WindowStore) -> None:
        """The double-count check compares this figure with the judgments."""
        assert await store.apply([a_judgment()], now=NOON) == (Applied.NEW,)

        assert await store.units() == len(DIMENSIONS)
        buckets = await store.buckets(SCOPE, NOON, NOON + HOUR)
        assert list(buckets) == [NOON]
        assert (
            buckets[NOON][Cell("safety", "prompt_hash=aa11", "returns,unknown,unknown,unknown", "5", "1")]
            == 1
        )
        assert await store.scopes() == (SCOPE,)

    async def test_a_judgment_twice_counts_once(self, store: WindowStore) -> None:
        """Every hop is at least once."""
        await store.apply([a_judgment(), a_judgment()], now=NOON)

        assert await store.apply([a_judgment()], now=NOON) == (Applied.REPEATED,)
        assert await store.units() == len(DIMENSIONS)

    async def test_a_later_revision_takes_the_earlier_ones_place(self, store: WindowStore) -> None:
        """A resumed conversation is one unit, in the bucket of its new end."""
        await store.apply([a_judgment(scores={"safety": 1})], now=NOON)
        later = a_judgment(revision=2, at=NOON + HOUR)

        assert await store.apply([later], now=NOON + HOUR) == (Applied.SUPERSEDED,)
        assert await store.units() == len(DIMENSIONS)
        assert list(await store.buckets(SCOPE, NOON, NOON + 2 * HOUR)) == [NOON + HOUR]
        assert await store.worst(SCOPE, NOON, NOON + 2 * HOUR) == ()

    async def test_an_earlier_revision_that_comes_late_changes_nothing(self, store: WindowStore) -> None:
        """Partitions drift apart; order of arrival is no order of truth."""
        await store.apply([a_judgment(revision=2, scores={"safety": 3})], now=NOON)

        assert await store.apply([a_judgment(revision=1)], now=NOON) == (Applied.STALE,)
        assert await total(store, lambda cell: cell.dimension == "safety" and cell.mark == "5") == 0

    async def test_a_judgment_takes_the_place_of_its_failure_and_not_the_reverse(
        self, store: WindowStore
    ) -> None:
        """A judge that recovered has the last word; one that fails afterwards takes nothing away."""
        await store.apply([a_failure()], now=NOON)
        assert await total(store, lambda cell: cell.mark == FAILED) == 3
        assert await store.units() == 0

        assert await store.apply([a_judgment()], now=NOON) == (Applied.SUPERSEDED,)
        assert await store.apply([a_failure()], now=NOON) == (Applied.STALE,)
        assert await total(store, lambda cell: cell.mark == FAILED) == 0
        assert await store.units() == len(DIMENSIONS)

    async def test_what_is_older_than_the_retention_is_late(self, store: WindowStore) -> None:
        """A very late event opens no bucket that everybody has forgotten."""
        old = a_judgment(at=NOON - 10 * DAY)

        assert await store.apply([old], now=NOON) == (Applied.LATE,)
        assert await store.units() == 0

    async def test_a_replay_of_old_traffic_is_not_late_by_its_own_clock(self, store: WindowStore) -> None:
        """The deployment's clock decides, never the server's."""
        old = NOON - 2000 * DAY

        assert await store.apply([a_judgment(at=old)], now=old + MINUTE) == (Applied.NEW,)
        assert list(await store.buckets(SCOPE, old, old + HOUR)) == [old]

    async def test_buckets_older_than_the_retention_go_when_a_new_one_begins(
        self, store: WindowStore
    ) -> None:
        """Kept means kept by the deployment's clock, in a replay of months too."""
        await store.apply([a_judgment("old", prompt_hash="aa11")], now=NOON)
        later = NOON + 10 * DAY

        # Each shard forgets by itself, when it opens a bucket.
        await store.apply([a_judgment(f"new-{i}", at=later) for i in range(20)], now=later)

        assert list(await store.buckets(SCOPE, NOON - DAY, later + DAY)) == [later]

    async def test_a_revision_whose_old_bucket_is_gone_leaves_no_negative_count(
        self, store: WindowStore
    ) -> None:
        """Taking out what is not there any more would make a count of minus one."""
        later = NOON + 10 * DAY
        await store.apply([a_judgment()], now=NOON)
        await store.apply([a_judgment(f"other-{i}", at=later) for i in range(20)], now=later)

        await store.apply([a_judgment(revision=2, at=later)], now=later)

        assert await total(store, lambda cell: cell.segment == OVERALL and cell.dimension == CRITICAL) == 21
        assert await store.units() == 21 * len(DIMENSIONS)

    async def test_a_partial_target_stands_for_nobody(self, store: WindowStore) -> None:
        """It was promoted in its middle: no rate, no weight, no place in a mean."""
        assert await store.apply([a_judgment(rate=None)], now=NOON) == (Applied.IGNORED,)
        assert await store.scopes() == ()

    async def test_turns_and_conversations_have_series_of_their_own(self, store: WindowStore) -> None:
        """A conversation of ten turns is one unit, not eleven."""
        await store.apply([a_judgment(), a_judgment(kind=TargetKind.TURN)], now=NOON)

        assert len(await store.scopes()) == 2
        assert await store.units() == len(DIMENSIONS)

    async def test_a_bucket_that_changed_is_read_again(self, store: WindowStore) -> None:
        """A reader remembers buckets; late arrivals must reach it all the same."""
        await store.apply([a_judgment("a")], now=NOON)
        assert await total(store, lambda cell: cell.dimension == CRITICAL) == 3

        await store.apply([a_judgment("b")], now=NOON)

        assert await total(store, lambda cell: cell.dimension == CRITICAL) == 6

    async def test_only_buckets_that_begin_in_the_interval_come_back(self, store: WindowStore) -> None:
        """A window that ends now must not see the bucket that begins now."""
        await store.apply([a_judgment(str(i), at=NOON + 15 * i * MINUTE) for i in range(4)], now=NOON)

        found = await store.buckets(SCOPE, NOON + 15 * MINUTE, NOON + 45 * MINUTE)

        assert sorted(found) == [NOON + 15 * MINUTE, NOON + 30 * MINUTE]
        assert await store.buckets(SCOPE, NOON, NOON) == {}

    async def test_the_worst_cases_of_each_dimension_are_kept_up_to_the_limit(
        self, store: WindowStore
    ) -> None:
        """One dimension's flood must not push the others' evidence out."""
        records = [a_judgment(f"p-{i}", scores={"policy_adherence": 1 + i % 3}) for i in range(20)]
        await store.apply([*records, a_judgment("s", scores={"safety": 3})], now=NOON)

        policy = await store.worst(SCOPE, NOON, NOON + HOUR, dimension="policy_adherence")
        everything = await store.worst(SCOPE, NOON, NOON + HOUR)

        assert [case.score for case in policy] == [1] * POLICY.cases_per_bucket
        assert [case.dimension for case in everything].count("safety") == 1

    async def test_a_batch_of_many_keeps_the_order_of_its_answers(self, store: WindowStore) -> None:
        """Shards and calls of a hundred are the adapter's business."""
        records = [a_judgment(f"c-{i}", rate=None if i % 7 == 0 else 0.05) for i in range(3 * CALL_MAX + 5)]

        answers = await store.apply(records, now=NOON)

        assert [answer is Applied.IGNORED for answer in answers] == [i % 7 == 0 for i in range(len(records))]
        assert await store.units() == len(DIMENSIONS) * sum(i % 7 != 0 for i in range(len(records)))

    async def test_values_with_separators_stay_apart(self, store: WindowStore) -> None:
        """An intent may hold any sign; none of them may break a cell."""
        intents = ["a|b", "a,b", "a=b", "a:b", "a%7Cb", "ü\n", "*", "x" * 128, "x" * 127 + "y"]

        await store.apply([a_judgment(f"c-{i}", intent=v) for i, v in enumerate(intents)], now=NOON)

        [counts] = (await store.buckets(SCOPE, NOON, NOON + HOUR)).values()
        segments = {cell.segment for cell in counts if cell.segment.startswith("intent=")}
        assert len(segments) == len(intents)


async def test_lost_functions_are_loaded_again(valkey: redis.asyncio.Redis) -> None:
    """A new primary has the data and not the functions."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())

    assert await windows.apply([a_judgment()], now=NOON) == (Applied.NEW,)


async def test_a_server_that_lost_its_data_is_not_read_from_memory(valkey: redis.asyncio.Redis) -> None:
    """A version that begins anew must not look like the one that a reader remembers."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply([a_judgment("a", scores={"safety": 1})], now=NOON)
    await windows.buckets(SCOPE, NOON, NOON + HOUR)
    await valkey.flushall()

    await windows.apply([a_judgment("b")], now=NOON)

    [counts] = (await windows.buckets(SCOPE, NOON, NOON + HOUR)).values()
    assert not [cell for cell in counts if cell.dimension == "safety" and cell.mark == "1"]


async def test_everything_that_is_written_expires(valkey: redis.asyncio.Redis) -> None:
    """A key without an end is a leak; the margin keeps the server's clock out of the decision.

    Words and the ledger go with the retention. Counts wait for the next bucket to be rolled up, so they
    outlive a pause; the list of scopes outlives the days.
    """
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply([a_judgment(scores={"safety": 1})], now=NOON)

    lives = {key.decode(): await valkey.ttl(key) for key in await valkey.keys("test:*")}
    kinds = {key.removeprefix("test:{0}:w2:").partition(":")[0]: life for key, life in lives.items()}

    assert sorted(kinds) == ["b", "l", "n", "open", "q", "scopes", "w"]
    assert {kind for kind, life in kinds.items() if 9 * 86_400 < life <= 10 * 86_400} == {"l", "w"}
    assert {kind for kind, life in kinds.items() if 90 * 86_400 < life <= 91 * 86_400} == {"b", "n", "q"}
    assert {kind for kind, life in kinds.items() if 730 * 86_400 < life <= 731 * 86_400} == {"open", "scopes"}


async def test_an_absent_server_is_said_in_our_words() -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = absent_valkey()
    windows = RedisWindows(client, Keys("test"), WindowPolicy())
    with pytest.raises(StoreUnavailable):
        await windows.scopes()
    with pytest.raises(StoreUnavailable):
        await windows.apply([a_judgment()], now=NOON)
    await client.aclose()


async def test_the_twin_and_the_real_thing_agree_on_a_long_story(valkey: redis.asyncio.Redis) -> None:
    """Scenarios run on the twin; they are worth what this agreement is worth."""
    twin, real = MemoryWindowStore(POLICY), RedisWindows(valkey, Keys("test", POLICY.shards), POLICY)
    chance = random.Random(20260310)  # noqa: S311 - a story, not a secret
    for step in range(40):
        now = NOON + step * 15 * MINUTE
        batch = [
            (a_failure if chance.random() < 0.2 else a_judgment)(
                f"c-{chance.randrange(60)}",
                at=now - chance.randrange(90) * MINUTE,
                revision=chance.randrange(1, 4),
                intent=chance.choice(["returns", "billing", "a|b"]),
                rate=chance.choice([1.0, 0.05, None]),
            )
            for _ in range(25)
        ]
        assert await twin.apply(batch, now=now) == await real.apply(batch, now=now)

    everything = (NOON - DAY, NOON + DAY)
    assert await real.buckets(SCOPE, *everything) == await twin.buckets(SCOPE, *everything)
    assert await real.worst(SCOPE, *everything) == await twin.worst(SCOPE, *everything)
    assert await real.units() == await twin.units()
    assert await real.scopes() == await twin.scopes()


async def test_a_bucket_that_was_lost_gives_no_negative_count(valkey: redis.asyncio.Redis) -> None:
    """An eviction took the bucket and left the ledger: there is nothing to take out."""
    windows = RedisWindows(valkey, Keys("test"), WindowPolicy())
    await windows.apply([a_judgment()], now=NOON)
    await valkey.delete(*[key for key in await valkey.keys("test:*") if b":l" not in key])

    again = await windows.apply([a_judgment(revision=2, at=NOON + HOUR)], now=NOON + HOUR)

    assert again == (Applied.SUPERSEDED,)

    assert list(await windows.buckets(SCOPE, NOON, NOON + 2 * HOUR)) == [NOON + HOUR]
