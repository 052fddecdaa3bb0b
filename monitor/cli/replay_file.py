"""JSON lines of conversations in, events in the order of their times out, and which lines were none."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from monitor.intake.decode import Rejected
from monitor.intake.formats.openai_chat import Shape, events_of

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday, fixed, so that a replay is the same on every day that it is run."""
SPACING = timedelta(minutes=2)
"""Between the beginnings of two conversations of unknown time."""

Timed = tuple[datetime, Mapping[str, Any]]


@dataclass(frozen=True)
class Fault:
    """One line that is no conversation."""

    path: Path
    line: int
    reason: str


@dataclass(frozen=True)
class Told:
    """What files tell."""

    conversations: int
    events: Sequence[Timed]
    """In the order of their times."""
    faults: Sequence[Fault]


def read(paths: Iterable[Path], *, shape: Shape, start: datetime = START) -> Told:
    """Read files of conversations in the chat shape; a line that is none does not stop the rest."""
    timed: list[Timed] = []
    faults: list[Fault] = []
    count = 0
    for path in paths:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                told = _events(line, shape, start + count * SPACING)
                if isinstance(told, str):
                    faults.append(Fault(path, number, told))
                    continue
                count += 1
                timed += ((datetime.fromisoformat(event["occurred_at"]), event) for event in told)
    timed.sort(key=lambda one: one[0])
    return Told(count, timed, faults)


def namespace_of(paths: Iterable[Path]) -> str:
    """Return a replay's own namespace: the same files give the same, whatever they are called."""
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return f"replay-{digest.hexdigest()}"


def _events(line: bytes, shape: Shape, start: datetime) -> list[dict[str, Any]] | str:
    """Return the events of one line, or why it has none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {type(error).__name__}"
    if not isinstance(record, dict):
        return "not an object with `id` and `messages`"
    told = events_of(record, shape=shape, start=start)
    return told.reason if isinstance(told, Rejected) else told
