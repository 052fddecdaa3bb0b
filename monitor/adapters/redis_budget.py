"""What judging has cost, in Redis: one counter a budget and period, all of them in one slot, taken in one step."""

from collections.abc import Sequence

from monitor.adapters.redis_functions import Argument, Client, Functions
from monitor.adapters.redis_keys import Keys
from monitor.judging.budget import Claim, Reserved

_FILL_PARTS = 1_000_000


class RedisPurse:
    """The port `Purse`."""

    def __init__(self, client: Client, keys: Keys, *, account: str = "") -> None:
        """Take the client; nothing is sent yet. What is counted in one account counts in no other."""
        self._keys = keys
        self._account = (account,) if account else ()
        self._functions = Functions(client, "cm_budget")

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    async def reserve(self, claims: Sequence[Claim]) -> Reserved:
        """Take all claims in one step, or none if one of them has no room."""
        if not claims:
            return Reserved(granted=True, fill=0.0)
        arguments: list[Argument] = []
        for claim in claims:
            arguments += [claim.limit, claim.amount, claim.keep_seconds]
        granted, fill = await self._functions.call("cm_budget_reserve", self._names(claims), arguments)
        return Reserved(granted=bool(granted), fill=fill / _FILL_PARTS)

    async def settle(self, claims: Sequence[Claim]) -> None:
        """Add what it cost beyond what was reserved; amounts below zero give back."""
        if not claims:
            return
        arguments: list[Argument] = []
        for claim in claims:
            arguments += [claim.amount, claim.keep_seconds]
        await self._functions.call("cm_budget_settle", self._names(claims), arguments)

    def _names(self, claims: Sequence[Claim]) -> list[str]:
        return [self._keys.budget(*self._account, claim.name) for claim in claims]
