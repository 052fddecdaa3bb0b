import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from monitor.intake.decode import Rejected, decode
from monitor.intake.event import EndEvent, TurnEvent, WholeConversationEvent
from monitor.intake.formats.openai_chat import Shape, events_of

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def a_record(**changes: Any) -> dict[str, Any]:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_order", "arguments": '{"order_id": "A-1"}'},
    }
    record = {
        "id": "conv-1",
        "intent": "returns",
        "channel": "web",
        "policy_ref": "policies/returns.md",
        "model": "gpt-x",
        "created_at": None,
        "messages": [
            {"role": "user", "content": "where is A-1?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "{}"},
            {"role": "assistant", "content": "On its way."},
            {"role": "user", "content": "thanks"},
            {"role": "assistant", "content": "Welcome!"},
        ],
        "labels": {"task_success": 0.0},
        "release": "bad",
    }
    return record | changes


def told(record: dict[str, Any], shape: Shape) -> list[Any]:
    events = events_of(record, shape=shape, start=START)
    assert isinstance(events, list), events
    return [decode(json.dumps(event).encode()) for event in events]


def test_a_conversation_is_told_as_its_turns_and_an_end() -> None:
    first, second, end = told(a_record(), Shape.TURNS)

    assert isinstance(first, TurnEvent)
    assert isinstance(second, TurnEvent)
    assert isinstance(end, EndEvent)
    assert [len(first.messages), len(second.messages)] == [4, 2]
    assert [first.turn_index, second.turn_index] == [0, 1]
    assert first.messages[1].tool_calls[0].arguments == '{"order_id": "A-1"}'


def test_a_conversation_is_told_in_one_piece() -> None:
    (whole,) = told(a_record(), Shape.WHOLE)

    assert isinstance(whole, WholeConversationEvent)
    assert len(whole.messages) == 6


@pytest.mark.parametrize("shape", Shape)
def test_the_same_record_has_the_same_events_twice(shape: Shape) -> None:
    """A replay twice must add nothing, so ids may depend on nothing but the record."""
    assert events_of(a_record(), shape=shape, start=START) == events_of(a_record(), shape=shape, start=START)


def test_event_ids_are_distinct_and_name_their_conversation() -> None:
    ids = [event.event_id for shape in Shape for event in told(a_record(), shape)]

    assert len(set(ids)) == len(ids)
    assert all(event_id.startswith("conv-1:") for event_id in ids)


def test_an_overlong_conversation_id_still_makes_valid_event_ids() -> None:
    assert not any(isinstance(event, Rejected) for event in told(a_record(id="x" * 256), Shape.TURNS))


def test_labels_are_not_passed_on() -> None:
    """A judge that sees the answer key measures nothing."""
    events = events_of(a_record(), shape=Shape.WHOLE, start=START)

    assert "task_success" not in json.dumps(events)
    assert "bad" not in json.dumps(events)


def test_the_policy_becomes_a_reference_by_its_file_name() -> None:
    first, *_ = told(a_record(), Shape.TURNS)

    assert [reference.id for reference in first.references] == ["returns.md"]


@pytest.mark.parametrize("shape", Shape)
def test_references_are_passed_on_with_their_version_and_text(shape: Shape) -> None:
    """Without them facts are judged against nothing; a bare id beside the same id with its text says less."""
    references = ["prices.md", {"id": "returns.md", "version": "7", "text": "Within 30 days."}]

    events = told(a_record(references=references), shape)

    for event in events:
        if not isinstance(event, EndEvent):
            known = {one.id: (one.version, one.text) for one in event.references}
            assert known == {"returns.md": ("7", "Within 30 days."), "prices.md": (None, None)}


def test_the_model_becomes_the_one_asked_for() -> None:
    first, *_ = told(a_record(), Shape.TURNS)

    assert first.served_by.model_asked == "gpt-x"
    assert first.served_by.model_answered is None


def test_times_of_messages_are_kept() -> None:
    record = a_record(
        messages=[
            {"role": "user", "content": "a", "ts": "2019-07-09T15:06:03.000Z"},
            {"role": "assistant", "content": "b", "ts": "2019-07-09T15:08:00.000Z"},
            {"role": "user", "content": "c", "ts": "2019-07-09T16:00:00.000Z"},
        ]
    )

    first, second, end = told(record, Shape.TURNS)

    assert first.occurred_at == datetime(2019, 7, 9, 15, 6, 3, tzinfo=UTC)
    assert first.answered_at == datetime(2019, 7, 9, 15, 8, tzinfo=UTC)
    assert second.occurred_at == end.occurred_at == datetime(2019, 7, 9, 16, tzinfo=UTC)


def test_unknown_times_are_evenly_spaced_from_the_start() -> None:
    first, second, end = told(a_record(), Shape.TURNS)

    assert first.occurred_at == START
    assert second.occurred_at == START + timedelta(seconds=80)
    assert end.occurred_at == START + timedelta(seconds=100)


def test_a_clock_that_runs_backwards_does_not_shuffle_turns() -> None:
    messages = [
        {"role": "user", "content": "a", "ts": "2026-01-05T10:00:00Z"},
        {"role": "assistant", "content": "b", "ts": "2026-01-05T09:59:00Z"},
        {"role": "user", "content": "c", "ts": "2026-01-05T09:58:00Z"},
    ]

    times = [event.occurred_at for event in told(a_record(messages=messages), Shape.TURNS)]

    assert times == sorted(times)


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ({"messages": []}, "messages"),
        ({"id": ""}, "id"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "role"),
        ({"created_at": "yesterday"}, "created_at"),
        ({"references": [{"text": "without an id"}]}, "references"),
    ],
)
def test_a_record_that_is_no_conversation_says_why(fault: dict[str, Any], named: str) -> None:
    rejected = events_of(a_record(**fault), shape=Shape.TURNS, start=START)

    assert isinstance(rejected, Rejected)
    assert named in rejected.reason
