"""The twin of the stored calibrations."""

from monitor.judging.calibration import Calibration


class MemoryCalibrations:
    """The port `Calibrations` in memory."""

    def __init__(self) -> None:
        """Begin without one."""
        self._kept: dict[tuple[str, str], Calibration] = {}

    async def get(self, *, judge_version: str, rubric_version: str) -> Calibration | None:
        """Return the newest calibration, None for a judge that has none."""
        return self._kept.get((judge_version, rubric_version))

    async def put(self, calibration: Calibration) -> None:
        """Keep a calibration in the place of an older one."""
        self._kept[calibration.judge_version, calibration.rubric_version] = calibration
