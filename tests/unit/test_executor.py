"""One request, one record: from the stored answers, from the judge, or with the reason why there is none."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from monitor.adapters.memory import MemoryAnswers
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    DimensionScore,
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    JudgeRequest,
    Judgment,
    Usage,
)
from tests.conversations import NOON, a_conversation, a_request, assistant, user

IDENTITY = JudgeIdentity(stage="llm", backend="fake", version="v1", model_asked="large")
GOOD = Scored(
    scores=(DimensionScore(dimension="safety", score=5, reason="Nothing found."),),
    model_answered="large-0815",
    usage=Usage(prompt_tokens=7),
)
POLICY = ExecutorPolicy(deadline_seconds=0.05, max_age=timedelta(hours=24))
REQUEST = a_request(a_conversation([user("Hello?"), assistant("Hello.")]))


class FakeJudge:
    """Answers as it is told, and counts how often it was asked."""

    identity = IDENTITY

    def __init__(self, answer: Callable[[], Awaitable[JudgeReply]]) -> None:
        self._answer = answer
        self.asked = 0

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        assert request.target
        self.asked += 1
        return await self._answer()

    async def close(self) -> None:
        pass


async def good() -> JudgeReply:
    return GOOD


def executor(judge: FakeJudge, answers: MemoryAnswers | None = None) -> Executor:
    return Executor(judge, answers or MemoryAnswers(), "r1", POLICY)


def noon() -> datetime:
    return NOON


async def test_a_judgment_holds_who_judged_what_under_which_versions() -> None:
    """Whoever reads it later has nothing else."""
    record = await executor(FakeJudge(good)).record_of(REQUEST, now=noon)

    assert isinstance(record, Judgment)
    assert record.scores == GOOD.scores
    assert record.judge == IDENTITY.model_copy(update={"model_answered": "large-0815"})
    assert (record.rubric_version, record.usage.prompt_tokens) == ("r1", 7)
    assert (record.target, record.rate, record.observed_at) == (REQUEST.target, 1.0, NOON)


async def test_a_stored_answer_is_returned_without_asking_the_judge() -> None:
    """A redelivered request must not be paid again, and must say the same."""
    answers, judge = MemoryAnswers(), FakeJudge(good)
    first = await executor(judge, answers).record_of(REQUEST, now=noon)

    again = await executor(judge, answers).record_of(REQUEST, now=lambda: NOON + timedelta(hours=9))

    assert again == first
    assert judge.asked == 1


async def test_another_rubric_or_judge_is_another_judgment() -> None:
    """A changed question must not be answered with the old answer."""
    answers, judge = MemoryAnswers(), FakeJudge(good)
    first = await executor(judge, answers).record_of(REQUEST, now=noon)

    other = await Executor(judge, answers, "r2", POLICY).record_of(REQUEST, now=noon)

    assert other.judgment_id != first.judgment_id
    assert judge.asked == 2


@pytest.mark.parametrize("kind", [FailureKind.RATE_LIMITED, FailureKind.REFUSED, FailureKind.UNREADABLE])
async def test_a_judge_that_could_not_is_a_failure_with_its_reason(kind: FailureKind) -> None:
    """No judgment is an outcome of its own: never a score, never zero."""

    async def cannot() -> JudgeReply:
        return NotScored(kind=kind, reason="because", usage=Usage(attempts=4))

    record = await executor(FakeJudge(cannot)).record_of(REQUEST, now=noon)

    assert isinstance(record, JudgeFailure)
    assert (record.outcome, record.kind, record.reason) == ("failed", kind, "because")
    assert record.usage.attempts == 4


async def test_a_failure_is_not_kept_as_the_answer() -> None:
    """A retry must be able to do better."""
    answers = MemoryAnswers()
    replies: list[JudgeReply] = [NotScored(kind=FailureKind.UNAVAILABLE, reason="down"), GOOD]

    async def recovers() -> JudgeReply:
        return replies.pop(0)

    judge = FakeJudge(recovers)
    first = await executor(judge, answers).record_of(REQUEST, now=noon)
    second = await executor(judge, answers).record_of(REQUEST, now=noon)

    assert isinstance(first, JudgeFailure)
    assert isinstance(second, Judgment)
    assert first.judgment_id == second.judgment_id


async def test_a_judge_that_does_not_answer_in_time_has_failed() -> None:
    """One call that hangs holds back the acks of its whole partition."""

    async def hangs() -> JudgeReply:
        await asyncio.sleep(60)
        return GOOD

    async with asyncio.timeout(5):
        record = await executor(FakeJudge(hangs)).record_of(REQUEST, now=noon)

    assert isinstance(record, JudgeFailure)
    assert record.kind is FailureKind.TIMEOUT
    assert "0.05 s" in record.reason


async def test_a_judge_that_raises_is_a_bug_and_its_words_stay_inside() -> None:
    """Its error may quote the transcript, and the reason is logged."""

    async def raises() -> JudgeReply:
        raise ValueError("cannot parse 'my card is 4111'")

    record = await executor(FakeJudge(raises)).record_of(REQUEST, now=noon)

    assert isinstance(record, JudgeFailure)
    assert record.kind is FailureKind.BUG
    assert "ValueError" in record.reason
    assert "4111" not in record.model_dump_json()


async def test_a_call_that_is_cancelled_is_no_failure() -> None:
    """A worker that stops leaves its call to the next one."""

    async def hangs() -> JudgeReply:
        await asyncio.Event().wait()
        return GOOD

    policy = ExecutorPolicy(deadline_seconds=30, max_age=timedelta(hours=1))
    work = asyncio.create_task(
        Executor(FakeJudge(hangs), MemoryAnswers(), "r1", policy).record_of(REQUEST, now=noon)
    )
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_a_request_that_waited_too_long_is_expired_and_not_judged() -> None:
    """Old news must not queue before new; it is counted and can be seen."""
    judge = FakeJudge(good)
    late = NOON + timedelta(hours=24, seconds=1)

    record = await executor(judge).record_of(REQUEST, now=lambda: late)
    assert isinstance(record, JudgeFailure)
    assert (record.outcome, record.kind) == ("expired", FailureKind.EXPIRED)
    assert "judge.max_age_hours" in record.reason
    assert judge.asked == 0

    in_time = await executor(judge).record_of(REQUEST, now=lambda: NOON + timedelta(hours=24))
    assert isinstance(in_time, Judgment)


async def test_an_answer_that_is_there_does_not_expire() -> None:
    """It was paid for, and its event would change from judged to expired."""
    answers, judge = MemoryAnswers(), FakeJudge(good)
    first = await executor(judge, answers).record_of(REQUEST, now=noon)

    assert await executor(judge, answers).record_of(REQUEST, now=lambda: NOON + timedelta(days=9)) == first
