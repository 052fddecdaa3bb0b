"""Times and stretches of time in, the words that stand in messages out."""

from datetime import datetime, timedelta


def stamp(moment: datetime) -> str:
    """Return a time as it stands in messages: to the second, in UTC, with its zone."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def duration(span: timedelta) -> str:
    """Return a stretch of time in words."""
    minutes = round(abs(span).total_seconds() / 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes or not hours)
    return " ".join(parts)
