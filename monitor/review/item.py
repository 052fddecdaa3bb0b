"""A critical judgment in, an item for people out: one a judgment, however often it is told."""

from collections.abc import Sequence
from typing import Protocol

from monitor.intake.event import Moment, Value
from monitor.judging.health import HELD_BACK
from monitor.judging.judgment import JudgeFailure, Judgment


class ReviewItem(Value):
    """Something a person should look at. It names the conversation and why it is here, never a score to copy."""

    judgment_id: str
    conversation_id: str
    revision: int
    turn_event_id: str | None = None
    why: str
    dimensions: tuple[str, ...]
    observed_at: Moment


def items_of(records: Sequence[Judgment | JudgeFailure]) -> list[ReviewItem]:
    """Return an item for each critical failure, and for what a judge would not judge: that is evidence too."""
    return [*_critical(records), *_held_back(records)]


def _critical(records: Sequence[Judgment | JudgeFailure]) -> list[ReviewItem]:
    return [
        ReviewItem(
            judgment_id=record.judgment_id,
            conversation_id=record.target.conversation_id,
            revision=record.target.revision,
            turn_event_id=record.target.turn_event_id,
            why="critical failure",
            dimensions=tuple(score.dimension for score in record.critical_scores),
            observed_at=record.observed_at,
        )
        for record in records
        if isinstance(record, Judgment) and record.critical_scores
    ]


def _held_back(records: Sequence[Judgment | JudgeFailure]) -> list[ReviewItem]:
    return [
        ReviewItem(
            judgment_id=record.judgment_id,
            conversation_id=record.target.conversation_id,
            revision=record.target.revision,
            turn_event_id=record.target.turn_event_id,
            why=f"safety: the judge gave no judgment ({record.kind})",
            dimensions=(),
            observed_at=record.observed_at,
        )
        for record in records
        if isinstance(record, JudgeFailure) and record.kind in HELD_BACK
    ]


class ReviewQueue(Protocol):
    """Where items wait for people; adding one twice changes nothing."""

    async def add(self, items: Sequence[ReviewItem]) -> int:
        """Add items; return how many were new."""
        ...

    async def waiting(self, limit: int) -> list[ReviewItem]:
        """Return items, the oldest first."""
        ...
