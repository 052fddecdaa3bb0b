"""Each scope's counts in, the two-phase means of a cascade out: what its second judge would give over all."""

from collections.abc import Mapping

from monitor.intake.event import Value
from monitor.windows.bucket import OVERALL, PAIR, BucketCounts, Scope
from monitor.windows.two_phase import TwoPhase, two_phase_of


class Headline(Value):
    """One cascade's means. No raw series has them: those never mix judges."""

    scope: Scope
    """That of the second stage."""
    first_judge: str
    """Version of the first stage, which judged the whole sample."""
    segment: str
    means: tuple[TwoPhase, ...]


def headlines(
    counts: Mapping[Scope, BucketCounts], *, first_judge: str | None, segment: str = OVERALL
) -> tuple[Headline, ...]:
    """Return the means of each scope that has pairs, beside the scope of its first stage.

    `first_judge` is the version that the configuration names. A scope whose first stage was another one is
    shown only if there is just one that it can be.
    """
    seconds = [
        scope for scope, found in counts.items() if any(cell.dimension.startswith(PAIR) for cell in found)
    ]
    told = []
    for second in seconds:
        alike = [one for one in counts if one not in seconds and _alike(one, second)]
        named = [one for one in alike if one.judge_version == first_judge]
        if len(named or alike) != 1:
            continue
        [first] = named or alike
        means = [
            two_phase_of(counts[first], counts[second], name, segment)
            for name in _paired(counts[second], segment)
        ]
        told.append(
            Headline(
                scope=second,
                first_judge=first.judge_version,
                segment=segment,
                means=tuple(one for one in means if one.mean is not None),
            )
        )
    return tuple(one for one in told if one.means)


def _paired(counts: BucketCounts, segment: str) -> list[str]:
    return sorted(
        {
            cell.dimension.removeprefix(PAIR)
            for cell in counts
            if cell.segment == segment and cell.dimension.startswith(PAIR)
        }
    )


def _alike(one: Scope, other: Scope) -> bool:
    return one.model_copy(update={"judge_version": other.judge_version}) == other
