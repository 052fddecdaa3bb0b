"""What a series says in, a finding out: a sustained regression, or a rate of critical failures that rose."""

import math
from collections.abc import Sequence

from monitor.detection.attribution import (
    Attribution,
    Totals,
    attribute,
    baseline_totals,
    by_attribute,
    totals_by_stratum,
)
from monitor.detection.baseline import Baseline
from monitor.detection.census import CENSUS
from monitor.detection.change import ChangePart, Sustained
from monitor.detection.counts import SeriesKey
from monitor.detection.finding import Figure, Finding, FindingKind, Outcome, Severity, labels_of
from monitor.detection.sequential import Reading
from monitor.windows.bucket import CRITICAL, Scope, readable

PARTS_MAX = 6
"""Groups shown one by one; the rest is one part, so that it still adds up."""
SUSTAINED = frozenset({FindingKind.REGRESSION, FindingKind.CRITICAL_RATE, FindingKind.SIGNAL})


def kind_of(dimension: str) -> FindingKind:
    """Return which kind of finding a dimension's series makes."""
    if dimension in CENSUS:
        return FindingKind.SIGNAL
    return FindingKind.CRITICAL_RATE if dimension == CRITICAL else FindingKind.REGRESSION


def sustained_finding(
    reading: Reading,
    *,
    scope: Scope,
    baseline: Baseline,
    severity: Severity,
    strata: Sequence[str],
    excused: float = 0.0,
    explained_by: Sequence[str] = (),
) -> Finding:
    """Return the finding of a series that fires; `strata` are the attributes that make a stratum, in order."""
    known = _sustained(reading, baseline, strata, excused, explained_by)
    dimension, segment = reading.key
    return Finding(
        kind=kind_of(dimension),
        labels=labels_of(scope, dimension, segment),
        severity=severity,
        outcome=Outcome.FAIL,
        reason=_reason(reading, known),
        since=known.onset,
        figures=(_figure(reading, known),),
        sustained=known,
    )


def over_finding(finding: Finding, *, reason: str) -> Finding:
    """Return the finding that ends an alert: the last one, with why it is over."""
    fields = dict(finding) | {"outcome": Outcome.PASS, "clear": True, "reason": reason}
    return Finding.model_validate(fields)


def _sustained(
    reading: Reading, baseline: Baseline, strata: Sequence[str], excused: float, explained_by: Sequence[str]
) -> Sustained:
    found = _attribution(reading, baseline, strata)
    return Sustained(
        release=baseline.label,
        baseline_id=baseline.id,
        onset=reading.onset.at,
        onset_low=reading.onset.low,
        onset_high=reading.onset.high,
        effect=reading.effect,
        low=reading.low,
        high=reading.high,
        value=reading.value,
        n=reading.n,
        evidence=reading.evidence,
        threshold=reading.threshold,
        excused=excused,
        raw=found.change if found else None,
        parts=_parts(found, worse_is_more=reading.is_share) if found else (),
        explained_by=tuple(explained_by),
    )


def _attribution(reading: Reading, baseline: Baseline, strata: Sequence[str]) -> Attribution | None:
    """Take the change apart by the attribute of the strata of which one group explains most beyond its size."""
    since = reading.since()
    sign = 1 if reading.is_share else -1
    found: list[tuple[float, int, Attribution]] = []
    for place, name in enumerate(strata):
        before = by_attribute(_before(baseline, reading.key, strata), place, name)
        one = attribute(before, by_attribute(totals_by_stratum(since), place, name))
        if one is not None:
            beyond = max(
                sign * (part.within - one.within * (part.share_before + part.share) / 2) for part in one.parts
            )
            # A single group explains nothing; the first attribute is taken where none does.
            found.append((beyond if len(one.parts) > 1 else -math.inf, -place, one))
    return max(found, key=lambda one: one[:2])[2] if found else None


def _before(baseline: Baseline, key: SeriesKey, strata: Sequence[str]) -> Totals:
    """Return the totals of the baseline by stratum, of a segment those of its own strata as far as it has some."""
    dimension, segment = key
    if dimension in baseline.dimensions:
        totals = baseline_totals(baseline.dimensions[dimension])
    else:
        shares = baseline.shares[dimension].strata
        totals = {stratum: (one.weight, one.weight * one.share) for stratum, one in shares.items()}
    name, _, value = segment.partition("=")
    if name not in strata:
        return totals
    place = strata.index(name)
    return {stratum: sums for stratum, sums in totals.items() if stratum.split(",")[place] == value}


def _parts(found: Attribution, *, worse_is_more: bool) -> tuple[ChangePart, ...]:
    parts = sorted(found.parts, key=lambda part: (part.within + part.mix) * (-1 if worse_is_more else 1))
    shown = [
        ChangePart(
            group=readable(part.group),
            within=part.within,
            mix=part.mix,
            share_before=part.share_before,
            share=part.share,
            mean_before=part.mean_before,
            mean=part.mean,
        )
        for part in parts[:PARTS_MAX]
    ]
    rest = parts[PARTS_MAX:]
    if rest:
        shown.append(
            ChangePart(
                group=f"{len(rest)} others",
                within=sum(part.within for part in rest),
                mix=sum(part.mix for part in rest),
                share_before=sum(part.share_before for part in rest),
                share=sum(part.share for part in rest),
            )
        )
    return tuple(shown)


def _figure(reading: Reading, known: Sustained) -> Figure:
    name = "critical_rate" if reading.is_share else "mean"
    return Figure(
        name=name,
        value=known.value,
        limit=known.normal,
        low=known.normal + known.low,
        high=known.normal + known.high,
        n=known.n,
    )


def _reason(reading: Reading, known: Sustained) -> str:
    since = f"since {known.onset:%Y-%m-%d %H:%M} UTC"
    if reading.key[0] in CENSUS:
        return (
            f"{reading.key[0]} on {known.value:.2%} of all answers {since}, and on "
            f"{known.normal:.2%} in {known.release} at the same mix of traffic (n={known.n})"
        )
    if reading.is_share:
        return (
            f"{known.value:.2%} of the conversations fail critically {since}, and {known.normal:.2%} did in "
            f"{known.release} at the same mix of traffic (n={known.n})"
        )
    return (
        f"{-known.effect:.2f} below {known.release} {since} at the same mix of traffic: "
        f"mean {known.value:.2f} where {known.normal:.2f} was normal (n={known.n})"
    )
