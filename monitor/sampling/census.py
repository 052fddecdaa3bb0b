"""The port of the census for those who read it: exact counts over all traffic, without judging."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

CensusCounts = Mapping[tuple[str, str], int]
"""Counts by (stratum, signal); the stratum begins with assistant and environment."""


class Census(Protocol):
    """Whoever can read the census. Raises StoreUnavailable if it cannot."""

    async def read(self, start: datetime, end: datetime) -> Mapping[datetime, CensusCounts]:
        """Return the buckets that begin in [start, end) and hold anything. Treat them as read-only."""
        ...
