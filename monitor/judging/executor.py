"""A request in, its record out: the stored answer if there is one, else the judge's, else a typed failure."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from monitor.intake.event import Value
from monitor.judging.judge import Judge, JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    JudgeRequest,
    Judgment,
    Usage,
    judgment_id,
)


class Answers(Protocol):
    """Judgments by id, kept so that a redelivered request is not paid again."""

    async def get(self, judgment_id: str) -> Judgment | JudgeFailure | None:
        """Return the judgment that was given under this id."""
        ...

    async def put(self, record: Judgment | JudgeFailure) -> None:
        """Keep a judgment."""
        ...


class ExecutorPolicy(Value):
    """The limits of one judgment."""

    deadline_seconds: float
    """Hard: a judge that has not answered by then has failed. It bounds how long acks are held back."""
    max_age: timedelta
    """A request older than this is expired, not judged: old news must not queue before new."""


class Executor:
    """Asks one judge, once."""

    def __init__(self, judge: Judge, answers: Answers, rubric_version: str, policy: ExecutorPolicy) -> None:
        """Take the judge and where its answers are kept."""
        self._judge = judge
        self._answers = answers
        self._rubric_version = rubric_version
        self._policy = policy

    async def record_of(
        self, request: JudgeRequest, *, now: Callable[[], datetime]
    ) -> Judgment | JudgeFailure:
        """Return the record of a request; raises only when the store of answers is out of reach."""
        identity = self._judge.identity
        own_id = judgment_id(
            request.target, rubric_version=self._rubric_version, judge_version=identity.version
        )
        known = await self._answers.get(own_id)
        if known is not None:
            return known
        reply = await self._reply(request, started=now())
        record = self._record(own_id, request, identity, reply, judged_at=now())
        if isinstance(record, Judgment):
            await self._answers.put(record)
        return record

    async def _reply(self, request: JudgeRequest, *, started: datetime) -> JudgeReply:
        age = started - request.requested_at
        if age > self._policy.max_age:
            return NotScored(
                kind=FailureKind.EXPIRED,
                reason=f"waited {age}, longer than judge.max_age_hours allows ({self._policy.max_age})",
            )
        deadline = self._policy.deadline_seconds
        try:
            async with asyncio.timeout(deadline):
                return await self._judge.judge(request)
        except TimeoutError:
            return NotScored(kind=FailureKind.TIMEOUT, reason=f"no answer within {deadline:g} s")
        except Exception as error:  # noqa: BLE001 - the hop's boundary: a bug in a judge must not stop the stream
            # The error's own words may quote the transcript; its type and the dead letter say enough.
            return NotScored(kind=FailureKind.BUG, reason=f"the judge raised {type(error).__name__}")

    def _record(
        self,
        own_id: str,
        request: JudgeRequest,
        identity: JudgeIdentity,
        reply: JudgeReply,
        *,
        judged_at: datetime,
    ) -> Judgment | JudgeFailure:
        shared = {
            "judgment_id": own_id,
            "target": request.target,
            "attributes": request.conversation.attributes,
            "served_by": request.served_by,
            "event_ids": request.event_ids,
            "rate": request.rate,
            "observed_at": request.observed_at,
            "judged_at": judged_at,
            "rubric_version": self._rubric_version,
            "usage": reply.usage or Usage(),
        }
        match reply:
            case Scored():
                judge = identity.model_copy(update={"model_answered": reply.model_answered})
                return Judgment(judge=judge, scores=reply.scores, **shared)
            case NotScored():
                outcome = "expired" if reply.kind is FailureKind.EXPIRED else "failed"
                return JudgeFailure(
                    judge=identity, outcome=outcome, kind=reply.kind, reason=reply.reason, **shared
                )
