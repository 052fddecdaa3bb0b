"""An address in, a client out: one server or a cluster, waiting or blocking; the retries are named."""

from typing import Any
from urllib.parse import unquote, urlsplit

import redis
import redis.asyncio
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialWithJitterBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry

from monitor.adapters.redis_functions import Client, guarded

CLUSTER = "+cluster"
"""Follows the scheme of a cluster's address: `redis+cluster://host:port,host:port`, or `rediss+cluster`."""
PORT = 6379
RETRIES = 5
SOCKET_SECONDS, CONNECT_SECONDS = 10, 5


def is_cluster(address: str) -> bool:
    """Tell whether an address names a cluster."""
    return address.partition("://")[0].endswith(CLUSTER)


def waiting_client(address: str) -> Client:
    """Return a client for asyncio; nothing is connected yet."""
    # `from_url` retries nothing of itself.
    retry = AsyncRetry(_backoff(), RETRIES)
    if not is_cluster(address):
        return redis.asyncio.Redis.from_url(address, retry=retry, **_timeouts())
    return redis.asyncio.RedisCluster(
        startup_nodes=[AsyncClusterNode(host, port) for host, port in nodes_of(address)],
        retry=retry,
        **_access(address),
        **_timeouts(),
    )


def blocking_client(address: str) -> Any:
    """Return a client that blocks; that of a cluster asks for the slots at once and raises StoreUnavailable."""
    retry = Retry(_backoff(), RETRIES)
    if not is_cluster(address):
        return redis.Redis.from_url(address, retry=retry, **_timeouts())
    node: Any = ClusterNode  # the library leaves it untyped
    with guarded("cluster"):
        return redis.RedisCluster(
            startup_nodes=[node(host, port) for host, port in nodes_of(address)],
            retry=retry,
            **_access(address),
            **_timeouts(),
        )


def nodes_of(address: str) -> list[tuple[str, int]]:
    """Return host and port of the nodes that a cluster's address names; any of them knows the others."""
    places = urlsplit(address).netloc.rpartition("@")[2].split(",")
    split = [urlsplit(f"//{place.strip()}") for place in places if place.strip()]
    return [(place.hostname or "127.0.0.1", place.port or PORT) for place in split]


def _access(address: str) -> dict[str, Any]:
    found: dict[str, Any] = {"ssl": True} if address.startswith("rediss") else {}
    who = urlsplit(address).netloc.rpartition("@")[0]
    name, _, password = who.partition(":")
    if name:
        found["username"] = unquote(name)
    if password:
        found["password"] = unquote(password)
    return found


def _backoff() -> ExponentialWithJitterBackoff:
    return ExponentialWithJitterBackoff(base=0.05, cap=1.0)


def _timeouts() -> dict[str, Any]:
    return {"socket_timeout": SOCKET_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}
