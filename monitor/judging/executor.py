"""A request in, its record out: the stored answer if there is one, else the judge's, else a typed failure."""

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Protocol

from monitor.intake.event import Value
from monitor.judging.allowance import Allowance, Granted
from monitor.judging.judge import Judge, JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    JudgeRequest,
    Judgment,
    judgment_id,
)
from monitor.judging.own_traffic import is_own

PASSING = frozenset({FailureKind.UNAVAILABLE, FailureKind.TIMEOUT, FailureKind.RATE_LIMITED})
"""What an endpoint cures by coming back; while its gate holds calls back, a judgment waits instead of failing."""

_OUTCOMES = {FailureKind.EXPIRED: "expired", FailureKind.THINNED: "thinned"}


class Answers(Protocol):
    """Judgments by id, kept so that a redelivered request is not paid again."""

    async def get(self, judgment_id: str) -> Judgment | JudgeFailure | None:
        """Return the judgment that was given under this id."""
        ...

    async def put(self, record: Judgment | JudgeFailure) -> None:
        """Keep a judgment."""
        ...


class Gate(Protocol):
    """Whether calls may start at all."""

    @property
    def holding(self) -> bool:
        """Tell whether calls are held back: the endpoint is down, or has asked everyone to wait."""
        ...

    async def opened(self) -> None:
        """Return when calls may start."""
        ...


class ExecutorPolicy(Value):
    """The limits of one judgment."""

    deadline_seconds: float
    """Hard: a judge that has not answered by then has failed. It bounds how long acks are held back."""
    max_age: timedelta
    """A request older than this is expired, not judged: old news must not queue before new."""


class Executor:
    """Asks one judge, once; and its fallback, where that is the rule."""

    def __init__(
        self,
        judge: Judge,
        answers: Answers,
        rubric_version: str,
        policy: ExecutorPolicy,
        *,
        gate: Gate | None = None,
        allowance: Allowance | None = None,
        fallback: Judge | None = None,
        fallback_on: Collection[FailureKind] = (),
    ) -> None:
        """Take the judge and where its answers are kept; what bounds and replaces it may be left out."""
        self._judge = judge
        self._answers = answers
        self._rubric_version = rubric_version
        self._policy = policy
        self._gate = gate
        self._allowance = allowance
        self._fallback = fallback
        self._fallback_on = frozenset(fallback_on)

    @property
    def budget_left(self) -> float | None:
        """Return the share that is left of the fullest budget; None where nothing is limited, or nothing known."""
        fill = None if self._allowance is None else self._allowance.fill
        return None if fill is None else max(0.0, 1 - fill)

    async def record_of(
        self, request: JudgeRequest, *, now: Callable[[], datetime]
    ) -> Judgment | JudgeFailure:
        """Return the record of a request; raises only when the store of answers is out of reach."""
        for judge in (self._judge, self._fallback):
            known = await self._answers.get(self._id(request, judge.identity)) if judge else None
            if known is not None:
                return known
        granted = Granted()
        if _is_own(request):
            reply: JudgeReply = NotScored(
                kind=FailureKind.OWN_TRAFFIC, reason="a call of this monitor's own came back as traffic"
            )
        else:
            reply, granted = await self._reply(request, now)
        record = self._record(request, self._judge.identity, reply, granted, judged_at=now())
        if isinstance(record, JudgeFailure) and self._fallback and record.kind in self._fallback_on:
            instead = await self._once(self._fallback, request)
            if self._allowance is not None:
                await self._allowance.count(request, instead.usage, now=now())
            if isinstance(instead, Scored):
                # It stands for what was thinned out as the first judge's judgment would have.
                other = self._record(request, self._fallback.identity, instead, granted, judged_at=now())
                record = type(other).model_validate(dict(other) | {"instead_of": record.kind})
        if isinstance(record, Judgment):
            await self._answers.put(record)
        return record

    async def _reply(self, request: JudgeRequest, now: Callable[[], datetime]) -> tuple[JudgeReply, Granted]:
        """Wait while the endpoint is down, up to the maximum age; ask; and wait again if it went down meanwhile."""
        own_id = self._id(request, self._judge.identity)
        while True:
            age = now() - request.requested_at
            if age > self._policy.max_age:
                return _expired(age, self._policy.max_age), Granted()
            if not await self._opened(self._policy.max_age - age):
                continue
            granted = Granted()
            if self._allowance is not None:
                granted = await self._allowance.ask(request, own_id, now=now())
                if granted.refused is not None:
                    return granted.refused, granted
            reply = await self._once(self._judge, request)
            if self._allowance is not None:
                await self._allowance.settle(granted, reply.usage)
            passing = isinstance(reply, NotScored) and reply.kind in PASSING
            if not (passing and self._gate and self._gate.holding):
                return reply, granted

    async def _opened(self, left: timedelta) -> bool:
        if self._gate is None or not self._gate.holding:
            return True
        try:
            async with asyncio.timeout(left.total_seconds() + 0.001):
                await self._gate.opened()
        except TimeoutError:
            return False
        return True

    async def _once(self, judge: Judge, request: JudgeRequest) -> JudgeReply:
        deadline = self._policy.deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                return await judge.judge(request)
        except TimeoutError:
            return NotScored(kind=FailureKind.TIMEOUT, reason=f"no answer within {deadline:g} s")
        except Exception as error:  # noqa: BLE001 - the hop's boundary: a bug in a judge must not stop the stream
            # The error's own words may quote the transcript; its type and the dead letter say enough.
            return NotScored(kind=FailureKind.BUG, reason=f"the judge raised {type(error).__name__}")

    def _id(self, request: JudgeRequest, identity: JudgeIdentity) -> str:
        return judgment_id(
            request.target, rubric_version=self._rubric_version, judge_version=identity.version
        )

    def _record(
        self,
        request: JudgeRequest,
        identity: JudgeIdentity,
        reply: JudgeReply,
        granted: Granted,
        *,
        judged_at: datetime,
    ) -> Judgment | JudgeFailure:
        shared = {
            "judgment_id": self._id(request, identity),
            "target": request.target,
            "attributes": request.conversation.attributes,
            "served_by": request.served_by,
            "event_ids": request.event_ids,
            # What a budget thinned out is stood for by what it kept.
            "rate": None if request.rate is None else request.rate * granted.share,
            "observed_at": request.observed_at,
            "judged_at": judged_at,
            "rubric_version": self._rubric_version,
            "usage": reply.usage,
            "trace": reply.trace,
        }
        match reply:
            case Scored():
                judge = identity.model_copy(update={"model_answered": reply.model_answered})
                return Judgment(judge=judge, scores=reply.scores, **shared)
            case NotScored():
                outcome = _OUTCOMES.get(reply.kind, "failed")
                return JudgeFailure(
                    judge=identity, outcome=outcome, kind=reply.kind, reason=reply.reason, **shared
                )


def _is_own(request: JudgeRequest) -> bool:
    """Look whether the request is our own traffic; what cannot be looked at counts as own, and is not judged."""
    try:
        return is_own(request)
    except Exception:  # noqa: BLE001 - fail closed: a loop of judgments of judgments has no other end
        return True


def _expired(age: timedelta, max_age: timedelta) -> NotScored:
    return NotScored(
        kind=FailureKind.EXPIRED,
        reason=f"waited {age}, longer than judge.max_age_hours allows ({max_age})",
    )
