from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from monitor.detection.counts import SeriesCounts
from monitor.detection.critical_rate import (
    ShareRise,
    ShareRisePolicy,
    assess_shares,
    pin_share,
    share_increments,
)

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
POLICY = ShareRisePolicy()
ENOUGH = 8.0
COLUMNS = (("billing", "0.05"), ("billing", "0.25"))


def a_series(*stretches: tuple[int, tuple[int, int], tuple[int, int]]) -> SeriesCounts:
    """Build stretches of equal buckets: (no, yes) of the ordinary and of the oversampled class."""
    rows = [[plain, flagged] for length, plain, flagged in stretches for _ in range(length)]
    return SeriesCounts(
        dimension="critical",
        segment="*",
        start=MONDAY,
        bucket_minutes=15,
        columns=COLUMNS,
        weights=np.array([20.0, 4.0]),
        values=np.array([0.0, 1.0]),
        counts=np.array(rows, dtype=np.float64).reshape(-1, 2, 2),
    )


def a_week() -> tuple[tuple[int, tuple[int, int], tuple[int, int]], ...]:
    """Return seven days of 60 and 30 units a bucket with 1 in 100 critical conversations."""
    return ((5, (60, 0), (30, 0)), (2, (58, 2), (28, 2))) * 96


def rise(series: SeriesCounts, **more: np.ndarray) -> ShareRise:
    baseline = pin_share(a_series(*a_week()))
    return assess_shares(share_increments([(series, baseline)], POLICY), POLICY, **more)


def test_a_multiple_is_found_within_the_hour() -> None:
    """Critical failures are what people are woken for."""
    found = rise(a_series(*a_week()[:20], (4, (54, 6), (26, 4))))

    assert found.evidence[0] > ENOUGH
    assert found.sustained[0]
    assert abs(found.onset[0] - 70) <= 1
    assert found.onset_low[0] <= 69 <= found.onset_high[0] <= 73
    assert found.share[0] == pytest.approx(0.1, abs=0.01)
    assert found.normal[0] == pytest.approx(0.01, abs=0.003)


def test_an_onset_is_known_as_far_as_the_cases_tell() -> None:
    """A failure before the rise may be its first or chance; one hour that began it at once leaves no doubt."""
    vague = rise(a_series((96, (60, 0), (30, 0)), *[(1, (57, 3), (30, 0)), (1, (60, 0), (30, 0))] * 12))
    sharp = rise(a_series((96, (60, 0), (30, 0)), (6, (40, 20), (20, 10))))

    assert sharp.onset_low[0] == 95
    assert sharp.onset[0] == sharp.onset_high[0] == 96
    assert vague.onset_low[0] < vague.onset_high[0]
    assert vague.onset_low[0] <= 96 <= vague.onset_high[0]


def test_a_rate_lower_than_any_before_costs_a_bet_no_more_than_it_has() -> None:
    """A unit that stands for a hundred times as many would leave less than nothing, and no logarithm of it."""
    rare = replace(
        a_series((96, (60, 0), (0, 0))),
        columns=(COLUMNS[0], ("billing", "0.0005")),
        weights=np.array([20.0, 2000.0]),
    )
    rare.counts[:, 1] = (60, 0)

    assert np.isfinite(rise(rare).evidence[0])


def test_what_always_was_is_no_rise() -> None:
    """A seventh of all buckets hold a failure or four, week after week."""
    assert rise(a_series(*a_week())).evidence[0] < ENOUGH


def test_sampling_more_of_the_flagged_is_no_rise() -> None:
    """They fail more often; their weight says how many they stand for."""
    assert rise(a_series((96, (59, 1), (300, 3)))).evidence[0] < ENOUGH


def test_evidence_before_a_resolve_does_not_count() -> None:
    """Otherwise it would be raised again by the same failures."""
    series = a_series((4, (50, 10), (20, 10)), (8, (60, 0), (30, 0)))

    assert rise(series).evidence[0] > ENOUGH
    assert rise(series, since=np.array([4])).evidence[0] < ENOUGH


def test_it_resolves_on_good_hours_and_never_on_empty_ones() -> None:
    """Missing judgments are no good news."""
    bad = (8, (50, 10), (20, 10))

    assert not rise(a_series(bad)).recovered[0]
    assert not rise(a_series(bad, (40, (0, 0), (0, 0)))).recovered[0]
    assert rise(a_series(bad, (40, (60, 0), (30, 0)))).recovered[0]


def test_hours_before_an_alert_are_no_recovery() -> None:
    """Three hundredths for an hour are told of at once; the five good hours before it must not end it at once."""
    series = a_series((40, (60, 0), (30, 0)), (4, (58, 2), (29, 1)))

    assert rise(series).recovered[0]
    assert not rise(series, since=np.array([39])).recovered[0]


def test_a_share_of_nothing_is_still_not_impossible() -> None:
    """A week without a failure bounds their share; it does not forbid them."""
    baseline = pin_share(a_series((672, (60, 0), (30, 0))))

    assert 0 < baseline.strata["billing"].share < baseline.strata["billing"].high < 0.001
