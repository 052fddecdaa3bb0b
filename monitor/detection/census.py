"""The sampler's counts of all traffic in, series of shares out, in the form that detectors read."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from monitor.intake.event import Environment
from monitor.sampling.census import ANSWERS, CensusCounts, Signal, attributes_of
from monitor.windows.bucket import CRITICAL_NO, CRITICAL_YES, OVERALL, BucketCounts, Cell, name_of

CENSUS = tuple(str(signal) for signal in Signal)
"""The dimensions of census series; a `CountsCache` takes them as `shares`."""
WHOLE = "1"
"""The rate of what is counted and not sampled."""
Whose = tuple[str, Environment]
"""An assistant and the environment where it answered."""


class SignalCourse(NamedTuple):
    """One signal over some time: its share of the answers, and the share in each step; None without answers."""

    signal: str
    share: float | None
    course: tuple[float | None, ...]


def census_series(
    counts: CensusCounts, strata: Sequence[str], *, segments: Sequence[str] = ()
) -> dict[Whose, dict[datetime, BucketCounts]]:
    """Return, for each assistant and environment, the buckets of its signals as marks 0 and 1.

    Each signal of `CENSUS` is a dimension; in each stratum mark 1 counts the answers with it and mark 0 those without,
    at rate 1, for nothing is estimated. A signal that comes by itself, as feedback, counts in the bucket of its own
    time; where its event names no stratum with answers, it is spread over the others. No share exceeds 1.

    `strata` are the names that the sampling policy counts by; `segments`, some of them, get series of their own beside
    the overall one. Buckets come whole, as `CountsCache(shares=frozenset(CENSUS)).update()` wants them of one `Whose`:

        found = census_series(await census.counts(now - span, now), policy.sampling.strata)
    """
    names = tuple(strata)
    found: defaultdict[Whose, dict[datetime, BucketCounts]] = defaultdict(dict)
    for bucket, cells in counts.items():
        for whose, by_stratum in _by_assistant(cells, names).items():
            answers = {stratum: sum(map(one.get, ANSWERS, (0, 0))) for stratum, one in by_stratum.items()}
            into: dict[Cell, int] = {}
            for signal in CENSUS if any(answers.values()) else ():
                said = {stratum: one.get(signal, 0) for stratum, one in by_stratum.items()}
                for stratum, ones in _spread(said, answers).items():
                    values = attributes_of(stratum, names)
                    called = ",".join(name_of(values[name]) for name in names)
                    where = [OVERALL, *(f"{key}={name_of(values[key])}" for key in segments)]
                    for mark, count in ((CRITICAL_YES, ones), (CRITICAL_NO, answers[stratum] - ones)):
                        for segment in where if count else ():
                            cell = Cell(signal, segment, called, mark, WHOLE)
                            into[cell] = into.get(cell, 0) + count
            if into:
                found[whose][bucket] = into
    return dict(found)


def courses(
    buckets: Mapping[datetime, BucketCounts], start: datetime, end: datetime, *, step: timedelta
) -> tuple[int, tuple[SignalCourse, ...]]:
    """Return the answers of one assistant in [start, end), and each signal's overall share with its course."""
    steps = -(-(end - start) // step)
    sums = {(signal, mark): [0] * steps for signal in CENSUS for mark in (CRITICAL_NO, CRITICAL_YES)}
    for bucket, cells in buckets.items():
        place = (bucket - start) // step
        for cell, count in cells.items():
            if cell.segment == OVERALL and 0 <= place < steps:
                sums[cell.dimension, cell.mark][place] += count
    told = tuple(
        SignalCourse(
            signal,
            _share(sum(sums[signal, CRITICAL_YES]), sum(sums[signal, CRITICAL_NO])),
            tuple(map(_share, sums[signal, CRITICAL_YES], sums[signal, CRITICAL_NO])),
        )
        for signal in CENSUS
    )
    answers = sum(sum(sums[CENSUS[0], mark]) for mark in (CRITICAL_NO, CRITICAL_YES))
    return answers, told


def _by_assistant(
    cells: Mapping[tuple[str, str], int], names: tuple[str, ...]
) -> dict[Whose, dict[str, dict[str, int]]]:
    found: defaultdict[Whose, defaultdict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for (stratum, name), count in cells.items():
        values = attributes_of(stratum, names)
        found[values["assistant"], Environment(values["environment"])][stratum][name] = count
    return {whose: dict(by_stratum) for whose, by_stratum in found.items()}


def _spread(said: Mapping[str, int], answers: Mapping[str, int]) -> dict[str, int]:
    """Return how many answers of each stratum have a signal; what exceeds a stratum's answers goes to the others."""
    ones = {stratum: min(count, answers[stratum]) for stratum, count in said.items()}
    room = {stratum: answers[stratum] - count for stratum, count in ones.items()}
    free = sum(room.values())
    left = min(sum(said.values()) - sum(ones.values()), free)
    for stratum in sorted(room):
        # In proportion to the answers without it; each takes its part of what is left, so that all of it is placed.
        part = round(left * room[stratum] / free) if free else 0
        ones[stratum] += part
        left, free = left - part, free - room[stratum]
    return ones


def _share(ones: int, zeros: int) -> float | None:
    return ones / (ones + zeros) if ones + zeros else None
