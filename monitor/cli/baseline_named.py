"""Names that people type in, baselines out: pinned ones, the last hours, and the week before the last day."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from monitor.cli.asking import Looks, latest
from monitor.cli.baseline_pinning import evaluated, say
from monitor.cli.baseline_shown import whose_of
from monitor.cli.context import refused
from monitor.cli.last_week import INTO_ITSELF, trailing_in, trailing_week, week_words
from monitor.detection.baseline import Baseline, pin
from monitor.detection.pinning import Lacking, Pinned, overall_series
from monitor.detection.trailing import TRAILING, Trailing
from monitor.intake.moments import floor
from monitor.policy import Policy
from monitor.windows.bucket import Scope, readable

HOURS_MAX = 24
"""Beyond so many the last hours are no longer after the week before the last day."""


class Pair(NamedTuple):
    """Two baselines to compare."""

    scope: Scope
    before: Baseline
    after: Baseline
    week: Trailing | None
    """Where one of them is the week before the last day."""


def named(looks: Looks, wanted: str, assistant: str | None) -> list[Pinned]:
    """Return the newest pinned baseline of each scope that has the name or id."""
    found = [
        one
        for one in looks.baselines()
        if (one.release == wanted or one.baseline.id.startswith(wanted))
        and assistant in {None, readable(one.scope.assistant)}
    ]
    newest: dict[str, Pinned] = {}
    for one in found:
        newest.setdefault(one.scope.id, one)
    return list(newest.values())


def the_one(looks: Looks, wanted: str, assistant: str | None) -> Pinned:
    """Return the one pinned baseline that has the name or id, or leave."""
    found = named(looks, wanted, assistant)
    if len(found) == 1:
        return found[0]
    if not found:
        refused(f"no baseline is called {wanted}; see `monitor baseline list`")
    return refused(f"{len(found)} baselines are called {wanted}; give its id, or --assistant")


def weeks_of(looks: Looks, policy: Policy, scopes: Sequence[Scope]) -> list[Trailing]:
    """Return the week before the last day of each scope, said where nothing was judged in it, or leave without any."""
    week = trailing_week(looks, policy, _end(looks, policy))
    if isinstance(week, Lacking):
        refused(week.reason)
    found = trailing_in(looks, policy, scopes, week)
    if not found:
        refused(
            f"nothing was judged in the week before the last day ({week_words(week)}): look again when "
            "judgments are older than a day"
        )
    there = {one.scope for one in found}
    for scope in scopes:
        if scope not in there:
            say(f"{whose_of(scope)}: nothing was judged in the week before the last day")
    return found


def pairs_of(
    looks: Looks,
    policy: Policy,
    scopes: Sequence[Scope],
    pinned: Mapping[str, Pinned],
    sides: tuple[str, str | None],
    *,
    hours: float,
) -> list[Pair]:
    """Return what is compared, by scope: pinned baselines of one, or `trailing` and the last hours (None) of each."""
    if TRAILING in sides and None in sides and hours > HOURS_MAX:
        refused(f"a span of {hours:g} hours {INTO_ITSELF}")
    weeks = {one.scope: one for one in weeks_of(looks, policy, scopes)} if TRAILING in sides else {}

    def side(wanted: str | None) -> dict[Scope, Baseline]:
        if wanted is None:
            return _lately(looks, policy, scopes, hours)
        if wanted == TRAILING:
            return {scope: week.baseline for scope, week in weeks.items()}
        return {scopes[0]: pinned[wanted].baseline}

    before, after = map(side, sides)
    both = [scope for scope in scopes if scope in before and scope in after]
    pairs = [Pair(scope, before[scope], after[scope], weeks.get(scope)) for scope in both]
    return pairs or refused(
        "what was judged in the last hours, and in the week before, is of different assistants"
    )


def _lately(looks: Looks, policy: Policy, scopes: Sequence[Scope], hours: float) -> dict[Scope, Baseline]:
    minutes = policy.monitor.windows.bucket_minutes
    end = _end(looks, policy)
    start = end - timedelta(hours=hours)
    found = {}
    for scope in scopes:
        buckets = looks.buckets_of(scope, start, end)
        series = overall_series(buckets, start=start, end=end, bucket_minutes=minutes)
        if any(one.n for one in series):
            wanted = policy.monitor.detection.baseline
            found[scope] = pin(series, scope_id=scope.id, label=f"the last {hours:g} h", policy=wanted)
    if not found:
        refused(f"nothing was judged in the last {hours:g} hours; --hours takes more")
    return found


def _end(looks: Looks, policy: Policy) -> datetime:
    # A replay is evaluated far beyond its last event, where there is nothing to see.
    through = min(evaluated(looks), latest(policy, looks))
    return floor(through, minutes=policy.monitor.windows.bucket_minutes)
