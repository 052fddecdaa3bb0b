"""Anchors' scores as one evaluation reads them: each day of them once, whoever asks for however much of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from monitor.intake.moments import floor
from monitor.judging.anchors import AnchorReader, AnchorScore

_DAY = timedelta(days=1)


class ReadOnce:
    """The port `AnchorReader` on another one. It remembers all that it read: make a new one for each evaluation."""

    def __init__(self, anchors: AnchorReader) -> None:
        """Take what is read from."""
        self._anchors = anchors
        self._pins: dict[tuple[str, str], Mapping[str, AnchorScore]] = {}
        self._days: dict[tuple[str, str, datetime], Sequence[AnchorScore]] = {}

    async def pins(self, *, judge_version: str, rubric_version: str) -> Mapping[str, AnchorScore]:
        """Return the pinned scores by anchor."""
        judge = judge_version, rubric_version
        if judge not in self._pins:
            self._pins[judge] = await self._anchors.pins(
                judge_version=judge_version, rubric_version=rubric_version
            )
        return self._pins[judge]

    async def scores(
        self, start: datetime, end: datetime, *, judge_version: str, rubric_version: str
    ) -> Sequence[AnchorScore]:
        """Return the scores of [start, end) that are not pinned, by time."""
        found: list[AnchorScore] = []
        day = floor(start, minutes=1440)
        while day < end:
            key = judge_version, rubric_version, day
            if key not in self._days:
                self._days[key] = await self._anchors.scores(
                    day, day + _DAY, judge_version=judge_version, rubric_version=rubric_version
                )
            found += (one for one in self._days[key] if start <= one.at < end)
            day += _DAY
        return found
