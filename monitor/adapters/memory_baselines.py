"""The twin of the stored baselines."""

from monitor.detection.pinning import Pinned


class MemoryBaselines:
    """The port `BaselineStore` in memory."""

    def __init__(self, *, kept_max: int = 20) -> None:
        """Begin without one."""
        self._kept_max = kept_max
        self._kept: dict[str, list[Pinned]] = {}

    async def pin(self, pinned: Pinned) -> None:
        """Make this the baseline of its scope."""
        kept = self._kept.setdefault(pinned.scope.id, [])
        if not kept or kept[0].baseline != pinned.baseline:
            kept.insert(0, pinned)
        del kept[self._kept_max :]

    async def current(self, scope_id: str) -> Pinned | None:
        """Return the baseline of a scope."""
        kept = self._kept.get(scope_id)
        return kept[0] if kept else None

    async def all(self) -> tuple[Pinned, ...]:
        """Return all that are kept, the current one of each scope first."""
        return tuple(pinned for scope_id in sorted(self._kept) for pinned in self._kept[scope_id])
