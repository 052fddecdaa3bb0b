"""Rules first, then a cheap judge, then an expensive one for what matters: a judgment in, what is asked next out.

Whether the second stage is asked is drawn by a hash with a probability that is written on both judgments, so that
the mean over all can be estimated without bias (`monitor/windows/two_phase.py`). Series never mix stages: each
judge has a version of its own.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from monitor.judging.judgment import (
    FirstScore,
    JudgeFailure,
    JudgeRequest,
    Judgment,
    Phase,
    Place,
    Record,
    Target,
)
from monitor.judging.rubric import CRITICAL_MAX, PASS_MIN, TargetKind

CRITICAL_RULE, DISAGREED_RULE, BORDERLINE_RULE, AUDIT_RULE = "critical", "disagreed", "borderline", "audit"
_ProbableShare = Annotated[float, Field(gt=0, le=1)]
_Rate = Annotated[float, Field(ge=0, le=1)]


class CascadePolicy(BaseModel):
    """When the second stage is asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    base_url: str | None = None
    targets: tuple[TargetKind, ...] = (TargetKind.CONVERSATION,)
    critical_share: _Rate = 1.0
    disagreed_share: _Rate = 1.0
    borderline_share: _Rate = 0.5
    audit_share: _ProbableShare = 0.05
    borderline_scores: tuple[Annotated[int, Field(ge=1, le=5)], ...] = (3,)
    disagreed_points: Annotated[int, Field(ge=1, le=4)] = 2
    cohort: str = "second"


class Recording(Protocol):
    """Whoever answers a request with its record: `Executor`."""

    async def record_of(self, request: JudgeRequest, *, now: Callable[[], datetime]) -> Record:
        """Return the record of a request."""
        ...


def plan(judgment: Judgment, rules: Judgment | None, policy: CascadePolicy) -> Phase:
    """Return whether the second stage is asked about a judgment of the first, with which chance and why."""
    chances = {AUDIT_RULE: policy.audit_share}
    if judgment.critical_scores:
        chances[CRITICAL_RULE] = policy.critical_share
    if rules is not None and _disagree(judgment, rules, policy.disagreed_points):
        chances[DISAGREED_RULE] = policy.disagreed_share
    if any(score.score in policy.borderline_scores for score in judgment.scores):
        chances[BORDERLINE_RULE] = policy.borderline_share
    rule = max(chances, key=lambda name: chances[name])
    return Phase(
        place=Place.FIRST,
        probability=chances[rule],
        asked=_draw(judgment.target, policy.cohort) < chances[rule],
        rule=rule,
    )


def second_request(request: JudgeRequest, judgment: Judgment, *, now: datetime) -> JudgeRequest:
    """Return what the second stage is asked; the events' outcomes are those of the first."""
    asked = judgment.phase or Phase(place=Place.FIRST)
    first = tuple(FirstScore(dimension=score.dimension, score=score.score) for score in judgment.scores)
    phase = Phase(
        place=Place.SECOND,
        probability=asked.probability,
        asked=True,
        rule=asked.rule,
        first_scores=first,
    )
    changed = dict(request) | {"phase": phase, "event_ids": (), "requested_at": now, "rate": judgment.rate}
    return JudgeRequest.model_validate(changed)


class Cascade:
    """Answers a request by the stage that it asks for, and says what comes of it."""

    def __init__(
        self, *, rules: Recording | None, first: Recording, second: Recording, policy: CascadePolicy
    ) -> None:
        """Take an executor for each stage; without rules nothing counts as disagreed upon."""
        self._rules = rules
        self._first = first
        self._second = second
        self._policy = policy

    async def record_of(self, request: JudgeRequest, *, now: Callable[[], datetime]) -> Record:
        """Return the record of the stage that is asked for; the first one's holds the plan for the second."""
        record, _ = await self.records_of(request, now=now)
        return record

    async def records_of(
        self, request: JudgeRequest, *, now: Callable[[], datetime]
    ) -> tuple[Record, tuple[Record, ...]]:
        """Return the record that answers the request, and those that were made beside it."""
        if request.phase is not None and request.phase.place is Place.SECOND:
            record = await self._second.record_of(request, now=now)
            return _second(request, record), ()
        rules = await self._by_rules(request, now)
        record = await self._first.record_of(request, now=now)
        beside = () if rules is None else (rules,)
        if (
            not isinstance(record, Judgment)
            # What a fallback says is no first stage's word: a pair with it would compare two other judges.
            or record.instead_of is not None
            or request.target.kind not in self._policy.targets
        ):
            return record.model_copy(update={"phase": Phase(place=Place.FIRST)}), beside
        told = rules if isinstance(rules, Judgment) else None
        return record.model_copy(update={"phase": plan(record, told, self._policy)}), beside

    async def _by_rules(self, request: JudgeRequest, now: Callable[[], datetime]) -> Record | None:
        if self._rules is None:
            return None
        # Its events have their outcome from the first stage.
        asked = request.model_copy(update={"event_ids": ()})
        record = await self._rules.record_of(asked, now=now)
        return record.model_copy(update={"phase": Phase(place=Place.RULES)})


def _second(request: JudgeRequest, record: Record) -> Record:
    """Write the phase on a record; what a budget thinned out of the second stage lowers its chance, not the rate."""
    phase = request.phase
    thinned = bool(request.rate and record.rate and record.rate != request.rate)
    if thinned and phase is not None and phase.probability and request.rate and record.rate:
        chance = phase.probability * record.rate / request.rate
        phase = phase.model_copy(update={"probability": chance})
    return record.model_copy(update={"phase": phase, "rate": request.rate})


class Unkept:
    """Answers of a judge that costs nothing: they are made anew each time."""

    async def get(self, judgment_id: str) -> Judgment | JudgeFailure | None:
        """Know none."""
        del judgment_id
        return None

    async def put(self, record: Judgment | JudgeFailure) -> None:
        """Keep none."""
        del record


def speaks(record: Record) -> bool:
    """Tell whether critical failures of a record are told to people.

    Of a cascade the first stage tells them, and the second those that the first did not see; the rules tell none, and
    neither does a judge on trial.
    """
    phase = record.phase
    if phase is None or phase.place is Place.FIRST:
        return True
    if phase.place in {Place.RULES, Place.SHADOW}:
        return False
    return not any(one.score is not None and one.score <= CRITICAL_MAX for one in phase.first_scores)


def _disagree(judgment: Judgment, rules: Judgment, points: int) -> bool:
    theirs = {score.dimension: score.score for score in rules.scores}
    for score in judgment.scores:
        other = theirs.get(score.dimension)
        if score.score is None or other is None:
            continue
        if (score.score >= PASS_MIN) != (other >= PASS_MIN) or abs(score.score - other) >= points:
            return True
    return False


def _draw(target: Target, cohort: str) -> float:
    parts = (cohort, target.conversation_id, str(target.revision), target.kind, target.turn_event_id or "")
    digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
