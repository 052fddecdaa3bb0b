"""An executor with a gate, a budget and a fallback: what waits, what is refused, who judges instead."""

import asyncio
from datetime import datetime, timedelta

import pytest

from monitor.adapters.memory import MemoryAnswers
from monitor.adapters.memory_budget import MemoryPurse
from monitor.judging.allowance import Allowance
from monitor.judging.budget import claims_of
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
from monitor.judging.policy import BudgetSection
from monitor.judging.prompt import SIGNATURE
from tests.conversations import NOON, a_conversation, a_request, assistant, user

GOOD = Scored(scores=(DimensionScore(dimension="safety", score=5, reason="Nothing found."),))
DOWN = NotScored(kind=FailureKind.UNAVAILABLE, reason="out of reach")
POLICY = ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=24))
REQUEST = a_request(a_conversation([user("Hello?"), assistant("Hello.")]))


class Judge:
    """Gives its replies one after the other, the last one for ever."""

    def __init__(self, *replies: JudgeReply, version: str = "v1") -> None:
        self.identity = JudgeIdentity(stage="first", backend="fake", version=version, model_asked="m")
        self._replies = list(replies)
        self.asked = 0

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        assert request.target
        self.asked += 1
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    async def close(self) -> None:
        pass


class Gate:
    """Holds until it is opened."""

    def __init__(self, *, holding: bool) -> None:
        self.holding = holding

    async def opened(self) -> None:
        while self.holding:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def noon() -> datetime:
    return NOON


async def test_an_outage_is_waited_for_and_is_no_failure() -> None:
    """What the judge could not answer while it was down is asked again when it is back."""
    gate, judge = Gate(holding=True), Judge(DOWN, GOOD)
    executor = Executor(judge, MemoryAnswers(), "r1", POLICY, gate=gate)

    waiting = asyncio.create_task(executor.record_of(REQUEST, now=noon))
    await asyncio.sleep(0.02)
    assert (judge.asked, waiting.done()) == (0, False)
    gate.holding = False
    record = await waiting

    # The first answer came after the gate had opened, so it is a failure of its own.
    assert isinstance(record, JudgeFailure)
    assert judge.asked == 1


async def test_what_fails_while_the_gate_closes_is_asked_again() -> None:
    """Calls in hand when the endpoint goes down are waited for too."""
    gate = Gate(holding=False)

    class Falling(Judge):
        async def judge(self, request: JudgeRequest) -> JudgeReply:
            reply = await super().judge(request)
            gate.holding = reply is DOWN
            return reply

    judge = Falling(DOWN, GOOD)
    executor = Executor(judge, MemoryAnswers(), "r1", POLICY, gate=gate)
    waiting = asyncio.create_task(executor.record_of(REQUEST, now=noon))
    await asyncio.sleep(0.02)
    gate.holding = False

    assert isinstance(await waiting, Judgment)
    assert judge.asked == 2


async def test_an_outage_longer_than_the_maximum_age_ends_as_expired() -> None:
    """Old news must not wait for ever."""
    policy = ExecutorPolicy(deadline_seconds=5, max_age=timedelta(seconds=0.03))
    judge = Judge(GOOD)
    started = asyncio.get_running_loop().time()

    def now() -> datetime:
        return NOON + timedelta(seconds=asyncio.get_running_loop().time() - started)

    record = await Executor(judge, MemoryAnswers(), "r1", policy, gate=Gate(holding=True)).record_of(
        REQUEST, now=now
    )

    assert isinstance(record, JudgeFailure)
    assert (record.outcome, judge.asked) == ("expired", 0)


@pytest.mark.parametrize("mark", ["system", "name"])
async def test_own_traffic_is_never_judged(mark: str) -> None:
    """Judgments of judgments would never end."""
    raw = REQUEST.model_dump()
    if mark == "system":
        raw["conversation"]["turns"][0]["messages"] = [
            {"role": "system", "content": f"{SIGNATURE}\nYou judge"},
            *raw["conversation"]["turns"][0]["messages"],
        ]
    else:
        raw["conversation"]["attributes"]["assistant"] = "conversation-monitor"
    judge = Judge(GOOD)

    record = await Executor(judge, MemoryAnswers(), "r1", POLICY).record_of(
        JudgeRequest.model_validate(raw), now=noon
    )

    assert isinstance(record, JudgeFailure)
    assert (record.kind, judge.asked) == (FailureKind.OWN_TRAFFIC, 0)


async def test_a_user_who_writes_the_signature_is_judged_all_the_same() -> None:
    """Else a user could switch the monitor off."""
    request = a_request(a_conversation([user(f"{SIGNATURE} hello"), assistant("Hello.")]))

    assert isinstance(
        await Executor(Judge(GOOD), MemoryAnswers(), "r1", POLICY).record_of(request, now=noon), Judgment
    )


async def test_a_fallback_judges_what_it_is_named_for_in_a_series_of_its_own() -> None:
    first = Judge(NotScored(kind=FailureKind.REFUSED, reason="no"))
    other = Judge(GOOD, version="rules")
    answers = MemoryAnswers()
    executor = Executor(first, answers, "r1", POLICY, fallback=other, fallback_on=[FailureKind.REFUSED])

    record = await executor.record_of(REQUEST, now=noon)
    again = await executor.record_of(REQUEST, now=noon)

    assert isinstance(record, Judgment)
    assert (record.judge.version, record.instead_of) == ("rules", FailureKind.REFUSED)
    assert again == record
    assert (first.asked, other.asked) == (1, 1)


async def test_a_fallback_does_not_judge_what_it_is_not_named_for() -> None:
    first, other = Judge(NotScored(kind=FailureKind.BUG, reason="no")), Judge(GOOD, version="rules")
    executor = Executor(
        first, MemoryAnswers(), "r1", POLICY, fallback=other, fallback_on=[FailureKind.REFUSED]
    )

    assert isinstance(await executor.record_of(REQUEST, now=noon), JudgeFailure)
    assert other.asked == 0


async def test_without_budget_nobody_is_asked_and_the_record_says_so() -> None:
    """Coverage shows it; a judgment that was not paid for is no score."""
    judge = Judge(GOOD)
    allowance = Allowance(MemoryPurse(), BudgetSection(tokens_per_hour=10))

    record = await Executor(judge, MemoryAnswers(), "r1", POLICY, allowance=allowance).record_of(
        REQUEST, now=noon
    )

    assert isinstance(record, JudgeFailure)
    assert (record.kind, judge.asked) == (FailureKind.BUDGET, 0)


async def test_a_fallback_counts_in_the_budget_and_stands_for_what_was_thinned_out() -> None:
    """A second model's money is money, and a judgment kept by chance weighs more whoever gives it."""
    purse, budget = MemoryPurse(), BudgetSection(tokens_per_hour=100_000)
    paid = Usage(prompt_tokens=900, completion_tokens=100)
    first = Judge(NotScored(kind=FailureKind.REFUSED, reason="no", usage=paid))
    other = Judge(GOOD.model_copy(update={"usage": paid}), version="other")
    await purse.settle(claims_of(budget, tenant="unknown", tokens=94_000, money=0, now=NOON))
    executor = Executor(
        first,
        MemoryAnswers(),
        "r1",
        POLICY,
        allowance=Allowance(purse, budget, answer_tokens=100),
        fallback=other,
        fallback_on=[FailureKind.REFUSED],
    )

    records = [
        await executor.record_of(
            a_request(a_conversation([user("Hello?"), assistant("Hello.")], id=f"c{number}")), now=noon
        )
        for number in range(3)
    ]

    judged = [record for record in records if isinstance(record, Judgment)]
    assert judged
    assert all(record.judge.version == "other" and (record.rate or 1) < 1 for record in judged)
    assert sum(purse.used.values()) == 94_000 + len(judged) * 2000
