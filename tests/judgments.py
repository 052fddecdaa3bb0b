"""Judgments for tests: everything has a default, a test states what it is about."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from monitor.conversations.conversation import Attributes
from monitor.intake.event import Environment, ServedBy
from monitor.judging.judgment import (
    DimensionScore,
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    Judgment,
    Quote,
    Target,
    judgment_id,
)
from monitor.judging.rubric import TargetKind

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DIMENSIONS = ("factual_correctness", "policy_adherence", "actionability", "safety")


def _common(
    conversation: str,
    *,
    at: datetime,
    revision: int,
    kind: TargetKind,
    rate: float | None,
    intent: str,
    prompt_hash: str | None,
    assistant: str,
    environment: Environment,
    judge_version: str,
) -> dict[str, object]:
    turn = f"{conversation}-turn" if kind is TargetKind.TURN else None
    target = Target(kind=kind, conversation_id=conversation, revision=revision, turn_event_id=turn)
    return {
        "judgment_id": judgment_id(target, rubric_version="r1", judge_version=judge_version),
        "target": target,
        "attributes": Attributes(assistant=assistant, environment=environment, intent=intent),
        "served_by": ServedBy(prompt_hash=prompt_hash),
        "event_ids": (f"{conversation}-event",),
        "rate": rate,
        "observed_at": at,
        "judged_at": at + MINUTE,
        "rubric_version": "r1",
        "judge": JudgeIdentity(stage="rules", backend="rules", version=judge_version, model_asked="rules"),
    }


def a_judgment(
    conversation: str = "c-1",
    *,
    scores: Mapping[str, int | None] | None = None,
    at: datetime = NOON,
    revision: int = 1,
    kind: TargetKind = TargetKind.CONVERSATION,
    rate: float | None = 1.0,
    intent: str = "returns",
    prompt_hash: str | None = "aa11",
    assistant: str = "support-bot",
    environment: Environment = Environment.PRODUCTION,
    judge_version: str = "j1",
    quotes: Sequence[Quote] = (),
    failure: str | None = None,
) -> Judgment:
    """Return a judgment; every dimension that is not given scores 5."""
    given = dict.fromkeys(DIMENSIONS, 5) | dict(scores or {})
    common = _common(
        conversation,
        at=at,
        revision=revision,
        kind=kind,
        rate=rate,
        intent=intent,
        prompt_hash=prompt_hash,
        assistant=assistant,
        environment=environment,
        judge_version=judge_version,
    )
    return Judgment.model_validate(
        common
        | {
            "scores": tuple(
                DimensionScore(
                    dimension=name,
                    score=score,
                    reason=f"{name} is {score}",
                    quotes=tuple(quotes),
                    kind=failure,
                )
                for name, score in given.items()
            )
        }
    )


def a_failure(
    conversation: str = "c-1",
    *,
    at: datetime = NOON,
    revision: int = 1,
    kind: TargetKind = TargetKind.CONVERSATION,
    rate: float | None = 1.0,
    intent: str = "returns",
    prompt_hash: str | None = "aa11",
    judge_version: str = "j1",
    why: FailureKind = FailureKind.UNAVAILABLE,
) -> JudgeFailure:
    """Return a judge's failure on one target."""
    common = _common(
        conversation,
        at=at,
        revision=revision,
        kind=kind,
        rate=rate,
        intent=intent,
        prompt_hash=prompt_hash,
        assistant="support-bot",
        environment=Environment.PRODUCTION,
        judge_version=judge_version,
    )
    outcome = "thinned" if why is FailureKind.THINNED else "failed"
    return JudgeFailure.model_validate(
        common | {"kind": why, "outcome": outcome, "reason": "the judge did not answer"}
    )
