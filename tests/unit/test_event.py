"""Events as producers send them: OpenAI's shapes in, one shape out."""

from datetime import UTC, datetime
from typing import Any

import pytest

from monitor.intake.decode import Rejected, decode
from monitor.intake.event import (
    EVENT_TYPES,
    ChangeEvent,
    FeedbackEvent,
    Message,
    Role,
    ServedBy,
    Thumb,
    TurnEvent,
    WholeConversationEvent,
)
from tests.events import an_event, raw


def the_turn(*messages: dict[str, Any]) -> TurnEvent:
    event = decode(raw(messages=list(messages)))
    assert isinstance(event, TurnEvent), event
    return event


def the_message(**fields: Any) -> Message:
    return the_turn({"role": "assistant"} | fields).messages[0]


class TestMessages:
    def test_an_assistant_that_only_calls_a_tool_has_no_content(self) -> None:
        """OpenAI sends null there; it is no fault of the producer."""
        called = {"id": "call_1", "type": "function", "function": {"name": "track", "arguments": '{"id": 7}'}}

        message = the_message(content=None, tool_calls=[called])

        assert message.content == ""
        [call] = message.tool_calls
        assert (call.id, call.name, call.arguments) == ("call_1", "track", '{"id": 7}')

    def test_arguments_that_are_no_json_are_kept_as_the_model_wrote_them(self) -> None:
        """Broken arguments are what the tool call dimension judges; they must arrive."""
        called = {"id": "1", "function": {"name": "track", "arguments": '{"id": 7,,'}}

        assert the_message(tool_calls=[called]).tool_calls[0].arguments == '{"id": 7,,'

    @pytest.mark.parametrize("arguments", [None, ""])
    def test_a_call_without_arguments_has_an_empty_text(self, arguments: str | None) -> None:
        """Tools without parameters are called so."""
        called = {"function": {"name": "now", "arguments": arguments}}

        assert the_message(tool_calls=[called]).tool_calls[0].arguments == ""

    def test_parts_become_one_text_and_what_is_no_text_is_named(self) -> None:
        """A judge must know that there was a picture, and that it cannot see it."""
        parts = [
            {"type": "text", "text": "Look:"},
            {"type": "image_url", "image_url": {"url": "data:..."}},
            {"type": "refusal", "refusal": "I cannot."},
            "bare",
        ]

        assert the_message(content=parts).content == "Look:\n[image_url]\nI cannot.\nbare"

    def test_a_part_that_is_neither_text_nor_object_is_a_fault(self) -> None:
        """Dropped in silence, it would be missing from the transcript."""
        rejected = decode(raw(messages=[{"role": "user", "content": [7]}]))

        assert isinstance(rejected, Rejected)
        assert "messages.0.content" in rejected.reason

    @pytest.mark.parametrize(
        ("said", "meant"),
        [
            ("developer", Role.SYSTEM),
            ("system", Role.SYSTEM),
            ("function", Role.TOOL),
            ("tool", Role.TOOL),
            ("human", Role.USER),
            ("ai", Role.ASSISTANT),
        ],
    )
    def test_other_names_of_roles_are_known(self, said: str, meant: Role) -> None:
        """Producers are older and younger than today's interface."""
        assert the_message(role=said, content="x").role is meant

    def test_a_role_that_nobody_knows_is_a_fault(self) -> None:
        """Guessing who spoke would judge the wrong one."""
        assert isinstance(decode(raw(messages=[{"role": "narrator", "content": "x"}])), Rejected)

    def test_a_tools_answer_keeps_its_call(self) -> None:
        """The judge needs to know which call failed."""
        message = the_message(role="tool", content="404", tool_call_id="call_1", name="track")

        assert (message.tool_call_id, message.name) == ("call_1", "track")

    def test_null_tool_calls_are_none(self) -> None:
        """Serializers write null for an empty list."""
        assert the_message(content="x", tool_calls=None).tool_calls == ()


class TestEvents:
    @pytest.mark.parametrize("kind", EVENT_TYPES)
    def test_every_kind_of_event_is_read(self, kind: str) -> None:
        """The registry of kinds and the union must not drift apart."""
        event = decode(raw(kind=kind))

        assert not isinstance(event, Rejected)
        assert event.type == kind

    def test_what_we_do_not_know_is_ignored_on_every_level(self) -> None:
        """Producers add fields without asking us."""
        event = decode(
            raw(
                new_field={"deep": [1]},
                signals={"thumb": "up", "mood": "good"},
                served_by={"model_asked": "m", "gpu": 7},
                messages=[{"role": "user", "content": "x", "audio": None}],
            )
        )

        assert isinstance(event, TurnEvent)
        assert event.signals.thumb is Thumb.UP
        assert "new_field" not in event.model_dump()

    def test_a_time_needs_its_zone(self) -> None:
        """A moment without one may be hours away from where it is put."""
        rejected = decode(raw().replace(b"+00:00", b""))

        assert isinstance(rejected, Rejected)
        assert "occurred_at" in rejected.reason
        assert "timezone" in rejected.reason

    def test_a_time_is_held_in_utc(self) -> None:
        """Buckets and boundaries are cut in one zone."""
        event = decode(raw(occurred_at="2026-01-31T13:00:00+01:00"))

        assert isinstance(event, TurnEvent)
        assert event.occurred_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
        assert event.occurred_at.tzinfo is UTC

    @pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
    @pytest.mark.parametrize("field", ["occurred_at", "answered_at"])
    def test_a_time_outside_the_calendar_is_a_fault_and_no_crash(self, field: str, moment: str) -> None:
        """Such a date has no equal in UTC; an exception here would stop the partition for good."""
        rejected = decode(raw(**{field: moment}))

        assert isinstance(rejected, Rejected)
        assert field in rejected.reason

    def test_feedback_that_says_nothing_is_a_fault(self) -> None:
        """It would promote nobody and count as applied."""
        assert isinstance(decode(raw(kind="feedback", signals={})), Rejected)
        said = decode(raw(kind="feedback", signals={"escalated": True}))
        assert isinstance(said, FeedbackEvent)

    def test_a_reference_is_an_id_or_a_document(self) -> None:
        """Some producers know only which document they used."""
        event = decode(raw(references=["returns.md", {"id": "faq.md", "version": "7", "text": "..."}]))

        assert isinstance(event, TurnEvent)
        assert [(one.id, one.version) for one in event.references] == [("returns.md", None), ("faq.md", "7")]

    def test_an_event_needs_messages(self) -> None:
        """A turn of nothing cannot be judged."""
        for kind in ("turn", "conversation"):
            assert isinstance(decode(raw(kind=kind, messages=[])), Rejected)
        assert isinstance(decode(raw(kind="conversation")), WholeConversationEvent)

    @pytest.mark.parametrize(
        ("asked", "answered", "fell_back"),
        [
            ("a", "b", True),
            ("a", "a", False),
            (None, "b", False),
            ("a", None, False),
            ("gpt-4o", "gpt-4o-2024-08-06", False),
            ("gpt-4", "gpt-4-0613", False),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", False),
            ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet-latest", True),
            ("gemini-1.5-pro", "models/gemini-1.5-pro-002", False),
            ("openai/gpt-4o", "GPT-4o-2024-08-06", False),
            ("azure/gpt-4o", "openai/gpt-4o", True),
            ("gpt-4o", "gpt-4o-mini", True),
            ("gpt-4o", "gpt-4o-mini-2024-07-18", True),
            ("gpt-4", "gpt-4-1106-preview", True),
            ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", True),
            ("gpt-4o-2024-05-13", "gpt-4o", True),
        ],
    )
    def test_a_fallback_is_another_model_than_asked_for(
        self, asked: str | None, answered: str | None, fell_back: bool
    ) -> None:
        """What is not known is no fallback, and a provider that names its snapshot has kept its word."""
        assert ServedBy(model_asked=asked, model_answered=answered).fell_back is fell_back

    def test_an_event_cannot_be_changed(self) -> None:
        """It is shared between what is stored and what is asked."""
        event = decode(raw())
        assert isinstance(event, TurnEvent)
        with pytest.raises(ValueError, match="frozen"):
            event.intent = "other"  # type: ignore[misc]

    def test_a_change_is_an_event_of_its_own(self) -> None:
        """Alerts show what changed before their onset."""
        change = an_event(kind="deploy", event_id="d1") | {"title": "Release 7"}
        parsed = ChangeEvent.model_validate(change | {"kind": "deploy"})

        assert (parsed.kind, parsed.title) == ("deploy", "Release 7")
