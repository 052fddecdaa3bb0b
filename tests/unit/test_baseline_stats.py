from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from monitor.detection.baseline import Baseline, BaselinePolicy, diff, pin, pin_dimension
from monitor.detection.counts import CountsCache, SeriesCounts
from monitor.windows.bucket import CRITICAL, OVERALL, Cell

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
QUARTER = timedelta(minutes=15)


def a_cache(days: float, *, shift: float = 0.0, hourly: list[float] | None = None) -> CountsCache:
    """Fill buckets of 40 units an intent, of mean 4.5 - shift, where one unit in ten has the rate 0.5."""
    cache = CountsCache(bucket_minutes=15, span=timedelta(days=40))
    buckets = {}
    for row in range(int(days * 96)):
        off = shift + (hourly[row // 4 % len(hourly)] if hourly else 0.0)
        fours = round(18 * (1 + 2 * off))
        buckets[MONDAY + row * QUARTER] = {
            Cell("factual", OVERALL, "billing", "5", "0.1"): 36 - fours,
            Cell("factual", OVERALL, "billing", "4", "0.1"): fours,
            Cell("factual", OVERALL, "billing", "4", "0.5"): 4,
            Cell("factual", OVERALL, "billing", "a", "0.5"): 3,
            Cell(CRITICAL, OVERALL, "billing", "0", "0.1"): 39,
            Cell(CRITICAL, OVERALL, "billing", "1", "0.1"): 1 if row % 5 == 0 else 0,
            Cell(CRITICAL, OVERALL, "refund", "0", "0.1"): 1 if row == 0 else 0,
        }
    cache.update(buckets)
    return cache


def seen(cache: CountsCache, days: float, dimension: str = "factual") -> SeriesCounts:
    return cache.series((dimension, OVERALL), MONDAY, MONDAY + timedelta(days=days))


def pinned(cache: CountsCache, days: float) -> Baseline:
    series = [seen(cache, days, name) for name in ("factual", CRITICAL)]
    return pin(series, scope_id="s", label="release 7")


def test_means_stand_for_all_traffic() -> None:
    """36 units stand for 360 conversations of mean 4.5, four for 8 of mean 4."""
    billing = pinned(a_cache(1), 1).dimensions["factual"].strata["billing"]

    assert billing.mean == pytest.approx((360 * 4.5 + 8 * 4) / 368)
    assert billing.n == 40 * 96
    assert billing.se == pytest.approx(np.sqrt(billing.variance * billing.weight_squares) / billing.weight)


def test_a_baseline_survives_json_and_keeps_its_id() -> None:
    """It is stored by one process and read by another."""
    baseline = pinned(a_cache(7), 7)

    assert Baseline.model_validate_json(baseline.model_dump_json()) == baseline
    assert Baseline.model_validate_json(baseline.model_dump_json()).id == baseline.id
    assert baseline.end - baseline.start == timedelta(days=7)


def test_a_span_without_a_unit_is_no_baseline() -> None:
    """Nothing must never become normal."""
    with pytest.raises(ValueError, match="has none"):
        pinned(CountsCache(bucket_minutes=15, span=timedelta(days=1)), 1)


def test_few_units_are_tolerated_more() -> None:
    """A mean of 96 units is no reason to page about 0.05."""
    few = pin_dimension(seen(a_cache(7), 1 / 96), BaselinePolicy())
    many = pin_dimension(seen(a_cache(7), 7), BaselinePolicy())

    assert many.strata["billing"].tolerance == pytest.approx(0.03)
    assert few.strata["billing"].tolerance > 0.1


def test_wander_is_measured_and_tolerated() -> None:
    """A judge that swings by 0.1 from hour to hour, with no daily pattern, must not page by it."""
    chance = np.random.default_rng(3)
    hourly = chance.choice([-0.1, 0.1], 168).tolist()
    wandering = pin_dimension(seen(a_cache(7, hourly=hourly), 7), BaselinePolicy())

    assert wandering.profile == (0.0,)
    assert wandering.wander == pytest.approx(0.1, abs=0.02)
    assert wandering.strata["billing"].tolerance == pytest.approx(2 * wandering.wander)


def test_hours_of_the_day_are_learned_from_a_week_and_hours_of_the_week_from_three() -> None:
    """A weekend shift is seen three times before it is called normal."""
    day = [0.1] * 8 + [0.0] * 16
    weekend = [0.0] * 120 + [0.2] * 48
    assert len(pin_dimension(seen(a_cache(7, hourly=day), 7), BaselinePolicy()).profile) == 24
    assert len(pin_dimension(seen(a_cache(6, hourly=day), 6), BaselinePolicy()).profile) == 1

    weekly = pin_dimension(seen(a_cache(21, hourly=weekend), 21), BaselinePolicy())

    assert len(weekly.profile) == 168
    assert weekly.profile[150] - weekly.profile[20] == pytest.approx(-0.2, abs=0.03)
    assert weekly.wander < 0.02


def test_a_share_is_shrunk_to_the_common_one_and_bounded() -> None:
    """One conversation without a failure does not make failures impossible."""
    shares = pinned(a_cache(7), 7).shares[CRITICAL].strata

    assert shares["billing"].share == pytest.approx(0.2 / 39.2, rel=0.1)
    assert shares["billing"].share < shares["billing"].high < 1.5 * shares["billing"].share
    assert 0.002 < shares["refund"].share < 0.01
    assert shares["refund"].high > shares["billing"].high


def test_a_diff_tells_what_got_worse_first() -> None:
    """Whoever accepts a new baseline sees what they accept."""
    before, after = pinned(a_cache(7), 7), pinned(a_cache(7, shift=0.2), 7)

    worst = diff(before, after)[0]

    assert (worst.dimension, worst.stratum) == ("factual", "billing")
    assert worst.mean is not None
    assert worst.mean_before is not None
    assert worst.mean - worst.mean_before == pytest.approx(-0.2, abs=0.01)
    assert worst.z is not None
    assert worst.z < -10
    assert diff(before, before)[0].z == 0


def test_a_cache_takes_a_changed_bucket_in_the_place_of_the_old_one() -> None:
    """A late event or a superseding revision changes its own bucket, cells that vanish included."""
    cache = a_cache(1)
    cell = Cell("factual", OVERALL, "other", "3", "1")
    assert cache.update({MONDAY: {cell: 2}}) == 1

    series = seen(cache, 1)

    assert series.counts[0].sum() == 2
    assert series.counts[1].sum() == 40


def test_a_cache_moves_on_and_forgets_what_is_older_than_its_span() -> None:
    """A process that runs for a year must not hold a year."""
    cache = CountsCache(bucket_minutes=15, span=timedelta(days=2))
    cell = Cell("factual", OVERALL, "billing", "5", "1")
    for row in range(96 * 10):
        cache.update({MONDAY + row * QUARTER: {cell: row + 1}})
    assert cache.update({MONDAY: {cell: 1}}) == 0

    end = MONDAY + timedelta(days=10)
    series = cache.series(("factual", OVERALL), end - timedelta(days=2), end)

    assert series.counts[:, 0, 4].tolist() == list(range(96 * 8 + 1, 96 * 10 + 1))
    assert cache.series(("factual", "none"), MONDAY, end).n == 0
