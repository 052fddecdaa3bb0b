"""A judge's health in, findings of its own out; and whether its failures hide something about the answers."""

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from monitor.detection.finding import Failures, Figure, Finding, FindingKind, Outcome, Severity
from monitor.judging.health import FAILING, HealthPolicy, JudgeHealth, complaints
from monitor.windows.bucket import CRITICAL, FAILED, OVERALL, THINNED, BucketCounts

CHANCE_MAX = 0.01
"""A pattern of failures that chance makes more seldom than this has to do with what is judged."""
GROUPED_BY = "prompt_hash"
_EXPECTED_MIN = 1.0
"""Failures that chance would give a group: below one, a single unlucky unit would speak for all (Cochran, 1954)."""


def health_finding(
    health: JudgeHealth, policy: HealthPolicy, *, now: datetime, failures: Failures | None = None
) -> Finding:
    """Return what is to be said of one judge: it fails while anything is wrong with it.

    `failures` says where those of a judge lie whose series speak; it counts only while they are too many.
    """
    wrong = complaints(health, policy)
    if wrong:
        outcome, reason = Outcome.FAIL, "; ".join(one.sentence for one in wrong)
    elif health.total < policy.min_count:
        outcome, reason = Outcome.NO_DATA, f"{health.total} records of the {policy.min_count} it needs"
    else:
        outcome, reason = Outcome.PASS, f"{health.total} records, none of the limits is crossed"
    return Finding(
        kind=FindingKind.JUDGE,
        labels={"judge": health.judge_version, "stage": health.stage},
        severity=Severity.TICKET,
        outcome=outcome,
        clear=outcome is Outcome.PASS,
        reason=reason,
        since=now - timedelta(hours=policy.hours),
        figures=tuple(Figure(name=one.check, value=one.value, limit=one.limit, n=one.n) for one in wrong),
        failures=failures if any(one.check in FAILING for one in wrong) else None,
    )


def silent_finding(labels: Mapping[str, str], *, now: datetime, gone: bool) -> Finding:
    """Return what is to be said of a judge that nobody asked of late; `gone` if others were asked for a day."""
    return Finding(
        kind=FindingKind.JUDGE,
        labels=dict(labels),
        severity=Severity.TICKET,
        outcome=Outcome.PASS if gone else Outcome.NO_DATA,
        clear=gone,
        reason="others were asked for a day, and it was not" if gone else "it was not asked of late",
        since=now,
    )


def failures_depend(counts: BucketCounts, *, among: int = 1) -> bool:
    """Tell whether units fail to be judged more often for some prompts or strata than chance explains.

    Such failures may hide the bad answers, so that the figures of what could be judged must not be held back.
    `among` is how many are looked at side by side; each then has its part of the chance (Bonferroni).
    """
    by_prompt: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    by_stratum: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for cell, count in counts.items():
        if cell.dimension != CRITICAL or cell.mark == THINNED:
            continue
        failed = cell.mark == FAILED
        if cell.segment == OVERALL:
            by_stratum[cell.stratum][failed] += count
        elif cell.segment.partition("=")[0] == GROUPED_BY:
            by_prompt[cell.segment][failed] += count
    return any(_chance(list(groups.values())) < CHANCE_MAX / among for groups in (by_prompt, by_stratum))


def _chance(groups: list[list[int]]) -> float:
    """Return the chance of so uneven a table (judged, failed) by Pearson's chi-squared; 1 for one group.

    Groups too small to be expected to fail once are counted as one.
    """
    judged, failed = (sum(group[place] for group in groups) for place in (0, 1))
    total = judged + failed
    small = [group for group in groups if sum(group) * failed < _EXPECTED_MIN * total]
    groups = [group for group in groups if group not in small]
    if small:
        groups.append([sum(group[place] for group in small) for place in (0, 1)])
    if len(groups) < 2 or not judged or not failed:  # noqa: PLR2004 - one group compares with nothing
        return 1.0
    statistic = 0.0
    for good, bad in groups:
        for seen, column in ((good, judged), (bad, failed)):
            expected = (good + bad) * column / total
            statistic += (seen - expected) ** 2 / expected
    freedom = len(groups) - 1
    # Wilson and Hilferty: the cube root of chi-squared is all but normal.
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(z / math.sqrt(2))
