from hypothesis import given
from hypothesis import strategies as st

from monitor.conversations.turns import split_turns
from monitor.intake.event import Message


def said(*roles: str) -> list[Message]:
    return [Message(role=role, content=f"{role}{index}") for index, role in enumerate(roles)]


def shapes(*roles: str) -> list[list[str]]:
    return [[message.role.value for message in turn] for turn in split_turns(said(*roles))]


def test_a_turn_ends_with_the_final_reply_and_keeps_its_tool_steps() -> None:
    """One user message with many tool steps is one turn (A7), or one question would be judged many times."""
    assert shapes("user", "assistant", "tool", "assistant", "tool", "assistant", "user", "assistant") == [
        ["user", "assistant", "tool", "assistant", "tool", "assistant"],
        ["user", "assistant"],
    ]


def test_a_greeting_belongs_to_the_first_turn() -> None:
    assert shapes("assistant", "user", "assistant", "user", "assistant") == [
        ["assistant", "user", "assistant"],
        ["user", "assistant"],
    ]


def test_a_system_prompt_belongs_to_the_first_turn() -> None:
    assert shapes("system", "user", "assistant") == [["system", "user", "assistant"]]


def test_several_user_messages_in_a_row_are_one_question() -> None:
    assert shapes("user", "user", "assistant") == [["user", "user", "assistant"]]


def test_a_last_question_without_an_answer_is_a_turn_of_its_own() -> None:
    assert shapes("user", "assistant", "user") == [["user", "assistant"], ["user"]]


def test_a_question_that_interrupts_tool_steps_begins_a_turn() -> None:
    assert shapes("user", "assistant", "tool", "user", "assistant") == [
        ["user", "assistant", "tool"],
        ["user", "assistant"],
    ]


def test_no_messages_are_no_turns() -> None:
    assert split_turns([]) == ()


@given(st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), max_size=30))
def test_every_message_is_in_exactly_one_turn_and_in_its_order(roles: list[str]) -> None:
    messages = said(*roles)

    turns = split_turns(messages)

    assert [message for turn in turns for message in turn] == messages
    assert all(turns)
