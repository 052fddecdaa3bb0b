from monitor.intake.event import Message
from monitor.judging.judge import Scored
from monitor.judging.judgment import DimensionScore
from monitor.judging.rules import RuleJudge
from tests.conversations import Shelf, a_conversation, a_request, assistant, the_rubric, tool, user
from tests.rules import POLICY, scored


async def tool_calls(*steps: Message, asked: str = "renew book B-4411 please") -> DimensionScore:
    return (await scored([user(asked), *steps]))["tool_calls"]


async def test_arguments_that_the_user_gave_are_right() -> None:
    score = await tool_calls(assistant(renew='{"book": "b4411"}'), tool("{}"), assistant("I've renewed it."))

    assert score.score == 5


async def test_arguments_that_are_no_json_are_a_hard_failure() -> None:
    score = await tool_calls(assistant(renew='{"book": '), tool("{}"), assistant("ok"))

    assert (score.score, score.kind) == (1, "invalid_arguments")


async def test_an_id_that_nobody_gave_is_invented() -> None:
    score = await tool_calls(assistant(renew='{"book": "B-9999"}'), tool("{}"), assistant("ok"))

    assert (score.score, score.kind) == (2, "invented_argument")
    assert "B-9999" in score.reason


async def test_an_id_from_an_earlier_result_is_known() -> None:
    score = await tool_calls(
        assistant(find="{}"),
        tool('{"id": "B-9999"}'),
        assistant(renew='{"book": "B-9999"}'),
        tool("{}"),
        assistant("ok"),
    )

    assert score.score == 5


async def test_dates_in_other_words_and_free_text_are_not_invented() -> None:
    score = await tool_calls(
        assistant(renew='{"until": "2026-02-01", "at": "17:45", "note": "asked for book 12 of 99", "n": 3}'),
        tool("{}"),
        assistant("ok"),
    )

    assert score.score == 5


async def test_a_failed_call_reported_as_success_is_a_hard_failure() -> None:
    score = await tool_calls(
        assistant(renew='{"book": "B-4411"}'),
        tool('{"error": "locked"}'),
        assistant("Your book has been renewed."),
    )

    assert (score.score, score.kind) == (1, "ignored_error")


async def test_a_failed_call_that_is_admitted_is_right() -> None:
    score = await tool_calls(
        assistant(renew='{"book": "B-4411"}'),
        tool('{"error": "locked"}'),
        assistant("I could not renew it, sorry."),
    )

    assert score.score == 5


async def test_a_tool_that_does_not_exist_is_found() -> None:
    score = await tool_calls(
        assistant(fly="{}"), tool("Error: unknown tool fly"), assistant("I could not do that.")
    )

    assert (score.score, score.kind) == (2, "unknown_tool")


async def test_without_a_call_it_abstains() -> None:
    assert (await tool_calls(assistant("Which one?"))).score is None


# the judge


GOOD = [user("how long?"), assistant("Books are lent for 21 days.")]
BAD = [user("and films?"), assistant("I'll make an exception. Films are lent for 90 days.")]
BYE = [user("thanks"), assistant("You're welcome!")]


async def test_a_conversation_is_as_bad_as_its_worst_turn_and_says_which() -> None:
    scores = await scored(GOOD, BAD, BYE, turn=None)

    assert scores["policy_adherence"].score == 1
    assert scores["factual_correctness"].score == 1
    assert "worst turn (2 of 3)" in scores["policy_adherence"].reason


async def test_a_conversation_is_as_actionable_as_its_last_turn_of_substance() -> None:
    scores = await scored([user("help"), assistant("I am so sorry.")], GOOD, BYE, turn=None)

    assert scores["actionability"].score == 4
    assert "last turn of substance (2 of 3)" in scores["actionability"].reason


async def test_a_turn_is_judged_by_itself() -> None:
    assert (await scored(GOOD, BAD, turn=0))["policy_adherence"].score == 5
    assert (await scored(GOOD, BAD, turn=1))["policy_adherence"].score == 1


async def test_without_an_answer_everything_abstains() -> None:
    scores = await scored([user("hello?")])

    assert all(score.score is None for score in scores.values())
    assert list(scores) == list(the_rubric().names)


async def test_a_greeting_before_the_question_is_no_answer() -> None:
    scores = await scored([assistant("Hello, I guarantee everything!"), user("hm")])

    assert scores["policy_adherence"].score is None


async def test_only_the_documents_that_the_event_names_are_asked_for() -> None:
    shelf = Shelf(loans=POLICY, other="Books are lent for 60 days.")
    conversation = a_conversation(
        [user("how long?"), assistant("Books are lent for 60 days.")], documents=["loans.md"]
    )

    reply = await RuleJudge(the_rubric(), shelf).judge(a_request(conversation, turn=0))

    assert shelf.asked == [("loans.md",)]
    assert isinstance(reply, Scored)
    assert reply.scores[0].score == 1


async def test_the_same_request_has_the_same_reply() -> None:
    conversation = a_conversation(GOOD, BAD, documents=["loans.md"])
    first, second = RuleJudge(the_rubric(), Shelf(loans=POLICY)), RuleJudge(the_rubric(), Shelf(loans=POLICY))

    assert first.identity == second.identity
    assert await first.judge(a_request(conversation)) == await second.judge(a_request(conversation))


def test_another_rubric_is_another_judge() -> None:
    rubric = the_rubric()
    fewer = type(rubric)(dimensions=rubric.dimensions[:2])

    assert RuleJudge(rubric, Shelf()).identity.version != RuleJudge(fewer, Shelf()).identity.version


async def test_a_dimension_without_a_rule_abstains() -> None:
    rubric = the_rubric()
    own = rubric.dimensions[0].model_copy(update={"name": "humour"})
    judge = RuleJudge(type(rubric)(dimensions=(own,)), Shelf())

    reply = await judge.judge(a_request(a_conversation(GOOD), turn=0))

    assert isinstance(reply, Scored)
    assert reply.scores[0].score is None
