"""The twin of the stored splices."""

from monitor.review.migration import Splice


class MemorySplices:
    """The port `Splices` in memory."""

    def __init__(self) -> None:
        """Begin without one."""
        self._kept: dict[tuple[str, str], Splice] = {}

    async def get(self, *, old_judge: str, new_judge: str) -> Splice | None:
        """Return the newest splice, None where nobody migrated."""
        return self._kept.get((old_judge, new_judge))

    async def put(self, splice: Splice) -> None:
        """Keep a splice in the place of an older one."""
        self._kept[splice.old_judge, splice.new_judge] = splice
