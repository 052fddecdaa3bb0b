"""The port of the windows: records go in once each, buckets and worst cases come out."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import BucketCounts, Granularity, Scope
from monitor.windows.case import Case


class Applied(StrEnum):
    """What became of one record in the windows."""

    NEW = "new"
    REPEATED = "repeated"
    """It is in already; nothing changed."""
    SUPERSEDED = "superseded"
    """It took the place of an earlier revision, or of a failure of the same revision."""
    STALE = "stale"
    """A later revision is in already; nothing changed."""
    LATE = "late"
    """Its bucket, or that of the record it would replace, is older than what is kept; nothing changed."""
    IGNORED = "ignored"
    """It stands for nobody (a partial target)."""


class WindowStore(Protocol):
    """Whoever keeps the buckets. Every method is safe to repeat and raises StoreUnavailable if it cannot."""

    async def apply(
        self, records: Sequence[Judgment | JudgeFailure], *, now: datetime
    ) -> tuple[Applied, ...]:
        """Enter records, one answer each; `now` is the deployment's clock and decides what is late."""
        ...

    async def buckets(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets that begin in [start, end) and hold anything. Treat them as read-only."""
        ...

    async def slices(
        self, scope: Scope, start: datetime, end: datetime, granularity: Granularity
    ) -> Mapping[datetime, BucketCounts]:
        """Return the buckets, hours or days (UTC) that begin in [start, end) and hold anything.

        An hour or a day has all that was entered for it, wherever it stands by now.
        """
        ...

    async def others(self, scope: Scope, start: datetime, end: datetime) -> Mapping[str, int]:
        """Count the values that became `*other` on the days that [start, end) touches.

        By segment key, and `strata`; a day, and a shard, tells up to 512 of them apart.
        """
        ...

    async def late(self, start: datetime, end: datetime) -> int:
        """Return how many judgments came too late on the days that [start, end) touches, each once.

        The days are those of the deployment's clock when they came, kept as long as buckets; a large number is
        an estimate (1 %).
        """
        ...

    async def worst(
        self, scope: Scope, start: datetime, end: datetime, *, dimension: str | None = None
    ) -> tuple[Case, ...]:
        """Return the worst cases kept of the buckets in [start, end), worst first, then newest first."""
        ...

    async def scopes(self, granularity: Granularity = Granularity.BUCKET) -> tuple[Scope, ...]:
        """Return every scope that has a bucket; with hours or days, also those that have only such."""
        ...

    async def begins(self) -> tuple[datetime, ...]:
        """Return the starts of all buckets that may hold anything, of any scope, oldest first."""
        ...

    async def forget(self, conversation_id: str) -> int:
        """Erase the cases of a conversation, with the words in them; figures stay. Return how many went."""
        ...

    async def units(self) -> int:
        """Return how many (conversation, dimension) the kept buckets count, abstentions too, failures not."""
        ...
