"""The versioned questions: dimensions with their anchors, and the version that their text gives them."""

import hashlib
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCORE_MIN, SCORE_MAX = 1, 5
CRITICAL_MAX = 2
"""A score at or below this is a critical failure (guide, S2)."""
PASS_MIN = 4
"""A score at or above this passes (pass@4)."""


class TargetKind(StrEnum):
    """What is judged."""

    TURN = "turn"
    CONVERSATION = "conversation"


class Dimension(BaseModel):
    """One question of the rubric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    question: str
    anchors: dict[int, str]
    targets: tuple[TargetKind, ...] = (TargetKind.TURN, TargetKind.CONVERSATION)
    may_abstain: bool = True

    @model_validator(mode="after")
    def _every_level_has_its_anchor(self) -> Self:
        levels = set(range(SCORE_MIN, SCORE_MAX + 1))
        if set(self.anchors) != levels:
            raise ValueError(f"dimension {self.name}: anchors must be given for each of 1, 2, 3, 4, 5")
        return self


class Rubric(BaseModel):
    """All questions. Its version is a hash of what the judge sees, never a number that someone forgets to raise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimensions: Annotated[tuple[Dimension, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) != len(names):
            raise ValueError("two dimensions of one name; give each its own")
        return self

    @property
    def version(self) -> str:
        """Return the content hash of the rubric, 12 hex digits."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=6).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the dimensions, in their order."""
        return tuple(dimension.name for dimension in self.dimensions)

    def for_target(self, kind: TargetKind) -> tuple[Dimension, ...]:
        """Return the dimensions that are asked of this kind of target."""
        return tuple(dimension for dimension in self.dimensions if kind in dimension.targets)
