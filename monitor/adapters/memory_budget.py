"""The twin of the purse: what judging has cost, in memory."""

from collections import Counter
from collections.abc import Sequence

from monitor.judging.budget import Claim, Reserved


class MemoryPurse:
    """The port `Purse` in memory."""

    def __init__(self) -> None:
        """Begin with nothing spent."""
        self.used: Counter[str] = Counter()

    async def reserve(self, claims: Sequence[Claim]) -> Reserved:
        """Take all claims in one step, or none if one of them has no room."""
        granted = all(self.used[claim.name] + claim.amount <= claim.limit for claim in claims)
        fill = max((self.used[claim.name] / claim.limit for claim in claims), default=0.0)
        if granted:
            for claim in claims:
                self.used[claim.name] += claim.amount
        return Reserved(granted=granted, fill=int(fill * 1_000_000) / 1_000_000)

    async def settle(self, claims: Sequence[Claim]) -> None:
        """Add what it cost beyond what was reserved; amounts below zero give back."""
        for claim in claims:
            self.used[claim.name] = max(0, self.used[claim.name] + claim.amount)
