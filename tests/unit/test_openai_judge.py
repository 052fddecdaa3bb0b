"""The judge over a real socket, against an endpoint with faults drawn by hash."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from benchmarks.judging import run
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import FailureKind, JudgeRequest
from monitor.judging.policy import Ability
from tests.conversations import Shelf, a_conversation, a_request, assistant, the_rubric, user
from tests.servers.stub_judge import StubJudge, serving

KEY = "sk-never-log-this-key"


def requests(count: int) -> list[JudgeRequest]:
    turns = [[user(f"question {index}"), assistant(f"answer {index}")] for index in range(count)]
    return [
        a_request(a_conversation(turn, documents=["loans.md"], id=f"c{index}"), turn=0)
        for index, turn in enumerate(turns)
    ]


@asynccontextmanager
async def a_judge(stub: StubJudge, **settings: Any) -> AsyncIterator[OpenAIJudge]:
    async with serving(stub):
        settings = {"timeout_seconds": 0.5, "deadline_seconds": 5.0, "max_attempts": 4} | settings
        judge = OpenAIJudge(
            the_rubric(),
            Shelf(loans="Within 21 days."),
            model="stub",
            api_key=KEY,
            base_url=stub.url,
            **settings,
        )
        try:
            yield judge
        finally:
            await judge.close()


async def ask(stub: StubJudge, **settings: Any) -> JudgeReply:
    async with a_judge(stub, **settings) as judge:
        return await judge.judge(requests(1)[0])


async def test_scores_arrive_with_model_tokens_and_time() -> None:
    stub = StubJudge()

    reply = await ask(stub)

    assert isinstance(reply, Scored)
    prompt = stub.requests[0]["messages"][1]["content"]
    assert {s.dimension: s.score for s in reply.scores} == {
        n: stub.score(prompt, n) for n in the_rubric().names
    }
    assert reply.model_answered == "stub-2026-01-05"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.attempts) == (900, 120, 1)
    assert 0 < reply.usage.latency_seconds < 5


async def test_the_request_holds_the_documents_and_the_settings() -> None:
    stub = StubJudge()

    await ask(stub, temperature=0.0, max_tokens=700)

    (body,) = stub.requests
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("stub", 0.0, 700)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "Within 21 days." in body["messages"][1]["content"]
    assert stub.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "fault",
    [
        "429",
        "500",
        "429_bare",
        "hang",
        "drip",
        "drop",
        "html",
        "no_choices",
        "broken_body",
        "malformed",
        "empty",
        "fenced",
        "array",
        "missing",
        "out_of_range",
    ],
)
async def test_one_fault_is_cured_by_another_attempt(fault: str) -> None:
    stub = StubJudge({fault: 1.0}, only_first=True)

    reply = await ask(stub)

    assert isinstance(reply, Scored), reply
    assert reply.usage.attempts == 2


@pytest.mark.parametrize(
    ("fault", "kind", "calls"),
    [
        ("429", FailureKind.RATE_LIMITED, 3),
        ("500", FailureKind.UNAVAILABLE, 3),
        ("hang", FailureKind.TIMEOUT, 3),
        ("drip", FailureKind.TIMEOUT, 3),
        ("drop", FailureKind.UNAVAILABLE, 3),
        ("html", FailureKind.UNAVAILABLE, 3),
        ("broken_body", FailureKind.UNAVAILABLE, 3),
        ("no_choices", FailureKind.UNAVAILABLE, 3),
        ("malformed", FailureKind.UNREADABLE, 3),
        ("out_of_range", FailureKind.UNREADABLE, 3),
        ("truncated", FailureKind.TRUNCATED, 1),
        ("refusal", FailureKind.REFUSED, 1),
        ("filtered", FailureKind.CONTENT_FILTER, 1),
    ],
)
async def test_a_lasting_fault_is_a_typed_failure_after_few_calls(
    fault: str, kind: FailureKind, calls: int
) -> None:
    """What no attempt can cure is not paid twice; what may be cured is bounded."""
    stub = StubJudge({fault: 1.0})

    reply = await ask(stub, max_attempts=3)

    assert isinstance(reply, NotScored)
    assert reply.kind is kind
    assert len(stub.requests) == calls == reply.usage.attempts
    assert reply.reason


async def test_the_time_that_the_endpoint_asks_for_is_waited() -> None:
    for fault, told in (("429", 0.2), ("429_date", 1.0)):
        reply = await ask(StubJudge({fault: 1.0}, only_first=True))

        assert isinstance(reply, Scored)
        assert told <= reply.usage.latency_seconds < told + 1.0


async def test_a_second_asking_says_what_was_wrong_and_repeats_no_reply() -> None:
    stub = StubJudge({"out_of_range": 1.0}, only_first=True)

    await ask(stub)

    again = stub.requests[1]["messages"]
    assert len(again) == 3
    assert "safety: score 7 is out of 1 to 5" in again[2]["content"]


async def test_the_deadline_ends_all_attempts() -> None:
    reply = await ask(StubJudge({"hang": 1.0}), timeout_seconds=5.0, deadline_seconds=0.4)

    assert isinstance(reply, NotScored)
    assert reply.kind is FailureKind.TIMEOUT
    assert reply.usage.latency_seconds < 2


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    reply = await ask(StubJudge({"429_date": 1.0}), deadline_seconds=0.9)

    assert isinstance(reply, NotScored)
    assert reply.kind is FailureKind.RATE_LIMITED
    assert reply.usage.latency_seconds < 0.5


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    judge = OpenAIJudge(
        the_rubric(), Shelf(), model="m", api_key=KEY, base_url="http://127.0.0.1:9/v1", max_attempts=2
    )

    reply = await judge.judge(requests(1)[0])
    await judge.close()

    assert isinstance(reply, NotScored)
    assert reply.kind is FailureKind.UNAVAILABLE


async def test_without_an_answer_nobody_is_asked() -> None:
    stub = StubJudge()
    async with a_judge(stub) as judge:
        reply = await judge.judge(a_request(a_conversation([user("hello?")]), turn=0))

    assert isinstance(reply, Scored)
    assert {score.score for score in reply.scores} == {None}
    assert reply.usage.attempts == 0
    assert stub.requests == []


async def test_neither_key_nor_texts_are_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stub = StubJudge({"429": 1.0})

    reply = await ask(stub, max_attempts=1)

    told = caplog.text + reply.model_dump_json()
    assert KEY not in told
    assert "secret words" not in told
    assert "question 0" not in told


async def test_a_cancelled_judgment_is_cancelled() -> None:
    async with a_judge(StubJudge({"hang": 1.0}), timeout_seconds=20.0) as judge:
        task = asyncio.create_task(judge.judge(requests(1)[0]))
        await asyncio.sleep(0.2)
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_mixture_of_faults_loses_nothing_and_gets_nothing_wrong() -> None:
    """The short version of `benchmarks/judging.py`, whose figures are in docs/judge.md."""
    faults = {"429": 0.1, "500": 0.02, "malformed": 0.025, "out_of_range": 0.025, "drop": 0.01, "html": 0.01}
    stub = StubJudge(faults, keeps_requests=False)
    async with serving(stub):
        # The deadline is not what is tested here, and a busy machine must not reach it.
        told = await run(stub.url, count=200, concurrency=50, deadline=60.0)

    assert (told["judged"], told["failed_by_reason"], told["lost"], told["wrong"]) == (200, {}, 0, 0)
    assert sum(stub.drawn[fault] for fault in faults) > 20
    # Each fault costs the one call that it spoils.
    assert told["calls"] == stub.drawn.total() == 200 + sum(stub.drawn[fault] for fault in faults)


def test_what_changes_the_question_changes_the_version() -> None:
    def version(**settings: Any) -> str:
        return OpenAIJudge(
            the_rubric(), Shelf(), **{"model": "m", "api_key": KEY} | settings
        ).identity.version

    asked = [
        {},
        {"model": "n"},
        {"temperature": 1.0},
        {"max_tokens": 9},
        {"stage": "second"},
        {"ability": Ability.TEXT},
    ]
    waited = [
        {"timeout_seconds": 1.0},
        {"max_attempts": 9},
        {"base_url": "http://elsewhere/v1"},
        {"api_key": "other"},
    ]
    assert len({version(**settings) for settings in asked}) == len(asked)
    assert {version(**settings) for settings in waited} == {version()}
