"""`monitor judge FILE`: conversations from a file in, one line of JSON per judgment out. No Kafka, no Redis."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from monitor.conversations.conversation import UNKNOWN, Attributes, Conversation, EndReason, Turn
from monitor.intake.decode import Fault, Rejected, decode
from monitor.intake.event import TurnEvent
from monitor.intake.formats.openai_chat import Shape, events_of
from monitor.intake.redaction import REGION, mask_event
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import Judge
from monitor.judging.judgment import JudgeFailure, JudgeRequest, Judgment, Target
from monitor.judging.rubric import TargetKind

_MAX_AGE = timedelta(days=1)
_SPACING = timedelta(minutes=1)
"""Between the beginnings of two conversations of unknown time."""


def judge_file(
    path: Path,
    *,
    judge: Judge,
    rubric_version: str,
    start: datetime,
    now: Callable[[], datetime],
    out: TextIO,
    errors: TextIO,
    deadline_seconds: float = 45.0,
    region: str = REGION,
) -> int:
    """Judge each turn and each conversation of a file; return how many lines and judgments failed.

    A line that is no conversation is named on `errors` with its number, and the rest is judged all the same.
    """
    policy = ExecutorPolicy(deadline_seconds=deadline_seconds, max_age=_MAX_AGE)
    executor = Executor(judge, Unkept(), rubric_version, policy)

    async def run() -> int:
        failed = 0
        try:
            with path.open(encoding="utf-8") as lines:
                for number, conversation in read_conversations(lines, start=start, region=region):
                    if isinstance(conversation, Rejected):
                        errors.write(f"{path}:{number}: {conversation.reason}\n")
                        failed += 1
                        continue
                    async for record in judgments_of(conversation, executor=executor, now=now):
                        out.write(record.model_dump_json() + "\n")
                        failed += isinstance(record, JudgeFailure)
        finally:
            await judge.close()
        return failed

    return asyncio.run(run())


def read_conversations(
    lines: Iterable[str], *, start: datetime, region: str = REGION
) -> Iterator[tuple[int, Conversation | Rejected]]:
    """Read JSON lines in the chat shape, masked; each with its line number."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _conversation(line, start + number * _SPACING, region)


async def judgments_of(
    conversation: Conversation,
    *,
    executor: Executor,
    now: Callable[[], datetime],
    kinds: Collection[TargetKind] = tuple(TargetKind),
) -> AsyncIterator[Judgment | JudgeFailure]:
    """Judge every answered turn, then the whole; a conversation without any answer has no judgment."""
    answered = [turn for turn in conversation.turns if turn.answer]
    turns = answered if TargetKind.TURN in kinds else []
    whole = (None,) if answered and TargetKind.CONVERSATION in kinds else ()
    for turn in (*turns, *whole):
        last = turn or answered[-1]
        request = JudgeRequest(
            target=Target(
                kind=TargetKind.CONVERSATION if turn is None else TargetKind.TURN,
                conversation_id=conversation.id,
                turn_event_id=None if turn is None else turn.event_id,
            ),
            conversation=conversation,
            event_ids=tuple(each.event_id for each in (conversation.turns if turn is None else (turn,))),
            rate=1.0,
            observed_at=last.answered_at or last.occurred_at,
            requested_at=now(),
        )
        yield await executor.record_of(request, now=now)


def _conversation(line: str, start: datetime, region: str) -> Conversation | Rejected:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Rejected(fault=Fault.UNDECODABLE, reason=f"not JSON: {error}")
    if not isinstance(record, dict):
        return Rejected(fault=Fault.INVALID, reason="not an object with `id` and `messages`")
    told = events_of(record, shape=Shape.TURNS, start=start)
    if isinstance(told, Rejected):
        return told
    turns = []
    for raw in told:
        event = decode(json.dumps(raw).encode())
        if isinstance(event, Rejected):
            return event
        if isinstance(event, TurnEvent):
            turns.append(mask_event(event, region=region))
    return _assembled([turn for turn in turns if isinstance(turn, TurnEvent)])


def _assembled(events: list[TurnEvent]) -> Conversation:
    first = events[0]
    return Conversation(
        id=first.conversation_id,
        attributes=Attributes(
            assistant=first.assistant,
            environment=first.environment,
            variant=first.variant,
            tenant=first.tenant or UNKNOWN,
            intent=first.intent or UNKNOWN,
            channel=first.channel or UNKNOWN,
            language=first.language or UNKNOWN,
        ),
        turns=tuple(
            Turn(
                event_id=event.event_id,
                turn_index=event.turn_index,
                occurred_at=event.occurred_at,
                answered_at=event.answered_at,
                messages=event.messages,
                served_by=event.served_by,
                references=event.references,
                signals=event.signals,
            )
            for event in events
        ),
        ended=EndReason.WHOLE,
        rate=1.0,
    )
