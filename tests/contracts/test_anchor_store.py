"""What every store of anchors' scores must do: the twin and the real thing alike."""

import pytest

from monitor.adapters.memory_anchors import MemoryAnchors
from monitor.adapters.redis_anchors import RedisAnchors
from monitor.adapters.redis_keys import Keys
from monitor.judging.read_once import ReadOnce
from tests.anchors import JUDGE, a_score
from tests.events import HOUR, NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

Store = MemoryAnchors | RedisAnchors
OTHER = {"judge_version": "j", "rubric_version": "r2"}


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryAnchors()
    return RedisAnchors(request.getfixturevalue("valkey"), Keys("test"))


class TestAnchorStore:
    async def test_the_first_score_is_pinned_and_a_later_one_is_not(self, store: Store) -> None:
        """What an anchor is held against must not move with what is held against it."""
        assert await store.add(a_score(number=7), **JUDGE)
        assert not await store.add(a_score(number=8, scores={"safety": 1}), **JUDGE)

        assert await store.pins(**JUDGE) == {"a0": a_score(number=7)}
        assert await store.scores(NOON, NOON + HOUR, **JUDGE) == [a_score(number=8, scores={"safety": 1})]
        assert await store.last_rounds(**JUDGE) == {"a0": 8}

    async def test_a_score_counts_once_however_often_it_comes(self, store: Store) -> None:
        """A round that two workers do, or one does again after a lost reply."""
        for number in (7, 7, 8, 8):
            await store.add(a_score(number=number), **JUDGE)

        assert await store.scores(NOON, NOON + HOUR, **JUDGE) == [a_score(number=8)]

    async def test_only_the_time_asked_for_is_read_and_in_its_order(self, store: Store) -> None:
        await store.add(a_score(number=0, at=NOON), **JUDGE)
        for number in (30, 3, 15):
            await store.add(a_score(number=number, at=NOON + number * HOUR), **JUDGE)

        found = await store.scores(NOON, NOON + 30 * HOUR, **JUDGE)

        assert [one.round for one in found] == [3, 15]

    async def test_another_judge_or_rubric_pins_anew(self, store: Store) -> None:
        """Its scores are no repetition of another's."""
        await store.add(a_score(number=7), **JUDGE)

        assert await store.add(a_score(number=8), **OTHER)
        assert await store.pins(**JUDGE) != await store.pins(**OTHER)

    async def test_new_pins_take_the_place_of_all_old_ones(self, store: Store) -> None:
        for anchor in ("a0", "a1"):
            await store.add(a_score(anchor, 7), **JUDGE)
        await store.repin([a_score("a0", 9)], **JUDGE)

        assert await store.pins(**JUDGE) == {"a0": a_score("a0", 9)}

    async def test_one_worker_gets_a_round(self, store: Store) -> None:
        """Each would pay for it."""
        taken = [await store.claim(7, **JUDGE) for _ in range(3)]

        assert taken == [True, False, False]
        assert await store.claim(7, **OTHER)
        assert await store.claim(8, **JUDGE)

    async def test_reading_once_says_what_the_store_says_and_knows_nothing_that_comes_later(
        self, store: Store
    ) -> None:
        """What two scopes are told in one evaluation must not differ, nor hang on which asked for more."""
        for number in range(0, 100, 3):
            await store.add(a_score(number=number, at=NOON + number * HOUR), **JUDGE)
        once = ReadOnce(store)

        for first, last in ((30, 54), (29, 31), (0, 0), (0, 100), (36, 60)):
            start, end = NOON + first * HOUR, NOON + last * HOUR
            assert await once.scores(start, end, **JUDGE) == await store.scores(start, end, **JUDGE)
        assert await once.pins(**JUDGE) == await store.pins(**JUDGE)
        assert await once.scores(NOON, NOON + HOUR, **OTHER) == []

        await store.add(a_score(number=31, at=NOON + 31 * HOUR), **JUDGE)
        assert [one.round for one in await once.scores(NOON + 29 * HOUR, NOON + 32 * HOUR, **JUDGE)] == [30]
