"""What every store of splices must do: the twin and the real thing alike."""

import pytest

from monitor.adapters.memory_splices import MemorySplices
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_splices import RedisSplices
from monitor.judging.drift import difference
from monitor.review.migration import Offset, Splice
from tests.events import NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

Store = MemorySplices | RedisSplices


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemorySplices()
    return RedisSplices(request.getfixturevalue("valkey"), Keys("test"))


def a_splice(*, pairs: int = 20) -> Splice:
    offset = Offset(points=difference([-1.0, 0.0, 0.0]), pass_at_4=difference([0.0, 0.0, 0.0]))
    return Splice(
        old_judge="j1",
        old_rubric="r1",
        new_judge="j2",
        new_rubric="r2",
        at=NOON,
        pairs=pairs,
        rejudged=5,
        offsets={"safety": offset},
    )


class TestSplices:
    async def test_a_splice_comes_back_for_its_judges_in_their_order(self, store: Store) -> None:
        """The way back has another sign."""
        await store.put(a_splice())

        assert await store.get(old_judge="j1", new_judge="j2") == a_splice()
        assert await store.get(old_judge="j2", new_judge="j1") is None

    async def test_a_newer_one_takes_its_place(self, store: Store) -> None:
        await store.put(a_splice())
        await store.put(a_splice(pairs=200))

        assert await store.get(old_judge="j1", new_judge="j2") == a_splice(pairs=200)
