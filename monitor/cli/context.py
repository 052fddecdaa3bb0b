"""What every command begins with: settings, policy, and errors that are sentences."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from monitor.adapters.embedded_process import EmbeddedUnavailable
from monitor.adapters.kafka_admin import BrokerUnavailable
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.policy import ConfigError, Policy, load_policy
from monitor.settings import Settings, SettingsError, load_settings

EXPECTED = (ConfigError, SettingsError, BrokerUnavailable, StoreUnavailable, EmbeddedUnavailable)
"""What a person can do something about; anything else is a bug and shows its traceback."""
EXIT_USAGE = 2


@contextmanager
def sentences() -> Iterator[None]:
    """Turn expected failures into one sentence on standard error and exit status 2."""
    try:
        yield
    except StoreUnavailable as error:
        told = str(error).rstrip(".")
        sys.stderr.write(f"monitor: Redis: {told}; is MONITOR_REDIS right and the server up?\n")
        raise SystemExit(EXIT_USAGE) from None
    except EXPECTED as error:
        sys.stderr.write(f"monitor: {error}\n")
        raise SystemExit(EXIT_USAGE) from None


def load(**overrides: object) -> tuple[Settings, Policy]:
    """Read the environment and the configuration."""
    settings = load_settings(**overrides)
    return settings, load_policy(settings.config, clock=settings.clock)


def refused(sentence: str) -> NoReturn:
    """Say what a person can mend, and end with exit status 2."""
    sys.stderr.write(f"monitor: {sentence}\n")
    raise SystemExit(EXIT_USAGE)
