"""What served and what was evaluated in; findings on configurations that nobody evaluated, and other models, out."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from monitor.detection.finding import Figure, Finding, FindingKind, Outcome
from monitor.detection.registry import (
    MODELS,
    NOTHING,
    ConfigurationPolicy,
    Registered,
    Served,
    Tally,
    is_registered,
)
from monitor.intake.event import Environment, is_another_model
from monitor.windows.bucket import name_of

_Key = tuple[tuple[str, str], ...]
"""The labels of a finding, sorted."""


class Check(StrEnum):
    """What is wrong with a configuration."""

    NEVER_EVALUATED = "never_evaluated"
    OTHER_MODEL = "other_model"


def configuration_findings(
    recent: Mapping[Served, Tally],
    lately: Mapping[Served, Tally],
    registered: Sequence[Registered],
    policy: ConfigurationPolicy,
    *,
    environments: Collection[Environment],
    opened: Sequence[Mapping[str, str]],
    now: datetime,
) -> tuple[Finding, ...]:
    """Return what fails now, and one finding for each other label set of `opened`.

    `recent` is what served in the policy's `hours`, `lately` in its `gone_hours`. An assistant without an entry
    in the registry is not looked at.
    """
    books: defaultdict[str, list[Registered]] = defaultdict(list)
    for entry in registered:
        books[entry.assistant].append(entry)
    found = []
    failing = set()
    for (_, environment), one in _by_assistant(recent, books, policy).items():
        if environment in environments:
            for key, tally in _folded(one, policy).items():
                if _is_much(tally, one.total, policy):
                    failing.add(key)
                    found.append(_failing(dict(key), tally, one.total, policy, now=now))
    before = _by_assistant(lately, books, policy)
    for key in sorted({_key(labels) for labels in opened} - failing):
        labels = dict(key)
        if labels["assistant"] in books:
            one = before.get((labels["assistant"], Environment(labels["environment"])), _Traffic())
            found.append(_passing(labels, one, policy, now=now))
        else:
            reason = "the registry holds nothing of this assistant any more"
            found.append(_said(Outcome.PASS, labels, reason, policy, now=now, clear=True))
    return tuple(found)


@dataclass
class _Traffic:
    """What one assistant served in an environment: all of it, and by labels what nobody evaluated."""

    total: Tally = NOTHING
    wrong: dict[_Key, Tally] = field(default_factory=dict)


def _by_assistant(
    served: Mapping[Served, Tally], books: Mapping[str, Sequence[Registered]], policy: ConfigurationPolicy
) -> dict[tuple[str, Environment], _Traffic]:
    found: defaultdict[tuple[str, Environment], _Traffic] = defaultdict(_Traffic)
    for one, tally in served.items():
        if one.assistant in books:
            traffic = found[one.assistant, one.environment]
            traffic.total = traffic.total.plus(tally)
            whose = {"assistant": one.assistant, "environment": str(one.environment)}
            for labels in _wrong(dict(one.values), books[one.assistant], policy):
                key = _key(whose | labels)
                traffic.wrong[key] = traffic.wrong.get(key, NOTHING).plus(tally)
    return dict(found)


def _wrong(
    values: Mapping[str, str], mine: Sequence[Registered], policy: ConfigurationPolicy
) -> Iterator[dict[str, str]]:
    """Yield what is wrong with one configuration, as labels."""
    if not is_registered(values, mine, policy):
        # What is counted under one name has no values to show.
        named = {str(key): name_of(values.get(key)) for key in policy.combination} if values else {}
        yield {"check": str(Check.NEVER_EVALUATED)} | named
    pair = values.get("model_asked", ""), values.get("model_answered", "")
    evaluated = {(entry.values.get("model_asked"), entry.values.get("model_answered")) for entry in mine}
    if is_another_model(*pair) and pair not in evaluated:
        yield {"check": str(Check.OTHER_MODEL)} | dict(zip(MODELS, map(name_of, pair), strict=True))


def _folded(traffic: _Traffic, policy: ConfigurationPolicy) -> dict[_Key, Tally]:
    """Put what is too little by itself under one key: a hash that changes with each call must not stay unseen."""
    found: dict[_Key, Tally] = {}
    for key, tally in traffic.wrong.items():
        labels = dict(key)
        if labels["check"] == Check.NEVER_EVALUATED and not _is_much(tally, traffic.total, policy):
            key = _various(labels)  # noqa: PLW2901 - the key under which it counts
        found[key] = found.get(key, NOTHING).plus(tally)
    return found


def _various(labels: Mapping[str, str]) -> _Key:
    return _key({name: labels[name] for name in ("assistant", "environment", "check")})


def _is_much(tally: Tally, total: Tally, policy: ConfigurationPolicy) -> bool:
    return tally.n >= policy.min_count and tally.weight / total.weight >= policy.share_min


def _failing(
    labels: dict[str, str], tally: Tally, total: Tally, policy: ConfigurationPolicy, *, now: datetime
) -> Finding:
    share = tally.weight / total.weight
    reason = (
        f"{tally.n} of {total.n} judged conversations of the last {policy.hours} h, which stand for {share:.0%} "
        f"of the traffic; told from {policy.share_min:.0%} and {policy.min_count} conversations on"
    )
    figure = Figure(name="share of the traffic", value=share, limit=policy.share_min, n=total.n)
    return _said(Outcome.FAIL, labels, reason, policy, now=now, figures=(figure,))


def _passing(
    labels: dict[str, str], traffic: _Traffic, policy: ConfigurationPolicy, *, now: datetime
) -> Finding:
    if not traffic.total.n:
        reason = f"no conversation was judged in the last {policy.gone_hours} h"
        return _said(Outcome.NO_DATA, labels, reason, policy, now=now)
    key = _key(labels)
    if labels["check"] == Check.NEVER_EVALUATED and key == _various(labels):
        tally = _folded(traffic, policy).get(key, NOTHING)
        is_left = _is_much(tally, traffic.total, policy)
    else:
        tally = traffic.wrong.get(key, NOTHING)
        is_left = tally.n > 0
    if is_left:
        reason = (
            f"still {tally.n} of {traffic.total.n} judged conversations of the last {policy.gone_hours} h"
        )
    else:
        reason = f"evaluated by now, or not seen for {policy.gone_hours} h"
    return _said(Outcome.PASS, labels, reason, policy, now=now, clear=not is_left)


def _said(
    outcome: Outcome,
    labels: dict[str, str],
    reason: str,
    policy: ConfigurationPolicy,
    *,
    now: datetime,
    clear: bool = False,
    figures: tuple[Figure, ...] = (),
) -> Finding:
    return Finding(
        kind=FindingKind.CONFIGURATION,
        labels=labels,
        severity=policy.severity,
        outcome=outcome,
        clear=clear,
        reason=reason,
        since=now - timedelta(hours=policy.hours),
        figures=figures,
    )


def _key(labels: Mapping[str, str]) -> _Key:
    return tuple(sorted((str(name), str(value)) for name, value in labels.items()))
