"""What leaves the buckets is in the hours, then in the days; what has too many values is `*other`. Both stores."""

import random  # noqa: TID251 - drawn from a seed
from datetime import datetime, timedelta

import pytest
import redis.asyncio

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.intake.moments import floor
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import (
    CRITICAL,
    OTHER,
    OVERALL,
    BucketCounts,
    Granularity,
    Scope,
    contribution,
)
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied, WindowStore
from monitor.windows.window import merged
from tests.judgments import HOUR, MINUTE, NOON, a_failure, a_judgment

SCOPE = Scope.of(a_judgment())
DAY = timedelta(days=1)
SHORT = WindowPolicy(retention_days=1, hourly_days=3, daily_days=6, segment_values_max=2, strata_max=3)
EVERYTHING = (NOON - 30 * DAY, NOON + 300 * DAY)


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> WindowStore:
    if request.param == "memory":
        return MemoryWindowStore(SHORT)
    return RedisWindows(request.getfixturevalue(request.param), Keys("test"), SHORT)


async def tick(store: WindowStore, now: datetime, times: int = 1) -> None:
    """Let time pass; the one who makes it pass is another scope's failure."""
    for number in range(times):
        passing = a_failure(f"tick-{now}-{number}", at=now, judge_version="clock")
        await store.apply([passing], now=now)


async def units(store: WindowStore, granularity: Granularity) -> dict[datetime, int]:
    found = await store.slices(SCOPE, *EVERYTHING, granularity)
    return {
        begin: sum(n for cell, n in counts.items() if (cell.dimension, cell.segment) == (CRITICAL, OVERALL))
        for begin, counts in sorted(found.items())
    }


class TestSlices:
    async def test_a_bucket_that_leaves_is_in_its_hour_and_an_hour_in_its_day(
        self, store: WindowStore
    ) -> None:
        """Rolled up without loss; at each time every unit is counted once at each granularity."""
        await store.apply([a_judgment(f"c{i}", at=NOON + i * 15 * MINUTE) for i in range(6)], now=NOON + HOUR)
        hours = {NOON: 4, NOON + HOUR: 2}
        midnight = floor(NOON, minutes=1440)
        assert len(await units(store, Granularity.BUCKET)) == 6
        assert await units(store, Granularity.HOUR) == hours

        await tick(store, NOON + DAY + HOUR)
        assert list(await units(store, Granularity.BUCKET)) == [NOON + HOUR, NOON + HOUR + 15 * MINUTE]
        assert await units(store, Granularity.HOUR) == hours
        assert await units(store, Granularity.DAY) == {midnight: 6}

        await tick(store, NOON + 4 * DAY)
        assert await units(store, Granularity.BUCKET) == {}
        assert await units(store, Granularity.HOUR) == {}
        assert await units(store, Granularity.DAY) == {midnight: 6}

        await tick(store, NOON + 7 * DAY)
        assert await units(store, Granularity.DAY) == {}
        assert [scope.judge_version for scope in await store.scopes(Granularity.DAY)] == ["clock"]

    async def test_scopes_are_those_of_a_granularity(self, store: WindowStore) -> None:
        """An evaluator must not look at a judge that has been gone for a year."""
        await store.apply([a_judgment()], now=NOON)
        await tick(store, NOON + 2 * DAY)

        assert [scope.judge_version for scope in await store.scopes()] == ["clock"]
        assert [scope.judge_version for scope in await store.scopes(Granularity.HOUR)] == ["clock", "j1"]
        assert await store.begins() == (NOON + 2 * DAY,)

    async def test_what_supersedes_a_rolled_up_contribution_is_late_and_changes_nothing(
        self, store: WindowStore
    ) -> None:
        """Its old contribution cannot be taken out any more, and it would count twice."""
        await store.apply([a_judgment(at=NOON), a_judgment("c2", at=NOON)], now=NOON)
        await tick(store, NOON + DAY + HOUR)
        later = NOON + DAY + HOUR

        assert await store.apply([a_judgment(revision=2, at=later)], now=later) == (Applied.LATE,)
        assert await units(store, Granularity.DAY) == {floor(NOON, minutes=1440): 2}

    async def test_what_is_late_is_counted_once_on_the_day_it_came(self, store: WindowStore) -> None:
        """It is in no window, so that its number is all there is of it; hops repeat."""
        old = [a_judgment(f"c{i}", at=NOON - 3 * DAY) for i in range(20)]

        for _ in range(2):
            await store.apply([*old, a_judgment("new")], now=NOON)
        await store.apply([a_judgment("more", at=NOON - 3 * DAY)], now=NOON + DAY)
        # What is in its window already is no news when it comes again.
        assert await store.apply([a_judgment("new")], now=NOON + DAY + HOUR) == (Applied.REPEATED,)

        assert await store.late(NOON - HOUR, NOON) == 20
        assert await store.late(NOON - HOUR, NOON + DAY) == 21
        assert await store.late(NOON - 4 * DAY, NOON - DAY) == 0

    async def test_a_clock_that_went_back_opens_no_bucket_of_a_rolled_up_hour(
        self, store: WindowStore
    ) -> None:
        """Two workers' clocks differ; an hour that is closed stays closed for both."""
        await store.apply([a_judgment(at=NOON)], now=NOON)
        await tick(store, NOON + DAY + HOUR)

        back = NOON + HOUR
        assert await store.apply([a_judgment("c2", at=NOON + 15 * MINUTE)], now=back) == (Applied.LATE,)
        assert await store.apply([a_judgment(revision=2, at=back)], now=back) == (Applied.LATE,)
        assert await store.apply([a_judgment("c3", at=back)], now=back) == (Applied.NEW,)
        assert await units(store, Granularity.HOUR) == {NOON: 1, NOON + HOUR: 1}

    async def test_only_slices_that_begin_in_the_interval_come_back(self, store: WindowStore) -> None:
        """The day that begins at the end belongs to the next window."""
        await store.apply([a_judgment(f"c{i}", at=NOON + i * HOUR) for i in range(4)], now=NOON + 3 * HOUR)

        found = await store.slices(SCOPE, NOON + 30 * MINUTE, NOON + 3 * HOUR, Granularity.HOUR)

        assert sorted(found) == [NOON + HOUR, NOON + 2 * HOUR]
        assert await store.slices(SCOPE, NOON, NOON, Granularity.DAY) == {}
        assert await store.slices(SCOPE, NOON, NOON + HOUR, Granularity.DAY) == {}


class TestOther:
    async def test_the_first_values_of_a_key_are_kept_and_the_rest_are_other(
        self, store: WindowStore
    ) -> None:
        """A tenant in the intent field must not take the store's memory."""
        await store.apply([a_judgment(f"c{i}", intent=f"i{i % 5}") for i in range(10)], now=NOON)

        [counts] = (await store.buckets(SCOPE, NOON, NOON + HOUR)).values()
        by_segment, by_stratum = shares(counts)
        assert by_segment == {
            OVERALL: 10,
            "intent=i0": 2,
            "intent=i1": 2,
            f"intent={OTHER}": 6,
            "prompt_hash=aa11": 10,
        }
        assert by_stratum == {"i0": 2, "i1": 2, "i2": 2, OTHER: 4}
        assert await store.others(SCOPE, NOON, NOON + HOUR) == {"intent": 3, "strata": 2}

    async def test_a_revision_takes_its_contribution_out_of_other(self, store: WindowStore) -> None:
        """It went in there, whatever its own name is; and a value that has a place keeps it."""
        await store.apply([a_judgment(f"c{i}", intent=f"i{i}") for i in range(5)], now=NOON)

        again = [a_judgment("c4", intent="i4", revision=2), a_judgment("c3", intent="i0", revision=2)]
        assert await store.apply(again, now=NOON) == (Applied.SUPERSEDED, Applied.SUPERSEDED)

        [counts] = (await store.buckets(SCOPE, NOON, NOON + HOUR)).values()
        by_segment, by_stratum = shares(counts)
        assert by_segment["intent=i0"] == 2
        assert by_segment[f"intent={OTHER}"] == 2
        assert by_stratum == {"i0": 2, "i1": 1, "i2": 1, OTHER: 1}

    async def test_the_places_are_given_by_the_day(self, store: WindowStore) -> None:
        """Yesterday's flood must not hide today's values; hours and days of one day share its names."""
        await store.apply([a_judgment(f"c{i}", intent=f"i{i}") for i in range(5)], now=NOON)
        later = NOON + DAY
        await store.apply([a_judgment("d", intent="i4", at=later)], now=later)

        [counts] = (await store.buckets(SCOPE, later, later + HOUR)).values()
        assert "intent=i4" in shares(counts)[0]
        assert await store.others(SCOPE, later, later + HOUR) == {}

    async def test_a_repeated_or_late_judgment_takes_no_place(self, store: WindowStore) -> None:
        """What is not entered has no name to keep."""
        await store.apply([a_judgment("c1", intent="i1", revision=2)], now=NOON)
        await store.apply(
            [a_judgment("c1", intent="i8"), a_judgment("c1", intent="i9", revision=2)], now=NOON
        )
        await store.apply([a_judgment("c2", intent="i2")], now=NOON)

        [counts] = (await store.buckets(SCOPE, NOON, NOON + HOUR)).values()
        assert {"intent=i1", "intent=i2"} <= shares(counts)[0].keys()


def shares(counts: BucketCounts) -> tuple[dict[str, int], dict[str, int]]:
    """Count units by segment, and those of the overall series by the intent of their stratum."""
    by_segment: dict[str, int] = {}
    by_stratum: dict[str, int] = {}
    for cell, n in counts.items():
        if cell.dimension == CRITICAL:
            by_segment[cell.segment] = by_segment.get(cell.segment, 0) + n
            if cell.segment == OVERALL:
                intent, *_ = cell.stratum.split(",")
                by_stratum[intent] = by_stratum.get(intent, 0) + n
    return by_segment, by_stratum


@pytest.mark.parametrize("seed", range(6))
async def test_the_sum_of_the_finer_is_the_coarser_whatever_comes_when(
    valkey: redis.asyncio.Redis, seed: int
) -> None:
    """A census by the answers: new is one more, superseded takes the place of the one before; both stores alike."""
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret
    policy = SHORT.model_copy(update={"segment_values_max": 200, "daily_days": 400})
    twin, real = MemoryWindowStore(policy), RedisWindows(valkey, Keys("test"), policy)
    now, census, seen = NOON, dict[tuple[str, int], Judgment | JudgeFailure](), dict[str, int]()
    said = set[Applied]()
    for _ in range(40):
        # Time jumps by minutes, hours or days, and sometimes a worker's clock is behind.
        now += chance.choice([20 * MINUTE, HOUR, 7 * HOUR, DAY, 5 * DAY, -HOUR])
        batch = [a_record(chance, now) for _ in range(12)]
        answers = await real.apply(batch, now=now)
        assert await twin.apply(batch, now=now) == answers
        said |= set(answers)
        # One call rolls up eight slices of a kind, the twin all of them.
        await tick(twin, now)
        await tick(real, now, times=6)
        for record, answer in zip(batch, answers, strict=True):
            name = record.target.conversation_id
            # What was forgotten with its period is a conversation of its own when it comes again.
            seen[name] = seen.get(name, 0) + (answer is Applied.NEW)
            if answer in {Applied.NEW, Applied.SUPERSEDED}:
                census[name, seen[name]] = record
    for granularity in (Granularity.HOUR, Granularity.DAY):
        found = await real.slices(SCOPE, *EVERYTHING, granularity)
        assert found == await twin.slices(SCOPE, *EVERYTHING, granularity)
    days = merged((await real.slices(SCOPE, *EVERYTHING, Granularity.DAY)).values())
    added = [contribution(record, policy) for record in census.values()]
    assert days == merged(dict.fromkeys(one.cells, 1) for one in added if one is not None)
    assert {Applied.LATE, Applied.SUPERSEDED, Applied.STALE} <= said


def a_record(chance: random.Random, now: datetime) -> Judgment | JudgeFailure:
    """Draw a record of a conversation of this half day, or of one long past."""
    half_day = int(now.timestamp()) // 43_200 - chance.choice([0, 0, 0, 1, 2])
    make = a_failure if chance.random() < 0.2 else a_judgment
    return make(
        f"c-{half_day}-{chance.randrange(12)}",
        at=now - chance.choice([0, 10, 50, 300, 1500]) * MINUTE,
        revision=chance.randrange(1, 4),
        intent=chance.choice(["returns", "billing", "a|b"]),
        rate=chance.choice([1.0, 0.05]),
    )
