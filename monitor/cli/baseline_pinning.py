"""A span as people name it in, pinned baselines out; what was made of the span goes to standard error."""

import sys
from collections.abc import Mapping
from datetime import datetime, timedelta

from agents.services import wall_now
from monitor.cli.asking import Looks, minute, moment
from monitor.cli.baseline_shown import whose_of
from monitor.cli.context import refused
from monitor.detection.census import Whose
from monitor.detection.pinning import Lacking, Pinned, Span, lacking, overall_series, pinned_of, span_of
from monitor.policy import Policy
from monitor.sampling.sampler import BUCKET_SECONDS
from monitor.windows.bucket import BucketCounts, Granularity, Scope

Census = Mapping[Whose, Mapping[datetime, BucketCounts]]


def evaluated(looks: Looks) -> datetime:
    """Return up to when all is evaluated."""
    return looks.evaluated_through() or wall_now()


def chosen_span(looks: Looks, policy: Policy, start: datetime | None, end: datetime | None) -> Span:
    """Return the span that is pinned, said where it is not quite the one that was asked for."""
    through = evaluated(looks)
    asked = end or through
    if asked > through or (start is not None and start >= asked):
        refused(f"--from must lie before --to, and --to not after what is evaluated ({moment(through)})")
    oldest = next(iter(looks.begins()), None)
    span = span_of(
        start,
        asked,
        oldest=oldest,
        now=through,
        days=policy.monitor.detection.baseline.days_wanted,
        policy=policy.monitor.windows,
    )
    if isinstance(span, Lacking):
        refused(span.reason)
    if span.granularity is Granularity.HOUR and (span.start, span.end) != (start or span.start, asked):
        say(
            "not all buckets of the span are there, so it is read by the hour and cut to whole hours: "
            f"{minute(span.start)} to {minute(span.end)} UTC"
        )
    return span


def pin_scope(
    looks: Looks,
    policy: Policy,
    scope: Scope,
    span: Span,
    *,
    census: Census,
    release: str,
    author: str,
    short: bool,
) -> Pinned:
    """Pin a span as the normal of one scope, or leave with what it lacks."""
    wanted = policy.monitor.detection.baseline
    slices = looks.overall(scope, span)
    series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
    wrong = lacking(series, wanted)
    if wrong is not None and not (short and wrong.curable):
        cure = ". Wait, or take it with --short" if wrong.curable else ""
        refused(f"{whose_of(scope)}: {wrong.reason}{cure}")
    if wrong is not None:
        say(f"{whose_of(scope)}: taken with --short, although {wrong.reason}")
    # The census has no judge: what it counts is normal whatever the judge is.
    counted = census.get((scope.assistant, scope.environment), {})
    series += overall_series(counted, start=span.start, end=span.end, bucket_minutes=BUCKET_SECONDS // 60)
    pinned = pinned_of(scope, series, release=release, at=wall_now(), by=author, policy=wanted)
    looks.pin(pinned)
    _say_of_census(scope, counted, min(slices), policy.monitor.windows.retention_days)
    return pinned


def _say_of_census(
    scope: Scope, counted: Mapping[datetime, BucketCounts], judged_from: datetime, days: int
) -> None:
    first = min(counted, default=None)
    kept = f"{whose_of(scope)}: the census is kept for {days} days"
    if first is None:
        say(
            f"{kept}, and of this span nothing: shares of escalations and the like are not watched until a pin "
            "of a later span"
        )
    elif first >= judged_from + timedelta(hours=1):
        say(f"{kept}: shares of escalations and the like are pinned from {minute(first)} UTC on")


def say(sentence: str) -> None:
    """Tell people what they did not ask for, beside the output."""
    sys.stderr.write(f"monitor: {sentence}\n")
