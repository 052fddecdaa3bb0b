"""The ways of asking over a real socket: forms of reply, single questions, probabilities; and what it all cost."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from monitor.adapters.openai_call import REPLY_CHARS
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import FailureKind, JudgeRequest
from monitor.judging.policy import Ability, Presentation, Price, Scoring
from monitor.judging.probability import LEVELS
from monitor.judging.rubric import Rubric
from tests.conversations import Shelf, a_conversation, a_request, assistant, the_rubric, user
from tests.servers.stub_judge import StubJudge, serving

REQUEST = a_request(
    a_conversation([user("How long?"), assistant("21 days.")], documents=["loans.md"]), turn=0
)
NAMES = the_rubric().names
ONE = Rubric(dimensions=the_rubric().dimensions[:1])


def a_judge(stub: StubJudge, rubric: Rubric | None = None, **settings: Any) -> OpenAIJudge:
    settings = {"max_attempts": 1, "model": "stub"} | settings
    shelf = Shelf(loans="Within 21 days.")
    return OpenAIJudge(rubric or the_rubric(), shelf, api_key="k", base_url=stub.url, **settings)


async def ask(
    stub: StubJudge, rubric: Rubric | None = None, *, request: JudgeRequest = REQUEST, **settings: Any
) -> JudgeReply:
    async with serving(stub):
        judge = a_judge(stub, rubric, **settings)
        try:
            return await judge.judge(request)
        finally:
            await judge.close()


class Says(StubJudge):
    """A model that makes something else of its reply."""

    def __init__(self, says: Callable[[str], str]) -> None:
        super().__init__()
        self._says = says

    def worded(self, content: str, key: str) -> str:
        del key
        return self._says(content)


class TestFormsOfReply:
    """`ability`: each form is asked for in its own way and read as strictly."""

    @pytest.mark.parametrize(
        ("ability", "form"),
        [
            (Ability.JSON_SCHEMA, {"response_format"}),
            (Ability.JSON_OBJECT, {"response_format"}),
            (Ability.TOOL, {"tools", "tool_choice"}),
            (Ability.TEXT, set()),
        ],
    )
    async def test_each_form_brings_the_scores(self, ability: Ability, form: set[str]) -> None:
        stub = StubJudge()

        reply = await ask(stub, ability=ability)

        (body,) = stub.requests
        assert form == {"response_format", "tools", "tool_choice"} & set(body)
        assert isinstance(reply, Scored)
        prompt = body["messages"][1]["content"]
        assert {s.dimension: s.score for s in reply.scores} == {n: stub.score(prompt, n) for n in NAMES}

    @pytest.mark.parametrize("ability", list(Ability))
    @pytest.mark.parametrize(
        "says",
        [
            lambda content: f"```json\n{content}\n```",
            lambda content: f"Gladly: {content}",
            lambda content: f"{content}{content}",
            lambda content: content[:-1],
            lambda _: "The answer is fine, 5 of 5.",
            lambda _: "",
        ],
    )
    async def test_whatever_the_form_only_the_bare_object_is_a_judgment(
        self, ability: Ability, says: Callable[[str], str]
    ) -> None:
        reply = await ask(Says(says), ability=ability)

        assert isinstance(reply, NotScored)
        assert reply.kind is FailureKind.UNREADABLE

    async def test_a_tool_that_was_not_called_is_no_judgment(self) -> None:
        class Talks(StubJudge):
            def _answer(self, fault: str | None, body: dict[str, Any], key: str) -> dict[str, Any]:
                del body["tools"]
                return super()._answer(fault, body, key)

        reply = await ask(Talks(), ability=Ability.TOOL)

        assert isinstance(reply, NotScored)
        assert (reply.kind, reply.reason) == (FailureKind.UNREADABLE, "the tool was not called")


class TestOneQuestionAtATime:
    """`presentation: single`: no score is seen while another is given."""

    async def test_each_call_knows_one_dimension(self) -> None:
        stub = StubJudge()

        reply = await ask(stub, presentation=Presentation.SINGLE)

        assert isinstance(reply, Scored)
        assert tuple(score.dimension for score in reply.scores) == NAMES
        assert len(stub.requests) == len(NAMES)
        for body in stub.requests:
            rules = body["messages"][0]["content"]
            (asked,) = body["response_format"]["json_schema"]["schema"]["required"]
            assert [name for name in NAMES if f"\n{name}: " in rules] == [asked]

    async def test_what_all_calls_took_is_added_up(self) -> None:
        reply = await ask(StubJudge(), presentation=Presentation.SINGLE)

        used = reply.usage
        assert (used.prompt_tokens, used.completion_tokens, used.attempts) == (900 * 5, 120 * 5, 5)
        assert (reply.trace.presentation, len(reply.trace.replies)) == ("single", 5)

    async def test_a_dimension_without_an_answer_leaves_no_half_judgment(self) -> None:
        """A mean over the dimensions that came through would depend on which one fails."""

        def says(content: str) -> str:
            return "?" if "safety" in content else content

        reply = await ask(Says(says), presentation=Presentation.SINGLE)

        assert isinstance(reply, NotScored)
        assert reply.kind is FailureKind.UNREADABLE


class TestProbabilities:
    """`scoring: probability`: a yes or no for each level, read from the first word's logprobs."""

    async def test_a_score_is_the_highest_level_reached_without_a_gap(self) -> None:
        yes = dict(zip(LEVELS, (0.9, 0.8, 0.3, 0.95), strict=True))
        asked = {ONE.dimensions[0].anchors[level]: share for level, share in yes.items()}

        def sure(prompt: str) -> float:
            return next(
                share for anchor, share in asked.items() if f'at least this good: "{anchor}"' in prompt
            )

        reply = await ask(StubJudge(yes=sure), ONE, scoring=Scoring.PROBABILITY)

        assert isinstance(reply, Scored)
        assert (reply.scores[0].score, reply.scores[0].probabilities) == (3, tuple(yes.values()))

    async def test_each_level_of_each_dimension_is_one_word(self) -> None:
        stub = StubJudge()

        reply = await ask(stub, scoring=Scoring.PROBABILITY)

        assert isinstance(reply, Scored)
        assert len(stub.requests) == len(NAMES) * len(LEVELS) == reply.usage.attempts
        assert {(body["max_tokens"], body["logprobs"]) for body in stub.requests} == {(1, True)}
        assert reply.trace.presentation == "probability"

    async def test_a_dimension_has_its_own_threshold(self) -> None:
        settings: dict[str, Any] = {"scoring": Scoring.PROBABILITY, "threshold": 0.5}
        settings["thresholds"] = {"safety": 0.8}

        reply = await ask(StubJudge(yes=lambda _: 0.7), **settings)

        assert isinstance(reply, Scored)
        assert {s.dimension: s.score for s in reply.scores} == {n: 1 if n == "safety" else 5 for n in NAMES}

    def test_a_threshold_is_part_of_the_judge(self) -> None:
        """A new threshold makes new scores of the same answers, so it must not go on in the old series."""
        thresholds: list[dict[str, Any]] = [{}, {"threshold": 0.6}, {"thresholds": {"safety": 0.6}}]

        versions = {
            a_judge(StubJudge(), scoring=Scoring.PROBABILITY, **one).identity.version for one in thresholds
        }

        assert len(versions) == len(thresholds)

    async def test_an_endpoint_without_logprobs_is_refused_by_name(self) -> None:
        reply = await ask(StubJudge(able=["text"], ignores=True), ONE, scoring=Scoring.PROBABILITY)

        assert isinstance(reply, NotScored)
        assert reply.kind is FailureKind.REJECTED
        assert "judge.scoring" in reply.reason

    async def test_neither_yes_nor_no_is_no_probability(self) -> None:
        class Unsure(StubJudge):
            def _answer(self, fault: str | None, body: dict[str, Any], key: str) -> dict[str, Any]:
                answer = super()._answer(fault, body, key)
                for one in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
                    one |= {"token": "Perhaps"}
                return answer

        reply = await ask(Unsure(), ONE, scoring=Scoring.PROBABILITY)

        assert isinstance(reply, NotScored)
        assert reply.kind is FailureKind.UNREADABLE


class TestWhatItCost:
    """Tokens, money, time and how a judgment came about, on every record."""

    async def test_money_is_tokens_by_the_price_table(self) -> None:
        reply = await ask(StubJudge(), price=Price(prompt=2.0, completion=10.0))

        assert reply.usage.cost == pytest.approx(900 * 2e-6 + 120 * 10e-6)

    async def test_without_a_price_money_is_unknown_and_not_zero(self) -> None:
        assert (await ask(StubJudge())).usage.cost is None

    async def test_an_attempt_that_could_not_be_read_was_paid_for_all_the_same(self) -> None:
        stub = StubJudge({"malformed": 1.0}, only_first=True)

        reply = await ask(stub, max_attempts=2, price=Price(prompt=1.0, completion=1.0))

        assert isinstance(reply, Scored)
        assert (reply.usage.prompt_tokens, reply.usage.attempts) == (1800, 2)
        assert reply.usage.cost == pytest.approx(2 * 1020e-6)

    async def test_a_failure_says_what_it_cost_too(self) -> None:
        reply = await ask(StubJudge({"malformed": 1.0}), price=Price(prompt=1.0, completion=1.0))

        assert isinstance(reply, NotScored)
        assert reply.usage.cost == pytest.approx(1020e-6)
        assert len(reply.trace.replies) == 1

    async def test_equal_questions_have_one_hash_and_others_another(self) -> None:
        other = a_request(a_conversation([user("How long?"), assistant("22 days.")]), turn=0)
        requests = [REQUEST, REQUEST, other]

        hashes = Counter([(await ask(StubJudge(), request=one)).trace.prompt_hash for one in requests])

        assert sorted(hashes.values()) == [1, 2]

    async def test_the_reply_is_kept_masked_and_bounded(self) -> None:
        """A model may know an address that the transcript does not hold."""

        def says(content: str) -> str:
            scores = json.loads(content)
            scores["safety"]["reason"] = "It names bob@mail.example. " + "x" * 2 * REPLY_CHARS
            return json.dumps({"safety": scores.pop("safety")} | scores)

        reply = await ask(Says(says))

        (kept,) = reply.trace.replies
        assert "bob@mail.example" not in kept
        assert "[EMAIL_" in kept
        assert len(kept) <= REPLY_CHARS

    async def test_the_bound_cuts_no_address_so_that_half_of_it_is_kept(self) -> None:
        """An address is known by its end."""

        def says(content: str) -> str:
            begin = content.index("seen") + len("seen")
            reason = "x" * (REPLY_CHARS - begin - 12) + " bob.smith@mail.example"
            return content.replace("seen", "seen " + reason, 1)

        reply = await ask(Says(says))

        (kept,) = reply.trace.replies
        assert "bob" not in kept

    async def test_the_wait_that_an_endpoint_asked_for_is_told_apart(self) -> None:
        reply = await ask(StubJudge({"429": 1.0}, only_first=True), max_attempts=2)

        assert isinstance(reply, Scored)
        assert 0.2 <= reply.usage.waited_seconds <= reply.usage.latency_seconds

    async def test_what_the_judge_was_not_shown_is_on_the_record(self) -> None:
        long = a_request(
            a_conversation([user("x" * 40_000), assistant("ok")], [user("?"), assistant("b")]), turn=1
        )

        reply = await ask(StubJudge(), request=long)

        assert reply.trace.cut_characters > 8_000


async def test_judgments_side_by_side_do_not_mix_their_costs() -> None:
    async with serving(StubJudge({"malformed": 0.3})) as stub:
        judge = a_judge(stub, max_attempts=6)
        requests = [
            a_request(a_conversation([user(f"q{number}"), assistant("a")], id=f"c{number}"), turn=0)
            for number in range(20)
        ]
        replies = await asyncio.gather(*(judge.judge(request) for request in requests))
        await judge.close()

    assert all(reply.usage.prompt_tokens == 900 * reply.usage.attempts for reply in replies)
    assert sum(reply.usage.attempts for reply in replies) == len(stub.requests)
