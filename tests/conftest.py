"""Fixtures that every test may ask for; servers start when the first test does."""

from tests.servers.fixtures import apache_kafka
from tests.servers.valkey import valkey, valkey_server

__all__ = ["apache_kafka", "valkey", "valkey_server"]
