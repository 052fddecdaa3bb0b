"""The servers as pytest fixtures; one broker serves a whole session."""

import os
from collections.abc import Iterator

import pytest

from tests.servers import alertmanager
from tests.servers.apache_kafka import ApacheKafka, why_unavailable


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Hand out a running broker. Where none can run, skip; where one must (MONITOR_REQUIRE_KAFKA=1), fail.

    It is shared: use topics and groups of your own, and start your own `ApacheKafka` to stop or kill one.
    """
    reason = why_unavailable()
    if reason is not None:
        if os.environ.get("MONITOR_REQUIRE_KAFKA") == "1":  # noqa: TID251 - CI's switch, not a setting
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def alertmanager_program() -> None:
    """Skip where no Alertmanager is installed; where one must be (MONITOR_REQUIRE_ALERTMANAGER=1), fail."""
    reason = alertmanager.why_unavailable()
    if reason is not None:
        if os.environ.get("MONITOR_REQUIRE_ALERTMANAGER") == "1":  # noqa: TID251 - CI's switch, not a setting
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
