"""What every store of calibrations must do: the twin and the real thing alike."""

from datetime import UTC, datetime, timedelta

import pytest

from monitor.adapters.memory_calibrations import MemoryCalibrations
from monitor.adapters.redis_calibrations import RedisCalibrations
from monitor.adapters.redis_keys import Keys
from monitor.judging.calibration import Calibration
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

AT = datetime(2026, 3, 10, tzinfo=UTC)
Store = MemoryCalibrations | RedisCalibrations


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryCalibrations()
    return RedisCalibrations(request.getfixturevalue("valkey"), Keys("test"))


def a_calibration(judge: str = "j1", *, days: int = 0) -> Calibration:
    return Calibration(
        judge_version=judge,
        rubric_version="r1",
        judge="rules",
        calibrated_at=AT + timedelta(days=days),
        raters=2,
        cases=50,
        dimensions=(),
    )


class TestCalibrations:
    async def test_a_calibration_comes_back_for_its_judge_and_rubric_only(self, store: Store) -> None:
        """Agreement of another judge, or under another question, says nothing."""
        await store.put(a_calibration())

        assert await store.get(judge_version="j1", rubric_version="r1") == a_calibration()
        assert await store.get(judge_version="j1", rubric_version="r2") is None
        assert await store.get(judge_version="j2", rubric_version="r1") is None

    async def test_a_newer_one_takes_its_place(self, store: Store) -> None:
        await store.put(a_calibration())
        await store.put(a_calibration(days=7))

        assert await store.get(judge_version="j1", rubric_version="r1") == a_calibration(days=7)
