"""What every store does on a cluster of three nodes: all its keys of one step in one slot, any node asked."""

from collections import Counter

import pytest
from redis.asyncio.cluster import RedisCluster

from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_answers import RedisAnswers
from monitor.adapters.redis_census import RedisCensus
from monitor.adapters.redis_clock import RedisClock
from monitor.adapters.redis_configurations import RedisConfigurations
from monitor.adapters.redis_connection import blocking_client, is_cluster, nodes_of, waiting_client
from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_review import RedisReview
from monitor.adapters.redis_sampling import RedisSampling
from monitor.adapters.redis_windows import RedisWindows
from monitor.conversations.policy import ConversationPolicy
from monitor.detection.registry import ConfigurationPolicy, sights_of
from monitor.review.item import items_of
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Source
from monitor.windows.bucket import Granularity, Scope
from monitor.windows.policy import WindowPolicy
from tests.events import taking
from tests.judgments import HOUR, NOON, a_judgment

KEYS = Keys("test", 16)
SOURCE = Source("kafka", "conversation-events", "topic-id", 0)


@pytest.mark.parametrize(
    ("address", "nodes"),
    [
        ("redis+cluster://a:1,b:2", [("a", 1), ("b", 2)]),
        ("rediss+cluster://user:p%40ss@a:7000,b", [("a", 7000), ("b", 6379)]),
        ("redis+cluster://[::1]:7000", [("::1", 7000)]),
    ],
)
def test_an_address_names_the_nodes_of_a_cluster(address: str, nodes: list[tuple[str, int]]) -> None:
    """Any of them may be down when a worker starts."""
    assert is_cluster(address)
    assert nodes_of(address) == nodes
    assert not is_cluster("redis://127.0.0.1:6379/0")


async def test_conversations_are_taken_closed_and_explained(
    valkey_cluster: RedisCluster,
) -> None:
    """A batch holds conversations of every shard."""
    store = RedisConversations(valkey_cluster, KEYS, ConversationPolicy())
    names = [f"c{number}" for number in range(50)]
    await store.take([taking(name) for name in names])

    assert sorted(await store.load(names)) == sorted(names)
    assert sorted(await store.due(0, now=NOON + 48 * HOUR, limit=100)) == sorted(names)
    assert await store.funnel() == {"turn|waiting": 50}
    assert (await store.explain("c7")).due is not None
    assert await store.forget("c7") == 1


async def test_windows_are_spread_over_the_nodes_and_read_as_one(
    valkey_cluster: RedisCluster,
) -> None:
    """One node that held everything would be the limit of the whole."""
    store = RedisWindows(valkey_cluster, KEYS, WindowPolicy(shards=16))
    await store.apply([a_judgment(f"c{number}") for number in range(300)], now=NOON)

    assert await store.units() == 300 * 4
    sizes = [await node.execute_command("DBSIZE") for node in valkey_cluster.get_primaries()]
    assert len(sizes) == 3
    assert min(sizes) > 0


async def test_hours_and_what_is_late_are_added_over_the_shards(valkey_cluster: RedisCluster) -> None:
    """Each shard rolls up by itself, when something enters it."""
    policy = WindowPolicy(shards=4, retention_days=1, hourly_days=2)
    store = RedisWindows(valkey_cluster, Keys("test", 4), policy)
    await store.apply([a_judgment(f"c{number}") for number in range(40)], now=NOON)
    later = NOON + 25 * HOUR
    await store.apply([a_judgment(f"d{number}", at=later) for number in range(40)], now=later)
    await store.apply([a_judgment(f"late{number}") for number in range(40)], now=later)

    hours = await store.slices(Scope.of(a_judgment()), NOON, later + HOUR, Granularity.HOUR)
    assert {begin: sum(counts.values()) for begin, counts in hours.items()} == dict.fromkeys(
        (NOON, later), 40 * 5 * 3
    )
    assert await store.begins() == (later,)
    assert await store.late(later, later + HOUR) == pytest.approx(40, abs=1)


async def test_alerts_review_answers_and_clock_speak_to_a_cluster(
    valkey_cluster: RedisCluster,
) -> None:
    """They live in a slot of their own each."""
    alerts = RedisAlerts(valkey_cluster, KEYS)
    assert await alerts.claim_evaluation(NOON, None)
    assert await alerts.evaluated_through() == NOON
    assert await alerts.all() == ()
    assert await alerts.outbox(10) == ()

    judgment = a_judgment(scores={"safety": 1})
    review = RedisReview(valkey_cluster, KEYS)
    assert await review.add(items_of([judgment])) == len(items_of([judgment]))
    assert len(await review.waiting(10)) == len(items_of([judgment]))

    answers = RedisAnswers(valkey_cluster, KEYS, keep_days=1)
    await answers.put(judgment)
    assert await answers.get(judgment.judgment_id) == judgment

    clock = RedisClock(valkey_cluster, KEYS, partitions=4)
    for partition in range(4):
        await clock.advance("aggregate", partition, {"events": NOON})
    assert await clock.read("aggregate") == dict.fromkeys(range(4), NOON)


async def test_the_address_of_the_settings_reaches_every_store(
    valkey_cluster: RedisCluster,
    valkey_cluster_url: str,
) -> None:
    """This is the client that a worker gets; its functions are not loaded yet."""
    client = waiting_client(valkey_cluster_url)
    store = RedisWindows(client, KEYS, WindowPolicy(shards=16))
    await store.start()
    await store.apply([a_judgment(f"c{number}") for number in range(20)], now=NOON)
    assert await RedisWindows(valkey_cluster, KEYS, WindowPolicy(shards=16)).units() == 80
    await client.aclose()


def test_the_sampler_counts_on_a_cluster(valkey_cluster_url: str) -> None:
    """Its client blocks, so it is another one."""
    client = blocking_client(valkey_cluster_url)
    client.flushall(target_nodes=client.PRIMARIES)
    store = RedisSampling(client, KEYS, remember_hours=1, census_days=1)
    store.start()
    tally = PartitionTally(0, 5, dropped={"sampled_out:base": 5})
    assert store.record(SOURCE, tally, now=NOON)
    assert not store.record(SOURCE, tally, now=NOON)

    assert store.funnel() == {"sampled_out:base": 5}
    assert store.remembered(SOURCE, now=NOON).counted_through == 5
    assert store.share({("a", "b", "c"): NOON})
    client.close()


async def test_the_census_and_the_configurations_are_read_on_a_cluster(
    valkey_cluster: RedisCluster, valkey_cluster_url: str
) -> None:
    """Their keys lie in many slots, and one round trip asks for all of them."""
    blocking = blocking_client(valkey_cluster_url)
    sampling = RedisSampling(blocking, KEYS, remember_hours=1, census_days=1)
    for partition in range(3):
        source = SOURCE._replace(partition=partition)
        sampling.remembered(source, now=NOON)
        tally = PartitionTally(0, 5)
        tally.census[int(NOON.timestamp())] = Counter({("a|b", "turn"): 5})
        sampling.record(source, tally, now=NOON)
    blocking.close()
    store = RedisConfigurations(valkey_cluster, KEYS)
    await store.start()
    records = [a_judgment(f"c-{hour}", at=NOON + hour * HOUR) for hour in range(5)]
    await store.count(sights_of(records, ConfigurationPolicy()))

    census = await RedisCensus(valkey_cluster, KEYS).counts(NOON - HOUR, NOON + HOUR)
    served = await store.served(NOON, NOON + 5 * HOUR)

    assert census == {NOON: {("a|b", "turn"): 15}}
    assert [tally.n for tally in served.values()] == [5]


async def test_a_cluster_that_is_gone_is_unavailable() -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = RedisCluster(host="127.0.0.1", port=1, socket_connect_timeout=0.2)
    with pytest.raises(StoreUnavailable):
        await RedisWindows(client, KEYS, WindowPolicy(shards=16)).scopes()
    await client.aclose()


def test_a_blocking_client_of_a_cluster_that_is_gone_says_so_in_our_words() -> None:
    """It asks for the slots when it is made, so `monitor status` would show a traceback."""
    with pytest.raises(StoreUnavailable):
        blocking_client("redis+cluster://127.0.0.1:1")
