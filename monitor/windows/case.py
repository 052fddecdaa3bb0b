"""A bad judgment in, the compact record of it that evidence shows out."""

from monitor.conversations.conversation import UNKNOWN
from monitor.intake.event import Moment, Value
from monitor.judging.judgment import DimensionScore, Judgment
from monitor.judging.rubric import PASS_MIN, TargetKind

REASON_MAX = 300
"""Characters of a judge's reason that a case keeps."""
QUOTE_MAX = 200
"""Characters of a quotation that a case keeps."""
QUOTES_MAX = 3
"""Quotations that a case keeps."""


class Case(Value):
    """One score of one judgment, with what a person needs to understand it. Its texts are masked."""

    judgment_id: str
    conversation_id: str
    target: TargetKind
    turn_event_id: str | None = None
    dimension: str
    score: int
    reason: str
    kind: str | None = None
    quotes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Where each quotation stands: answer, user, reference, tool or none."""
    verbatim: bool = False
    """A quotation was found word for word where the judge says it stands."""
    intent: str = UNKNOWN
    prompt_hash: str = UNKNOWN
    observed_at: Moment
    judge_version: str = UNKNOWN
    rubric_version: str = UNKNOWN


def case_of(judgment: Judgment, score: DimensionScore) -> Case | None:
    """Return the record of one score; None if the dimension abstained."""
    return None if score.score is None else _case(judgment, score, score.score)


def cases_of(judgment: Judgment) -> tuple[Case, ...]:
    """Return the scores of a judgment that do not pass."""
    # Most pass, and this runs for each judgment.
    cases = [
        _case(judgment, one, one.score)
        for one in judgment.scores
        if one.score is not None and one.score < PASS_MIN
    ]
    return tuple(cases)


def worst_first(case: Case) -> tuple[int, float, str]:
    """Return the sort key of cases: the lowest score, then the newest."""
    return (case.score, -case.observed_at.timestamp(), f"{case.judgment_id}{case.dimension}")


def _case(judgment: Judgment, score: DimensionScore, value: int) -> Case:
    return Case(
        judgment_id=judgment.judgment_id,
        conversation_id=judgment.target.conversation_id,
        target=judgment.target.kind,
        turn_event_id=judgment.target.turn_event_id,
        dimension=score.dimension,
        score=value,
        reason=_cut(score.reason, REASON_MAX),
        kind=score.kind,
        quotes=tuple([_cut(quote.text, QUOTE_MAX) for quote in score.quotes[:QUOTES_MAX]]),
        sources=tuple([quote.source for quote in score.quotes[:QUOTES_MAX]]),
        verbatim=any(quote.verbatim and quote.source != "none" for quote in score.quotes),
        intent=judgment.attributes.intent,
        prompt_hash=judgment.served_by.prompt_hash or UNKNOWN,
        observed_at=judgment.observed_at,
        judge_version=judgment.judge.version,
        rubric_version=judgment.rubric_version,
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
