"""What every store of judges' answers must do: the twin and the real thing alike."""

import pytest
import redis.asyncio

from monitor.adapters.memory import MemoryAnswers
from monitor.adapters.redis_answers import RedisAnswers
from monitor.adapters.redis_keys import Keys
from tests.events import a_record
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> MemoryAnswers | RedisAnswers:
    if request.param == "memory":
        return MemoryAnswers()
    return RedisAnswers(request.getfixturevalue("valkey"), Keys("test"), keep_days=9)


class TestAnswers:
    @pytest.mark.parametrize("fails", [False, True])
    async def test_an_answer_comes_back_as_it_was_given(
        self, store: MemoryAnswers | RedisAnswers, fails: bool
    ) -> None:
        """It is published in the place of a new one; a difference would be a second judgment of one id."""
        record = a_record("c1", "e1", fails=fails)
        await store.put(record)

        assert await store.get(record.judgment_id) == record

    async def test_what_was_not_judged_has_no_answer(self, store: MemoryAnswers | RedisAnswers) -> None:
        """The executor asks the judge on this."""
        assert await store.get("unheard-of") is None

    async def test_an_answer_put_twice_is_one(self, store: MemoryAnswers | RedisAnswers) -> None:
        """Every hop is at least once."""
        record = a_record("c1", "e1")
        await store.put(record)
        await store.put(record)

        assert await store.get(record.judgment_id) == record

    async def test_forgetting_erases_the_answer_and_no_other(
        self, store: MemoryAnswers | RedisAnswers
    ) -> None:
        """A judge quotes what a person wrote."""
        gone, kept = a_record("c1"), a_record("c2")
        await store.put(gone)
        await store.put(kept)

        await store.forget([gone.judgment_id, "unheard-of"])

        assert await store.get(gone.judgment_id) is None
        assert await store.get(kept.judgment_id) == kept


async def test_answers_do_not_stay_for_ever(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """They hold words of users, and fill the memory."""
    record = a_record("c1")
    await RedisAnswers(valkey, Keys("test"), keep_days=9).put(record)

    [key] = [key async for key in valkey.scan_iter()]
    assert 0 < await valkey.ttl(key) <= 9 * 86_400
