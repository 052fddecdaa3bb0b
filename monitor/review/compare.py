"""Records of two judges in, how they differ out: paired differences, agreement, cost, and where they part most."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from monitor.intake.event import Value
from monitor.judging.drift import Difference, difference
from monitor.judging.judgment import JudgeFailure, Judgment, Record, Target
from monitor.judging.rubric import PASS_MIN
from monitor.review.agreement import Agreement, Case, agreement

Pair = tuple[Judgment, Judgment]
"""What the first and the second judge said of one target."""


class DimensionComparison(Value):
    """One dimension."""

    dimension: str
    points: Difference
    """Of the scores."""
    pass_at_4: Difference
    """Of the share that passes."""
    agreement: Agreement
    """`first` is the first judge, `second` the second."""
    only_first: int
    """Targets that only the first judge scored; the second abstained."""
    only_second: int


class Disagreement(Value):
    """One target on which the judges part."""

    conversation_id: str
    target: str
    dimension: str
    first: int
    second: int
    first_reason: str
    second_reason: str


class Side(Value):
    """What one judge cost on the targets that both were asked about."""

    judge_version: str
    model: str
    records: int
    failed: int
    cost: float | None
    """None where a record has no price."""
    latency_mean_seconds: float | None


class Comparison(Value):
    """Two judges on the same targets."""

    first: Side
    second: Side
    pairs: int
    cost_ratio: float | None
    """Second to first, on the pairs; as is the ratio of latencies."""
    latency_ratio: float | None
    dimensions: tuple[DimensionComparison, ...]
    disagreements: tuple[Disagreement, ...]
    """The worst first."""


def compare(records: Iterable[Record], first: str, second: str) -> Comparison:
    """Compare two judge versions on the targets that both have a record of; each target counts once.

    Both judges see the same conversations, so what they cost and how they differ is free of the luck of the draw.
    Intervals are those of the paired t, a conversation's targets as if independent: for turns they are a little
    too narrow.
    """
    by_judge: dict[str, dict[Target, Record]] = {first: {}, second: {}}
    for record in records:
        kept = by_judge.get(record.judge.version)
        if kept is not None and not isinstance(kept.get(record.target), Judgment):
            kept[record.target] = record
    both = [target for target in by_judge[first] if target in by_judge[second]]
    sides = [[by_judge[version][target] for target in both] for version in (first, second)]
    pairs = paired(by_judge[first], by_judge[second])
    cost = [sum(one.usage.cost or 0.0 for one in side) for side in zip(*pairs, strict=True)]
    seconds = [fmean(one.usage.latency_seconds for one in side) for side in zip(*pairs, strict=True)]
    names = sorted({score.dimension for pair in pairs for one in pair for score in one.scores})
    dimensions = [found for name in names if (found := _dimension(name, pairs)) is not None]
    return Comparison(
        first=_side(first, sides[0]),
        second=_side(second, sides[1]),
        pairs=len(pairs),
        cost_ratio=cost[1] / cost[0] if cost and cost[0] else None,
        latency_ratio=seconds[1] / seconds[0] if seconds and seconds[0] else None,
        dimensions=tuple(dimensions),
        disagreements=tuple(_disagreements(pairs)),
    )


def paired(first: Mapping[Target, Record], second: Mapping[Target, Record]) -> list[Pair]:
    """Return what both judged, in the order of the first."""
    found = []
    for target, one in first.items():
        other = second.get(target)
        if isinstance(one, Judgment) and isinstance(other, Judgment):
            found.append((one, other))
    return found


def scores_of(pairs: Iterable[Pair], dimension: str) -> list[tuple[int | None, int | None]]:
    """Return what both said of one dimension, None for an abstention."""
    return [(_score(one, dimension), _score(other, dimension)) for one, other in pairs]


def _dimension(name: str, pairs: Sequence[Pair]) -> DimensionComparison | None:
    told = scores_of(pairs, name)
    scored = [(one, other) for one, other in told if one is not None and other is not None]
    if not scored:
        return None
    return DimensionComparison(
        dimension=name,
        points=difference([other - one for one, other in scored]),
        pass_at_4=difference([(other >= PASS_MIN) - (one >= PASS_MIN) for one, other in scored]),
        agreement=agreement([Case(pairs=(pair,)) for pair in scored]),
        only_first=sum(one is not None and other is None for one, other in told),
        only_second=sum(one is None and other is not None for one, other in told),
    )


def _disagreements(pairs: Iterable[Pair]) -> list[Disagreement]:
    found = []
    for one, other in pairs:
        theirs = {score.dimension: score for score in other.scores}
        for score in one.scores:
            second = theirs.get(score.dimension)
            if score.score is None or second is None or second.score is None or score.score == second.score:
                continue
            found.append(
                Disagreement(
                    conversation_id=one.target.conversation_id,
                    target=one.target.turn_event_id or "conversation",
                    dimension=score.dimension,
                    first=score.score,
                    second=second.score,
                    first_reason=score.reason,
                    second_reason=second.reason,
                )
            )
    return sorted(found, key=_gravity)


def _gravity(one: Disagreement) -> tuple[int, bool, str, str, str]:
    crosses = (one.first >= PASS_MIN) != (one.second >= PASS_MIN)
    return (-abs(one.first - one.second), not crosses, one.dimension, one.conversation_id, one.target)


def _side(version: str, records: Sequence[Record]) -> Side:
    costs = [one.usage.cost for one in records]
    known = [cost for cost in costs if cost is not None]
    return Side(
        judge_version=version,
        model=records[0].judge.model_asked if records else "",
        records=len(records),
        failed=sum(isinstance(one, JudgeFailure) for one in records),
        cost=sum(known) if known and len(known) == len(costs) else None,
        latency_mean_seconds=fmean(one.usage.latency_seconds for one in records) if records else None,
    )


def _score(judgment: Judgment, dimension: str) -> int | None:
    return next((one.score for one in judgment.scores if one.dimension == dimension), None)
