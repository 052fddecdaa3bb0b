"""Times cut into slices of equal length, in UTC, where no hour is missing or comes twice."""

from datetime import UTC, datetime, timedelta


def floor(moment: datetime, *, minutes: int) -> datetime:
    """Return the start of the slice that a moment falls into; so many minutes divide a day."""
    seconds = minutes * 60
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, tz=UTC)


def ceiling(moment: datetime, *, minutes: int) -> datetime:
    """Return the first start of a slice at or after a moment."""
    at = floor(moment, minutes=minutes)
    return at if at == moment else at + timedelta(minutes=minutes)
