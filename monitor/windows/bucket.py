"""A judgment in, its contribution to one bucket out: which cells it counts in, once each."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

import xxhash

from monitor.conversations.conversation import UNKNOWN, Attributes
from monitor.intake.event import Environment, Value
from monitor.intake.moments import floor
from monitor.judging.judgment import FailureKind, JudgeFailure, Judgment, Place, Target
from monitor.judging.rubric import CRITICAL_MAX, SCORE_MAX, SCORE_MIN, TargetKind
from monitor.windows.policy import SegmentKey, WindowPolicy

OVERALL = "*"
"""The segment that holds everything."""
OTHER = "*other"
"""The value that stands for all that came after `segment_values_max` or `strata_max`."""
CRITICAL = "critical"
"""The pseudo-dimension of whole units: `0` nothing critical, `1` critical in any dimension, or failed."""
PAIR = "pair+"
"""Begins the pseudo-dimension of units that two stages of a cascade judged: `4>2@0.05`, cheap, expensive, chance."""
ABSTAINED = "a"
FAILED = "f"
THINNED = "t"
"""A unit that a budget left out by a known chance: those that were kept weigh as much more."""
CRITICAL_YES, CRITICAL_NO = "1", "0"

NAME_MAX = 64
"""Characters of a segment's value that enter a key; it bounds the size of a field."""
_RESERVED = {ord(sign): f"%{ord(sign):02X}" for sign in "%|,=;:*"} | {
    code: f"%{code:02X}" for code in (*range(32), 127)
}


_ATTRIBUTES = frozenset(Attributes.model_fields)
_MARKS = {None: ABSTAINED} | {score: str(score) for score in range(SCORE_MIN, SCORE_MAX + 1)}


class Granularity(StrEnum):
    """How long a slice of time is."""

    BUCKET = "bucket"
    HOUR = "hour"
    DAY = "day"

    def minutes(self, policy: WindowPolicy) -> int:
        """Return the length of a slice."""
        return {Granularity.BUCKET: policy.bucket_minutes, Granularity.HOUR: 60, Granularity.DAY: 1440}[self]


def name_of(value: str | None) -> str:
    """Return a value as part of a cell's name: bounded, its separators escaped."""
    if not value:
        return UNKNOWN
    if len(value) > NAME_MAX:
        # The digest keeps two long values apart that begin alike.
        value = f"{value[: NAME_MAX - 9]}~{hashlib.blake2b(value.encode(), digest_size=4).hexdigest()}"
    return value.translate(_RESERVED)


def readable(name: str) -> str:
    """Return a name as people wrote it."""
    return unquote(name)


class Cell(NamedTuple):
    """One count of a bucket. The rate is the weight class, as text, so that sums stay whole numbers."""

    dimension: str
    segment: str
    stratum: str
    mark: str
    rate: str


BucketCounts = Mapping[Cell, int]


class Scope(Value):
    """Whose series it is. Series of two scopes are never mixed."""

    assistant: str
    environment: Environment
    variant: str | None = None
    target: TargetKind
    judge_version: str
    rubric_version: str

    @property
    def id(self) -> str:
        """Return the short name of the scope, 12 hex digits."""
        # Not kept in the value: a changed copy would keep the name of what it was copied from.
        return _named(self)

    @staticmethod
    def of(record: Judgment | JudgeFailure) -> "Scope":
        """Return the scope that a record belongs to."""
        whose = record.attributes
        return _scope(
            whose.assistant,
            whose.environment,
            whose.variant,
            record.target.kind,
            record.judge.version,
            record.rubric_version,
        )


@lru_cache(maxsize=4096)
def _named(scope: Scope) -> str:
    return hashlib.blake2b(scope.model_dump_json().encode(), digest_size=6).hexdigest()


@lru_cache(maxsize=4096)
def _scope(  # noqa: PLR0917 - the parts of a scope, in its order
    assistant: str,
    environment: Environment,
    variant: str | None,
    target: TargetKind,
    judge_version: str,
    rubric_version: str,
) -> Scope:
    return Scope(
        assistant=assistant,
        environment=environment,
        variant=variant,
        target=target,
        judge_version=judge_version,
        rubric_version=rubric_version,
    )


class Contribution(NamedTuple):
    """What one record adds: one in each combination of its segments and marks."""

    scope: Scope
    bucket: datetime
    segments: tuple[str, ...]
    stratum: str
    rate: str
    marks: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> Iterator[Cell]:
        """Return the cells that it counts in."""
        return (
            Cell(dimension, segment, self.stratum, mark, self.rate)
            for segment in self.segments
            for dimension, mark in self.marks
        )


def entry_key(target: Target, *, rubric_version: str, judge_version: str) -> str:
    """Return what holds at most one contribution at a time, whatever the revision, 16 hex digits."""
    parts = (target.conversation_id, target.kind, target.turn_event_id or "", rubric_version, judge_version)
    return xxhash.xxh3_64_hexdigest("\x1f".join(parts).encode())


def rank(record: Judgment | JudgeFailure) -> int:
    """Return which record of one entry counts: the later revision, then the judgment over the failure."""
    return 2 * record.target.revision + isinstance(record, Judgment)


def is_unit(cell: Cell) -> bool:
    """Tell whether a cell counts (conversation, dimension) pairs that were judged, once each."""
    return cell.segment == OVERALL and cell.dimension != CRITICAL and not cell.dimension.startswith(PAIR)


def is_late(bucket: datetime, *, now: datetime, policy: WindowPolicy) -> bool:
    """Tell whether a bucket is older than what is kept, by the deployment's clock."""
    return bucket < now - policy.retention


def contribution(record: Judgment | JudgeFailure, policy: WindowPolicy) -> Contribution | None:
    """Return what a record adds to the windows; None for a partial target, which stands for nobody."""
    if record.rate is None:
        return None
    own, served_by = record.attributes, record.served_by
    return Contribution(
        scope=Scope.of(record),
        bucket=floor(record.observed_at, minutes=policy.bucket_minutes),
        segments=_segments(
            policy.segments,
            tuple([getattr(own if key in _ATTRIBUTES else served_by, key) for key in policy.segments]),
        ),
        stratum=_stratum(tuple([getattr(own, key) for key in policy.strata])),
        rate=f"{record.rate:.6g}",
        marks=_marks(record),
    )


# Traffic has few combinations of values, and each judgment has one.
@lru_cache(maxsize=65_536)
def _segments(keys: tuple[SegmentKey, ...], values: tuple[str | None, ...]) -> tuple[str, ...]:
    return (OVERALL, *[f"{key}={name_of(value)}" for key, value in zip(keys, values, strict=True)])


@lru_cache(maxsize=65_536)
def _stratum(values: tuple[str | None, ...]) -> str:
    return ",".join(map(name_of, values))


def _marks(record: Judgment | JudgeFailure) -> tuple[tuple[str, str], ...]:
    if isinstance(record, JudgeFailure):
        # A failure knows no dimensions; it is missing from the whole unit.
        return ((CRITICAL, THINNED if record.kind is FailureKind.THINNED else FAILED),)
    marks: dict[str, str] = {}
    worst = SCORE_MAX
    for score in record.scores:
        # A dimension that came twice counts once, and is critical if either is.
        marks[score.dimension] = _MARKS[score.score]
        if score.score is not None and score.score < worst:
            worst = score.score
    critical = (CRITICAL, CRITICAL_YES if worst <= CRITICAL_MAX else CRITICAL_NO)
    return (*marks.items(), critical, *_pairs(record))


def _pairs(record: Judgment) -> tuple[tuple[str, str], ...]:
    """Return what both stages said of each dimension, for the two-phase estimate."""
    phase = record.phase
    if phase is None or phase.place is not Place.SECOND or not phase.probability:
        return ()
    first = {one.dimension: one.score for one in phase.first_scores}
    return tuple(
        (PAIR + score.dimension, f"{first[score.dimension]}>{score.score}@{phase.probability:.6g}")
        for score in record.scores
        if score.score is not None and first.get(score.dimension) is not None
    )
