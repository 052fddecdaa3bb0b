"""The twin of the anchors' scores."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.judging.anchors import AnchorScore

_Judge = tuple[str, str]


class MemoryAnchors:
    """The port `AnchorStore` in memory."""

    def __init__(self) -> None:
        """Begin empty."""
        self._claims: set[tuple[_Judge, int]] = set()
        self._last: defaultdict[_Judge, dict[str, int]] = defaultdict(dict)
        self._pins: defaultdict[_Judge, dict[str, AnchorScore]] = defaultdict(dict)
        self._scores: defaultdict[_Judge, dict[tuple[str, int], AnchorScore]] = defaultdict(dict)

    async def claim(self, number: int, *, judge_version: str, rubric_version: str) -> bool:
        """Take a round; False if another worker has it."""
        key = ((judge_version, rubric_version), number)
        taken = key in self._claims
        self._claims.add(key)
        return not taken

    async def add(self, score: AnchorScore, *, judge_version: str, rubric_version: str) -> bool:
        """Keep a score; return whether it is the anchor's first, and so its pinned one."""
        judge = (judge_version, rubric_version)
        first = self._pins[judge].setdefault(score.anchor, score).round == score.round
        if not first:
            self._scores[judge][score.anchor, score.round] = score
        self._last[judge][score.anchor] = score.round
        return first

    async def last_rounds(self, *, judge_version: str, rubric_version: str) -> Mapping[str, int]:
        """Return by anchor in which round it was last scored."""
        return dict(self._last[judge_version, rubric_version])

    async def pins(self, *, judge_version: str, rubric_version: str) -> Mapping[str, AnchorScore]:
        """Return the pinned scores by anchor."""
        return dict(self._pins[judge_version, rubric_version])

    async def repin(self, pins: Sequence[AnchorScore], *, judge_version: str, rubric_version: str) -> None:
        """Put these in the place of all pinned scores."""
        self._pins[judge_version, rubric_version] = {one.anchor: one for one in pins}

    async def scores(
        self, start: datetime, end: datetime, *, judge_version: str, rubric_version: str
    ) -> Sequence[AnchorScore]:
        """Return the scores of [start, end) that are not pinned, by time."""
        kept = self._scores[judge_version, rubric_version].values()
        return sorted(
            (one for one in kept if start <= one.at < end), key=lambda one: (one.at, one.round, one.anchor)
        )
