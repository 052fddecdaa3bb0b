"""Conversations and requests for tests, built in one line."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from monitor.conversations.conversation import Conversation, Turn
from monitor.intake.event import Message, Reference
from monitor.judging.judgment import JudgeRequest, Target
from monitor.judging.references import Document
from monitor.judging.rubric import Rubric, TargetKind

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ROOT = Path(__file__).parent.parent


def the_rubric() -> Rubric:
    return Rubric.model_validate(yaml.safe_load((ROOT / "config" / "rubric.yaml").read_text()))


class Shelf:
    """References by id, and how often they were asked for."""

    def __init__(self, **documents: str) -> None:
        self.documents = {f"{name}.md": Document.of(f"{name}.md", text) for name, text in documents.items()}
        self.asked: list[tuple[str, ...]] = []

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        self.asked.append(tuple(reference.id for reference in references))
        return tuple(self.documents[r.id] for r in references if r.id in self.documents)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(text: str = "", **calls: str) -> Message:
    """Build an assistant's message; calls are arguments by the tool's name."""
    tool_calls = [{"id": name, "name": name, "arguments": arguments} for name, arguments in calls.items()]
    return Message.model_validate({"role": "assistant", "content": text, "tool_calls": tool_calls})


def tool(text: str, name: str = "lookup") -> Message:
    return Message(role="tool", content=text, name=name)


def a_conversation(*turns: Sequence[Message], documents: Sequence[str] = (), id: str = "c1") -> Conversation:  # noqa: A002
    references = tuple(Reference(id=name) for name in documents)
    return Conversation(
        id=id,
        rate=1.0,
        turns=tuple(
            Turn(
                event_id=f"t{index}",
                turn_index=index,
                occurred_at=NOON + timedelta(minutes=index),
                messages=tuple(messages),
                references=references,
            )
            for index, messages in enumerate(turns)
        ),
    )


def a_request(conversation: Conversation, *, turn: int | None = None) -> JudgeRequest:
    return JudgeRequest(
        target=Target(
            kind=TargetKind.CONVERSATION if turn is None else TargetKind.TURN,
            conversation_id=conversation.id,
            turn_event_id=None if turn is None else f"t{turn}",
        ),
        conversation=conversation,
        rate=1.0,
        observed_at=NOON,
        requested_at=NOON,
    )
