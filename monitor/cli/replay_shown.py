"""Judgments in, the worst and the best of them with what the judge found out."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from monitor.adapters.kafka_admin import Held
from monitor.clock import MARKER_HEADER
from monitor.judging.judgment import JUDGMENT_RECORD, DimensionScore, Judgment
from monitor.judging.rubric import SCORE_MAX

QUOTE_MAX = 160
"""Characters of a quotation that a line shows."""


def judgments_of(records: Iterable[Held]) -> list[Judgment]:
    """Return the judgments of a topic, each once; markers and failures are none."""
    found: dict[str, Judgment] = {}
    for held in records:
        if held.value is None or any(name == MARKER_HEADER for name, _ in held.headers):
            continue
        record = JUDGMENT_RECORD.validate_json(held.value)
        if isinstance(record, Judgment):
            found[record.judgment_id] = record
    return list(found.values())


def worst_and_best(judgments: Iterable[Judgment], count: int) -> tuple[list[Judgment], list[Judgment]]:
    """Return so many of each, one a conversation; what abstained on every dimension is neither."""
    scored = sorted((one for one in judgments if _scores(one)), key=_badness)
    worst = list(_distinct(scored, count, set()))
    seen = {one.target.conversation_id for one in worst}
    best = list(_distinct(sorted(scored, key=_goodness), count, seen))
    return worst, best


def show(title: str, judgments: Sequence[Judgment], console: Console) -> None:
    """Print judgments with what the judge found."""
    console.print(f"\n{title}", style="bold")
    for one in judgments:
        turn = one.target.turn_event_id
        what = f"turn {turn}" if turn else "the conversation"
        console.print(f"{one.target.conversation_id}, {what}", markup=False, highlight=False, style="bold")
        for score in sorted(one.scores, key=lambda score: (score.score is None, score.score or 0)):
            said = "-" if score.score is None else str(score.score)
            console.print(f"  {said} {score.dimension}: {score.reason}", markup=False, highlight=False)
            for quote in score.quotes[:2]:
                text = " ".join(quote.text.split())[:QUOTE_MAX]
                console.print(f'      {quote.source}: "{text}"', markup=False, highlight=False, style="dim")


def _scores(one: Judgment) -> list[int]:
    return [score.score for score in one.scores if score.score is not None]


def _badness(one: Judgment) -> tuple[int, int, float, str]:
    scores = _scores(one)
    # A score that a quotation supports says more than one without.
    lowest = min(scores)
    quoted = any(_is_quoted(score) for score in one.scores if score.score == lowest)
    return (lowest, not quoted, sum(scores) / len(scores), one.judgment_id)


def _goodness(one: Judgment) -> tuple[int, int, float, str]:
    scores = _scores(one)
    return (SCORE_MAX - min(scores), -len(scores), -sum(scores) / len(scores), one.judgment_id)


def _is_quoted(score: DimensionScore) -> bool:
    return any(quote.verbatim for quote in score.quotes)


def _distinct(judgments: Iterable[Judgment], count: int, seen: set[str]) -> Iterator[Judgment]:
    for one in judgments:
        if count <= 0:
            return
        if one.target.conversation_id not in seen:
            seen.add(one.target.conversation_id)
            count -= 1
            yield one
