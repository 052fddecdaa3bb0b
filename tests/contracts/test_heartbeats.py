"""What every keeper of signs of life must do: the twin and the real thing alike."""

import pytest

from monitor.adapters.memory_heartbeats import MemoryHeartbeats
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_heartbeats import RedisHeartbeats
from monitor.adapters.redis_keys import Keys
from monitor.alerting.watchdog import Beat, Heartbeats
from tests.judgments import MINUTE, NOON
from tests.servers.valkey import absent_valkey


@pytest.fixture(params=["memory", "valkey"])
def heartbeats(request: pytest.FixtureRequest) -> Heartbeats:
    if request.param == "memory":
        return MemoryHeartbeats()
    return RedisHeartbeats(request.getfixturevalue("valkey"), Keys("test"))


class TestHeartbeats:
    async def test_the_newest_of_each_stage_and_instance_is_kept(self, heartbeats: Heartbeats) -> None:
        """Two workers of one stage are two lives, and a host's name may hold anything."""
        first, other = (
            Beat(stage="judge", instance="a@b", at=NOON),
            Beat(stage="judge", instance="c", at=NOON),
        )
        await heartbeats.beat([])
        await heartbeats.beat([first, other])
        later = Beat(stage="judge", instance="c", at=NOON + MINUTE)
        await heartbeats.beat([later])

        assert await heartbeats.beats() == (first, later)

    async def test_who_ends_in_order_is_forgotten(self, heartbeats: Heartbeats) -> None:
        """Scaling down is no death."""
        await heartbeats.beat([Beat(stage="judge", instance="a", at=NOON)])
        await heartbeats.withdraw("judge", "a")
        await heartbeats.withdraw("judge", "a")

        assert await heartbeats.beats() == ()


async def test_an_absent_server_is_said_in_our_words() -> None:
    """The pulse goes on without it, and the watchdog falls silent."""
    client = absent_valkey()
    heartbeats = RedisHeartbeats(client, Keys("test"))
    with pytest.raises(StoreUnavailable):
        await heartbeats.beat([Beat(stage="judge", instance="a", at=NOON)])
    with pytest.raises(StoreUnavailable):
        await heartbeats.beats()
    await client.aclose()
