"""Events for tests, as the world sends them and as the store takes them: everything has a default."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from monitor.conversations import assembly
from monitor.conversations.assembly import Taken
from monitor.conversations.store import Taking
from monitor.intake.decode import Rejected, decode
from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.judging.judgment import FailureKind, JudgeFailure, JudgeIdentity, Judgment, Target, judgment_id
from monitor.judging.rubric import TargetKind
from monitor.sampling.decision import Decision

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
ALL = Decision(kept=True, rule="base:default", rate=1.0, first_rate=1.0)
NO_WORDS = IntentClassifier(IntentPolicy())


def messages(
    question: str = "Where is my parcel?", answer: str = "It arrives on Monday."
) -> list[dict[str, Any]]:
    """Return one exchange; an empty answer is none."""
    asked = [{"role": "user", "content": question}]
    return [*asked, {"role": "assistant", "content": answer}] if answer else asked


def an_event(
    conversation: str = "c1",
    turn: int | None = 0,
    *,
    kind: str = "turn",
    at: datetime = NOON,
    event_id: str | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return an event as a producer writes it."""
    event: dict[str, Any] = {
        "event_id": event_id or f"{conversation}-{kind}-{turn}",
        "conversation_id": conversation,
        "type": kind,
        "occurred_at": at.isoformat(),
    }
    if kind == "turn" and turn is not None:
        event["turn_index"] = turn
    if kind in {"turn", "conversation"}:
        event["messages"] = messages()
    if kind == "feedback":
        event["signals"] = {"thumb": "down"}
    if kind == "summary":
        event["sections"] = [{"key": "issue", "text": "The parcel was late."}]
    return event | fields


def raw(conversation: str = "c1", turn: int | None = 0, **fields: Any) -> bytes:
    """Return an event as bytes."""
    return json.dumps(an_event(conversation, turn, **fields)).encode()


def taken(
    conversation: str = "c1",
    turn: int | None = 0,
    *,
    source: str | None = None,
    decision: Decision = ALL,
    classifier: IntentClassifier = NO_WORDS,
    **fields: Any,
) -> Taken:
    """Return an event as it is stored; by default it came from a position of its own."""
    event = decode(raw(conversation, turn, **fields))
    assert not isinstance(event, Rejected), event
    return assembly.take(
        event, decision=decision, source=source or f"events/0/{event.event_id}", classifier=classifier
    )


def taking(conversation: str = "c1", turn: int | None = 0, *, partition: int = 0, **fields: Any) -> Taking:
    """Return an event on its way into the store, at the time that it carries."""
    one = taken(conversation, turn, **fields)
    return Taking(one, partition, one.occurred_at)


def a_record(
    conversation: str = "c1",
    *event_ids: str,
    fails: bool | str = False,
    turn: str | None = None,
    revision: int = 1,
    says: str = "Agrees with the sources.",
) -> Judgment | JudgeFailure:
    """Return the judgment that decides on these events, or the failure of the same judgment."""
    kind = TargetKind.CONVERSATION if turn is None else TargetKind.TURN
    target = Target(kind=kind, conversation_id=conversation, revision=revision, turn_event_id=turn)
    shared: dict[str, Any] = {
        "judgment_id": judgment_id(target, rubric_version="r", judge_version="j"),
        "target": target,
        "attributes": {},
        "served_by": {},
        "event_ids": event_ids,
        "rate": 1.0,
        "observed_at": NOON,
        "judged_at": NOON,
        "rubric_version": "r",
        "judge": JudgeIdentity(stage="rules", backend="rules", version="j", model_asked="rules"),
    }
    if fails:
        outcome = fails if isinstance(fails, str) else "failed"
        return JudgeFailure(outcome=outcome, kind=FailureKind.TIMEOUT, reason=says, **shared)
    quotes = ({"text": says},)
    return Judgment(scores=({"dimension": "safety", "score": 5, "reason": says, "quotes": quotes},), **shared)
