"""Anchors and their scores for tests."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from monitor.judging.anchors import Anchor, AnchorScore, read_anchors
from monitor.judging.judge import JudgeReply, Scored
from monitor.judging.judgment import DimensionScore, JudgeIdentity, JudgeRequest
from tests.judgments import NOON

JUDGE = {"judge_version": "j", "rubric_version": "r1"}


def anchors(count: int) -> tuple[Anchor, ...]:
    """Return anchors a0, a1, ... of one turn each."""
    lines = [
        f'{{"id": "a{number}", "messages": [{{"role": "user", "content": "Question {number}?"}}, '
        f'{{"role": "assistant", "content": "Answer {number}."}}]}}'
        for number in range(count)
    ]
    return tuple(anchor for _, anchor in read_anchors(lines) if isinstance(anchor, Anchor))


def a_score(
    anchor: str = "a0",
    number: int = 1,
    *,
    at: datetime = NOON,
    scores: Mapping[str, int | None] | None = None,
) -> AnchorScore:
    return AnchorScore(anchor=anchor, round=number, at=at, scores=dict(scores or {"safety": 4}))


def pinned(values: Iterable[int], dimension: str = "safety") -> dict[str, AnchorScore]:
    """Return pinned scores of a0, a1, ..., all of round 0."""
    return {
        f"a{place}": a_score(f"a{place}", 0, scores={dimension: value}) for place, value in enumerate(values)
    }


def later(
    values: Iterable[int], number: int = 1, *, dimension: str = "safety", at: datetime | None = None
) -> list[AnchorScore]:
    """Return the scores of a0, a1, ... in one later round, an hour a round."""
    moment = at or NOON + timedelta(hours=number)
    return [
        a_score(f"a{place}", number, at=moment, scores={dimension: value})
        for place, value in enumerate(values)
    ]


class ShiftingJudge:
    """Scores 4 on each dimension, a point less once it is told to have drifted; and counts its calls."""

    def __init__(self, *dimensions: str, version: str = "j") -> None:
        self.identity = JudgeIdentity(stage="first", backend="fake", version=version, model_asked="fake")
        self.dimensions = dimensions or ("factual_correctness", "safety")
        self.shift: dict[str, int] = {}
        self.asked: list[str] = []

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.asked.append(request.target.conversation_id)
        return Scored(
            scores=tuple(
                DimensionScore(dimension=name, score=4 + self.shift.get(name, 0), reason="as told")
                for name in self.dimensions
            )
        )

    async def close(self) -> None:
        pass
