"""What the real store of conversations leaves in its keys, and what it does when its functions are gone."""

import redis.asyncio

from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_keys import Keys
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, TakenIn
from tests.events import a_record, messages, taking
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

POLICY = ConversationPolicy()


async def test_forgetting_leaves_no_word_in_any_key(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """Asked of the bytes themselves, since a copy in a field nobody reads is still a copy."""
    store = RedisConversations(valkey, Keys("test", 3), POLICY)
    word = b"Quedlinburg"
    for name in ("c1", "c2"):
        await store.take(
            [
                taking(name, messages=messages("I live in Quedlinburg.", "Quedlinburg, noted.")),
                taking(name, kind="summary", sections=[{"key": "k", "text": "Lives in Quedlinburg."}]),
            ]
        )
        await store.settle(
            [a_record(name, says="Quedlinburg"), a_record(name, turn="t", fails=True, says="Q")]
        )

    await store.forget("c1")

    held = {key: await everything(valkey, key) async for key in valkey.scan_iter()}
    # Summaries are only counted so far: their words are nowhere.
    assert [key for key, content in held.items() if word in content and b"c1" in key] == []
    assert any(word in content for content in held.values()), "the other one keeps its own"


async def everything(valkey: redis.asyncio.Redis, key: bytes) -> bytes:  # noqa: F811
    match await valkey.type(key):
        case b"hash":
            return repr(await valkey.hgetall(key)).encode()
        case b"zset":
            return repr(await valkey.zrange(key, 0, -1)).encode()
        case kind:
            raise AssertionError(f"a key of kind {kind!r}: read it here too")


async def test_functions_that_a_server_lost_are_loaded_again(valkey: redis.asyncio.Redis) -> None:  # noqa: F811
    """A new primary knows none of them."""
    store = RedisConversations(valkey, Keys("test", 1), POLICY)
    await store.start()
    await store.take([taking()])
    await valkey.function_flush()

    assert await store.take([taking(turn=1)]) == [TakenIn(Arrival.NEW, 1)]
    await valkey.function_flush()
    await store.queued([("c1", ["c1-turn-1"])])
    assert await store.funnel() == {"turn|waiting": 1, "turn|queued": 1}
