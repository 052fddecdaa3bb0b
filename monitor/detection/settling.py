"""What the judge was asked and has not answered in, the end of what may be believed out.

Judgments do not come in the order of chance: critical checks are judged first, and a slow answer is often a long
conversation. So a bucket counts when nearly all of each stratum has an outcome, or after a bound of time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from monitor.conversations.conversation import Attributes
from monitor.intake.moments import floor
from monitor.judging.judgment import JudgeFailure, JudgeRequest, Judgment, Target
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import CRITICAL, OTHER, OVERALL, BucketCounts, Scope, name_of
from monitor.windows.policy import WindowPolicy


class Group(NamedTuple):
    """Whose unit it is, and of which stratum."""

    assistant: str
    environment: str
    variant: str | None
    stratum: str

    @classmethod
    def of(cls, attributes: Attributes, policy: WindowPolicy) -> "Group":
        """Return the group of a conversation."""
        stratum = ",".join(name_of(getattr(attributes, key)) for key in policy.strata)
        return cls(attributes.assistant, str(attributes.environment), attributes.variant, stratum)

    def is_of(self, scope: Scope) -> bool:
        """Tell whether it belongs to a scope, whoever judges it."""
        return self[:3] == (scope.assistant, str(scope.environment), scope.variant)


class Awaited(NamedTuple):
    """One unit that the judge was asked about."""

    id: str
    bucket: datetime
    group: Group


class AwaitedStore(Protocol):
    """Whoever remembers what was asked. Every method is safe to repeat and raises StoreUnavailable if it cannot."""

    async def ask(self, units: Sequence[Awaited]) -> None:
        """Note units before they are asked for."""
        ...

    async def answer(self, units: Sequence[tuple[datetime, str]]) -> None:
        """Forget units, by bucket and id, once their outcome is in the windows."""
        ...

    async def waiting(self, begins: Sequence[datetime]) -> Mapping[datetime, Mapping[Group, int]]:
        """Return how many wait in these buckets, by group."""
        ...


def asked_of(requests: Sequence[JudgeRequest], policy: WindowPolicy) -> list[Awaited]:
    """Return the units of requests that will enter series of conversations."""
    return [
        Awaited(
            _id(request.target),
            floor(request.observed_at, minutes=policy.bucket_minutes),
            Group.of(request.conversation.attributes, policy),
        )
        for request in requests
        if request.target.kind is TargetKind.CONVERSATION and request.rate is not None
    ]


def answered_of(
    records: Sequence[Judgment | JudgeFailure], policy: WindowPolicy
) -> list[tuple[datetime, str]]:
    """Return the units whose outcome these records are."""
    return [
        (floor(record.observed_at, minutes=policy.bucket_minutes), _id(record.target))
        for record in records
        if record.target.kind is TargetKind.CONVERSATION
    ]


def unsettled_from(
    buckets: Mapping[datetime, BucketCounts],
    waiting: Mapping[datetime, Mapping[Group, int]],
    *,
    scope: Scope,
    end: datetime,
    share: float,
) -> datetime:
    """Return the begin of the first bucket in which a stratum lacks too many outcomes; `end` if none does."""
    for begin in sorted(waiting):
        open_by_stratum = {
            group.stratum: count for group, count in waiting[begin].items() if group.is_of(scope) and count
        }
        if not open_by_stratum:
            continue
        have: dict[str, int] = {}
        for cell, count in buckets.get(begin, {}).items():
            if cell.dimension == CRITICAL and cell.segment == OVERALL:
                # Beyond the strata that a day tells apart, all are one.
                name = OTHER if cell.stratum.startswith(OTHER) else cell.stratum
                have[name] = have.get(name, 0) + count
        lacking: dict[str, int] = {}
        for stratum, count in open_by_stratum.items():
            name = stratum if stratum in have else OTHER
            lacking[name] = lacking.get(name, 0) + count
        if any(have.get(name, 0) < share * (have.get(name, 0) + count) for name, count in lacking.items()):
            return begin
    return end


def recent_begins(end: datetime, *, bucket_minutes: int, bound_minutes: int) -> list[datetime]:
    """Return the buckets before `end` that are too young to count whatever is missing."""
    bucket = timedelta(minutes=bucket_minutes)
    return [end - number * bucket for number in range(1, bound_minutes // bucket_minutes + 1)]


def _id(target: Target) -> str:
    return f"{target.conversation_id}/{target.revision}"
