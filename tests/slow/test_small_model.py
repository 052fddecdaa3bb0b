"""The judge on a real model of 135 million parameters, through llama.cpp's server: the wire format, not the wisdom.

`make slow` installs the server and the model beside the .venv; its scores mean nothing, but their form must hold.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.adapters.openai_probe import probe
from monitor.judging.judge import NotScored, Scored
from monitor.judging.judgment import FailureKind, JudgeRequest
from monitor.judging.limiter import LimiterPolicy
from monitor.judging.policy import JudgePolicy, Scoring
from monitor.judging.probability import LEVELS
from monitor.judging.rubric import Rubric
from tests.conversations import ROOT, Shelf, a_conversation, a_request, assistant, the_rubric, user
from tests.servers.small_model import small_model

FOLDER = ROOT / ".venv" / "models"
DEADLINE_SECONDS = 300.0
"""It is slow, and a busy machine makes it slower; what it can do is tested, not how fast."""
ONE = Rubric(dimensions=the_rubric().dimensions[:1])
"""One dimension: five take five times as long, and show nothing more of the form."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pytest.importorskip("xllamacpp", reason="`make slow` installs it")
    found: list[Path] = sorted(FOLDER.rglob("SmolLM2*.gguf"))
    if not found:
        pytest.skip(f"no model in {FOLDER.relative_to(ROOT)}; `make slow` downloads it")
    with small_model(found[0]) as address:
        yield address


def a_judge(url: str, rubric: Rubric, scoring: Scoring) -> OpenAIJudge:
    endpoint = Endpoint(
        api_key="none",
        base_url=url,
        timeout_seconds=DEADLINE_SECONDS / 3,
        limits=LimiterPolicy(concurrency_max=1),
    )
    return OpenAIJudge(
        rubric,
        Shelf(loans="Books are lent for 21 days."),
        model="smollm2",
        endpoint=endpoint,
        timeout_seconds=DEADLINE_SECONDS / 3,
        deadline_seconds=DEADLINE_SECONDS,
        max_tokens=500,
        scoring=scoring,
    )


def questions(count: int) -> list[JudgeRequest]:
    return [
        a_request(
            a_conversation(
                [
                    user(f"How many days may I keep book {number}?"),
                    assistant(f"You may keep it {number} days."),
                ],
                documents=["loans.md"],
            ),
            turn=0,
        )
        for number in range(20, 20 + count)
    ]


async def test_of_ten_judgments_with_a_schema_all_that_end_are_valid(url: str) -> None:
    """The strictest reader, on a model that can do little else than keep to a grammar.

    Now and then it never ends a text: a schema cannot bound one everywhere, so that is `truncated` and no score.
    """
    judge = a_judge(url, ONE, Scoring.WRITTEN)

    replies = [await judge.judge(request) for request in questions(10)]
    await judge.close()

    failed = [reply for reply in replies if isinstance(reply, NotScored)]
    assert {reply.kind for reply in failed} <= {FailureKind.TRUNCATED}
    assert len(failed) <= 5
    assert {reply.usage.attempts for reply in replies} == {1}
    assert all(reply.usage.completion_tokens > 0 for reply in replies)


async def test_probability_gives_a_number_for_every_level(url: str) -> None:
    """Four questions share their beginning; each is read from the logprobs of one word."""
    judge = a_judge(url, ONE, Scoring.PROBABILITY)

    replies = [await judge.judge(request) for request in questions(2)]
    await judge.close()

    for reply in replies:
        assert isinstance(reply, Scored), reply
        (score,) = reply.scores
        assert len(score.probabilities) == len(LEVELS)
        assert all(0 < probability < 1 for probability in score.probabilities)


async def test_the_probe_says_that_it_is_able_to(url: str) -> None:
    for scoring in Scoring:
        policy = JudgePolicy(model="smollm2", scoring=scoring, timeout_seconds=100, deadline_seconds=300)
        endpoint = Endpoint(api_key="none", base_url=url, timeout_seconds=100)

        assert await probe(endpoint, policy) is None
        await endpoint.close()


async def test_a_prompt_beyond_its_context_is_a_typed_failure(url: str) -> None:
    """Not a truncated prompt that is judged all the same."""
    judge = a_judge(url, the_rubric(), Scoring.WRITTEN)
    long = a_request(a_conversation([user("why? " * 7000), assistant("Because.")]), turn=0)

    reply = await judge.judge(long)
    await judge.close()

    assert isinstance(reply, NotScored)
    assert reply.kind is FailureKind.REJECTED
