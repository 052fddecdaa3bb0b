"""Long conversations: what is cut, what never is, and that it is recorded."""

from datetime import timedelta

from monitor.conversations.bounds import CUT, bounded
from monitor.conversations.conversation import Conversation, Turn
from monitor.intake.event import Message, Role, ToolCall
from tests.events import MINUTE, NOON


def a_turn(index: int, *texts: str, arguments: str = "") -> Turn:
    calls = (ToolCall(id="t", name="find", arguments=arguments),) if arguments else ()
    messages = [
        Message(role=Role.USER if place % 2 == 0 else Role.ASSISTANT, content=text)
        for place, text in enumerate(texts)
    ]
    if calls:
        messages.insert(1, Message(role=Role.ASSISTANT, tool_calls=calls))
    at = NOON + index * MINUTE
    return Turn(event_id=f"t{index}", turn_index=index, occurred_at=at, messages=tuple(messages))


def a_conversation(*turns: Turn) -> Conversation:
    return Conversation(id="c1", turns=turns, rate=0.5)


def length(whole: Conversation) -> int:
    return sum(len(message.content) for turn in whole.turns for message in turn.messages)


def test_a_conversation_that_fits_is_left_as_it_is() -> None:
    """Most do, and nothing may be said to be cut that was not."""
    whole = a_conversation(a_turn(0, "hello", "hi"), a_turn(1, "bye", "bye"))

    assert bounded(whole, max_chars=1000) is whole


def test_the_oldest_turns_go_first_and_are_counted() -> None:
    """The judged turn is the last one; what led up to it matters more the nearer it is."""
    whole = a_conversation(*(a_turn(index, "q" * 100, "a" * 100) for index in range(5)))

    cut = bounded(whole, max_chars=450)

    assert [turn.turn_index for turn in cut.turns] == [3, 4]
    assert (cut.cut_turns, cut.cut_text, cut.rate) == (3, False, 0.5)


def test_a_last_turn_that_is_too_long_by_itself_loses_the_middle_of_its_messages() -> None:
    """What was asked stands at the beginning, and what was decided at the end."""
    answer = "It begins. " + "x" * 100_000 + " It ends."
    whole = a_conversation(a_turn(0, "before"), a_turn(1, "What now?", answer))

    cut = bounded(whole, max_chars=10_000)

    assert (cut.cut_turns, cut.cut_text) == (1, True)
    assert length(cut) <= 10_000
    text = cut.turns[0].messages[1].content
    assert text.startswith("It begins.")
    assert text.endswith("It ends.")
    assert CUT in text
    assert cut.turns[0].messages[0].content == "What now?"


def test_arguments_of_a_tool_that_are_too_long_are_left_out() -> None:
    """A half argument is no JSON, and a judge would call it the assistant's fault."""
    whole = a_conversation(a_turn(0, "Find it.", "Found.", arguments='{"blob": "' + "y" * 50_000 + '"}'))

    cut = bounded(whole, max_chars=5_000)

    assert [call.arguments for message in cut.turns[0].messages for call in message.tool_calls] == [CUT]


def test_a_short_time_later_nothing_has_changed() -> None:
    """Bounding twice is bounding once, or a redelivered request would differ."""
    whole = a_conversation(*(a_turn(index, "q" * 400, "a" * 400) for index in range(4)))
    once = bounded(whole, max_chars=1000)

    assert bounded(once, max_chars=1000) == once
    assert once.turns[-1].occurred_at - NOON == timedelta(minutes=3)
