"""What every purse must do: the twin and the real thing alike."""

import asyncio

import pytest
import redis.asyncio

from monitor.adapters.memory_budget import MemoryPurse
from monitor.adapters.redis_budget import RedisPurse
from monitor.adapters.redis_keys import Keys
from monitor.judging.budget import Claim, Reserved
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

Purses = MemoryPurse | RedisPurse


@pytest.fixture(params=["memory", "valkey"])
def purse(request: pytest.FixtureRequest) -> Purses:
    if request.param == "memory":
        return MemoryPurse()
    return RedisPurse(request.getfixturevalue("valkey"), Keys("test"))


def claim(amount: int, *, name: str = "tokens:hour:1", limit: int = 100) -> Claim:
    return Claim(name, limit, amount, 7200)


class TestPurse:
    async def test_claims_are_taken_up_to_the_limit_and_not_beyond(self, purse: Purses) -> None:
        """A budget that is a little exceeded by each worker is none."""
        assert await purse.reserve([claim(60)]) == Reserved(granted=True, fill=0.0)
        assert await purse.reserve([claim(60)]) == Reserved(granted=False, fill=0.6)
        assert await purse.reserve([claim(40)]) == Reserved(granted=True, fill=0.6)

    async def test_all_claims_are_taken_or_none(self, purse: Purses) -> None:
        """An hour must not pay for what the day refused."""
        await purse.reserve([claim(95, name="day")])
        refused = await purse.reserve([claim(10), claim(10, name="day")])

        assert refused == Reserved(granted=False, fill=0.95)
        assert await purse.reserve([claim(100)]) == Reserved(granted=True, fill=0.0)

    async def test_settling_adds_and_gives_back_but_never_below_zero(self, purse: Purses) -> None:
        await purse.reserve([claim(60)])
        await purse.settle([claim(-50)])
        assert (await purse.reserve([claim(0)])).fill == 0.1

        await purse.settle([claim(-50)])
        assert (await purse.reserve([claim(0)])).fill == 0.0

        await purse.settle([claim(130)])
        assert (await purse.reserve([claim(1)])) == Reserved(granted=False, fill=1.3)

    async def test_many_at_once_never_exceed_it(self, purse: Purses) -> None:
        """Reading and adding are one step."""
        granted = await asyncio.gather(*(purse.reserve([claim(7)]) for _ in range(50)))

        assert sum(one.granted for one in granted) == 14

    async def test_without_limits_everything_is_granted(self, purse: Purses) -> None:
        assert await purse.reserve([]) == Reserved(granted=True, fill=0.0)
        await purse.settle([])


async def test_counters_do_not_stay_for_ever(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """A tenant a day would fill the memory."""
    purse = RedisPurse(valkey, Keys("test"))
    await purse.start()
    await purse.reserve([claim(1)])

    [key] = [key async for key in valkey.scan_iter()]
    assert 0 < await valkey.ttl(key) <= 7200


async def test_accounts_are_counted_apart(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """A judge on trial must not spend what the live one needs."""
    live, trial = RedisPurse(valkey, Keys("test")), RedisPurse(valkey, Keys("test"), account="shadow")
    await live.start()

    assert (await trial.reserve([claim(100)])).granted
    assert not (await trial.reserve([claim(1)])).granted
    assert (await live.reserve([claim(100)])).granted
