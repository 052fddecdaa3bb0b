"""Calibrations in Redis: one hash, a field for each judge and rubric."""

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.judging.calibration import Calibration


class RedisCalibrations:
    """The port `Calibrations`. They do not expire: a label is paid for by people."""

    def __init__(self, client: Client, keys: Keys) -> None:
        """Take a client that answers in bytes."""
        self._client = client
        self._key = keys.plain("calibrations")

    async def get(self, *, judge_version: str, rubric_version: str) -> Calibration | None:
        """Return the newest calibration, None for a judge that has none."""
        with guarded("calibrations"):
            raw = await self._client.hget(self._key, f"{judge_version}/{rubric_version}")
        return Calibration.model_validate_json(raw) if raw else None

    async def put(self, calibration: Calibration) -> None:
        """Keep a calibration in the place of an older one."""
        field = f"{calibration.judge_version}/{calibration.rubric_version}"
        with guarded("calibrations"):
            await self._client.hset(self._key, field, calibration.model_dump_json())
