"""Fixtures that every test may ask for; servers start when the first test does."""

from tests.servers.fixtures import alertmanager_program, apache_kafka
from tests.servers.valkey import valkey, valkey_server
from tests.servers.valkey_cluster import valkey_cluster, valkey_cluster_url

__all__ = [
    "alertmanager_program",
    "apache_kafka",
    "valkey",
    "valkey_cluster",
    "valkey_cluster_url",
    "valkey_server",
]
