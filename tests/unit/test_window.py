"""The figures of a window."""

import math

import pytest

from monitor.judging.judgment import FailureKind, JudgeFailure, Judgment
from monitor.windows.bucket import CRITICAL, OVERALL, BucketCounts, contribution
from monitor.windows.policy import WindowPolicy
from monitor.windows.window import (
    WindowStats,
    all_stats,
    merged,
    no_stats,
    window,
)
from tests.judgments import HOUR, MINUTE, NOON, a_failure, a_judgment

POLICY = WindowPolicy(strata=("intent",))


def counts_of(*records: Judgment | JudgeFailure) -> BucketCounts:
    added = [contribution(record, POLICY) for record in records]
    return merged(dict.fromkeys(a.cells, 1) for a in added if a is not None)


def safety(*scores: int | None, rates: tuple[float, ...] = ()) -> WindowStats:
    weights = rates or (1.0,) * len(scores)
    records = [
        a_judgment(f"c-{i}", scores={"safety": score}, rate=rate)
        for i, (score, rate) in enumerate(zip(scores, weights, strict=True))
    ]
    return all_stats(counts_of(*records))["safety", OVERALL]


def test_the_mean_is_weighted_by_what_each_unit_stands_for() -> None:
    """One of twenty unflagged conversations stands for twenty, a flagged one for itself."""
    stats = safety(5, 1, rates=(0.05, 1.0))

    assert stats.mean == pytest.approx((20 * 5 + 1) / 21)
    assert stats.mean_unweighted == 3
    assert stats.weight == 21
    assert (stats.pass_at_4, stats.pass_at_4_unweighted) == (pytest.approx(20 / 21), 0.5)
    assert (stats.critical_rate, stats.critical_rate_unweighted) == (pytest.approx(1 / 21), 0.5)


def test_the_interval_is_the_textbooks_where_weights_are_equal() -> None:
    """With one weight the Hajek mean is the plain mean, and so is its interval."""
    stats = safety(5, 5, 4, 2, 3, rates=(0.1,) * 5)
    mean, sd = 3.8, math.sqrt(sum((x - 3.8) ** 2 for x in (5, 5, 4, 2, 3)) / 4)

    assert stats.mean == pytest.approx(mean)
    assert stats.mean_low == pytest.approx(mean - 1.959964 * sd / math.sqrt(5))
    assert stats.mean_high == pytest.approx(mean + 1.959964 * sd / math.sqrt(5))
    assert safety(5, 5, 5, 5, 1).mean_high == 5  # cut at the end of the scale


def test_nothing_counted_is_none_and_never_zero() -> None:
    """A mean of zero on a quiet night is how false alarms are made."""
    stats = no_stats("safety", OVERALL)

    assert (stats.n, stats.mean, stats.pass_at_4, stats.critical_rate, stats.coverage) == (0,) + (None,) * 4
    assert safety(None).mean is None
    assert safety(None).abstained == 1


def test_one_unit_has_a_mean_and_no_interval() -> None:
    """A single case has no spread, and an interval of width zero would be a lie."""
    assert (safety(4).mean, safety(4).mean_low) == (4, None)


def test_abstentions_are_left_out_of_every_figure() -> None:
    """N/A is never averaged."""
    assert safety(5, None, 3).mean == 4
    assert safety(5, None, 3).n == 2


def test_coverage_says_how_many_could_be_judged() -> None:
    """Rows that a judge lost must show beside the average."""
    stats = all_stats(counts_of(a_judgment("a"), a_judgment("b"), a_failure("c"), a_failure("d")))

    assert stats["safety", OVERALL].coverage == 0.5
    assert stats["safety", "intent=returns"].coverage == 0.5
    assert stats["safety", OVERALL].mean == 5


def test_what_a_budget_thinned_out_is_shown_and_missing_nowhere() -> None:
    """What was kept weighs as much more, so the figure is whole; a judge that lost as many would leave a hole."""
    left_out = [a_failure(f"t{n}", why=FailureKind.THINNED) for n in range(3)]
    counts = counts_of(a_judgment("a", rate=0.25), a_failure("c"), *left_out)
    stats = all_stats(counts)["safety", OVERALL]

    assert (stats.judged, stats.failed, stats.thinned, stats.coverage) == (1, 1, 3, 0.5)
    assert all_stats(counts)[CRITICAL, OVERALL].critical_rate == 0.0
    assert window({NOON: counts}, NOON, NOON + HOUR).units == 1
    used_up = all_stats(counts_of(a_judgment("a"), a_failure("c", why=FailureKind.BUDGET)))
    assert used_up["safety", OVERALL].coverage == 0.5, "nothing stands for it"


def test_critical_counts_units_not_scores() -> None:
    """A conversation that fails twice is one critical conversation."""
    bad = a_judgment("a", scores={"safety": 1, "policy_adherence": 1})
    stats = all_stats(counts_of(bad, a_judgment("b"), a_failure("c")))[CRITICAL, OVERALL]

    assert (stats.n, stats.critical_rate, stats.mean) == (2, 0.5, None)


def test_a_window_ends_before_the_bucket_that_begins_at_its_end() -> None:
    """Two windows side by side share no bucket."""
    one = counts_of(a_judgment())
    buckets = {NOON - 15 * MINUTE: one, NOON: one, NOON + HOUR: one}

    assert window(buckets, NOON, NOON + HOUR).units == 1
    assert window({}, NOON, NOON + HOUR).units == 0


def test_the_bounds_hold_whatever_the_missing_would_score() -> None:
    """A mean over those that a judge could judge says nothing of the others; the bounds do, by weight."""
    records = [
        a_judgment("a", scores={"safety": 4}),
        a_judgment("b", scores={"safety": None}),
        a_failure("c", rate=0.25),
        a_judgment("d", scores={"safety": 3}, rate=0.5),
    ]
    stats = all_stats(counts_of(*records))["safety", OVERALL]

    # 4 + 2 * 3, and 1 + 4 that are missing, of 8.
    assert stats.bounds == ((10 + 5) / 8, (10 + 25) / 8)
    assert stats.mean == pytest.approx(10 / 3)
    assert safety(5, 3).bounds == (4, 4)
    assert safety(None).bounds == (1, 5)
    assert no_stats("safety", OVERALL).bounds is None
    assert all_stats(counts_of(*records))[CRITICAL, OVERALL].bounds is None
