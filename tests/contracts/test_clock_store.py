"""What every store of the stream's time must do: the twin and the real thing alike."""

from datetime import timedelta

import pytest

from monitor.adapters.memory import MemoryClock
from monitor.adapters.redis_clock import RedisClock
from monitor.adapters.redis_keys import Keys
from monitor.clock import ClockStore
from tests.events import HOUR, NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> ClockStore:
    if request.param == "memory":
        return MemoryClock()
    return RedisClock(request.getfixturevalue("valkey"), Keys("test"), partitions=4)


class TestClockStore:
    async def test_times_rise_and_never_fall(self, store: ClockStore) -> None:
        """A marker that is read again after a restart must not turn the clock back."""
        await store.advance("assemble", 0, {"events/0": NOON + HOUR})

        assert await store.advance("assemble", 0, {"events/0": NOON}) == {"events/0": NOON + HOUR}

    async def test_each_source_has_its_own_time(self, store: ClockStore) -> None:
        """Samplers speak for their own partitions; the stream's time is the least of all."""
        await store.advance("assemble", 0, {"events/0": NOON})

        known = await store.advance("assemble", 0, {"events/1": NOON + HOUR, "events/2": NOON + 2 * HOUR})

        assert known == {"events/0": NOON, "events/1": NOON + HOUR, "events/2": NOON + 2 * HOUR}
        assert await store.read("assemble") == {0: NOON}

    async def test_a_source_that_is_idle_holds_the_time_back_no_longer(self, store: ClockStore) -> None:
        """Otherwise one silent partition would stop every evaluation."""
        await store.advance("assemble", 0, {"events/0": NOON, "events/1": NOON + HOUR})

        assert await store.advance("assemble", 0, {}, idle=["events/0", "unheard-of"]) == {
            "events/1": NOON + HOUR
        }

        assert await store.advance("assemble", 0, {"events/0": NOON + 2 * HOUR}) == {
            "events/0": NOON + 2 * HOUR,
            "events/1": NOON + HOUR,
        }

    async def test_the_last_time_stays_when_all_are_idle(self, store: ClockStore) -> None:
        """Silence everywhere is no reason to forget how late it was."""
        await store.advance("assemble", 0, {"events/0": NOON})

        assert await store.advance("assemble", 0, {}, idle=["events/0"]) == {"events/0": NOON}
        assert await store.advance("assemble", 1, {}, idle=["events/0"]) == {}

    async def test_hops_and_partitions_are_apart(self, store: ClockStore) -> None:
        """The aggregate's time must not run ahead of what it has entered."""
        await store.advance("assemble", 0, {"events/0": NOON})
        await store.advance("aggregate", 3, {"assemble/3": NOON - HOUR})

        assert await store.read("assemble") == {0: NOON}
        assert await store.read("aggregate") == {3: NOON - HOUR}
        assert await store.read("elsewhere") == {}

    async def test_a_time_survives_to_the_microsecond(self, store: ClockStore) -> None:
        """A boundary that comes back a little earlier is another boundary."""
        moment = NOON + timedelta(microseconds=123_457)
        await store.advance("assemble", 0, {"events/0": moment})

        assert await store.read("assemble") == {0: moment}
