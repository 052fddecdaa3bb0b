"""What every store of awaited units must do: the twin and the real thing alike."""

import pytest

from monitor.adapters.memory_awaited import MemoryAwaited
from monitor.adapters.redis_awaited import RedisAwaited
from monitor.adapters.redis_keys import Keys
from monitor.detection.settling import Awaited, AwaitedStore, Group
from tests.judgments import HOUR, NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

BILLING = Group("bot", "production", None, "billing,web")
RETURNS = Group("bot", "production", "b", "returns,web")


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> AwaitedStore:
    if request.param == "memory":
        return MemoryAwaited()
    return RedisAwaited(request.getfixturevalue("valkey"), Keys("test"))


class TestAwaited:
    async def test_what_was_asked_waits_until_it_is_answered(self, store: AwaitedStore) -> None:
        units = [
            Awaited("c1/1", NOON, BILLING),
            Awaited("c2/1", NOON, BILLING),
            Awaited("c3/1", NOON, RETURNS),
        ]
        await store.ask(units)
        await store.ask(units[:1])
        assert await store.waiting([NOON, NOON + HOUR]) == {NOON: {BILLING: 2, RETURNS: 1}}

        for _ in range(2):
            await store.answer([(NOON, "c1/1"), (NOON, "unknown"), (NOON + HOUR, "c2/1")])
        assert await store.waiting([NOON]) == {NOON: {BILLING: 1, RETURNS: 1}}

    async def test_nothing_asked_is_nothing_waiting(self, store: AwaitedStore) -> None:
        await store.ask([])
        await store.answer([])

        assert await store.waiting([NOON]) == {}
        assert await store.waiting([]) == {}
