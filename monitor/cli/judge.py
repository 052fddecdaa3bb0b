"""`monitor judge FILE`: conversations from a file in, one line of JSON per judgment out. No Kafka, no Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

from monitor.conversations.conversation import Conversation
from monitor.conversations.transcripts import read_conversations
from monitor.intake.decode import Rejected
from monitor.intake.redaction import REGION
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import Judge
from monitor.judging.judgment import JudgeFailure, JudgeRequest, Judgment, Target
from monitor.judging.rubric import TargetKind

_MAX_AGE = timedelta(days=1)


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
