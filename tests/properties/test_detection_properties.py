from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.detection.attribution import attribute
from monitor.detection.baseline import BaselinePolicy, pin_dimension
from monitor.detection.counts import CountsCache, Floats, SeriesCounts
from monitor.detection.multiplicity import log_sr, paths
from monitor.detection.regression import RegressionPolicy, assess, increments, payoffs
from monitor.windows.bucket import OVERALL, BucketCounts, Cell

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
POLICY = RegressionPolicy()
RATES = ("0.05", "0.25")
KEY = ("factual", OVERALL)
BASELINE_ROWS, ROWS = 96, 60


def drawn(seed: int, rows: int, *, fall: float = 0.0) -> dict[datetime, BucketCounts]:
    """Draw buckets of two strata and two rates; `fall` moves a share of the fives to threes."""
    chance = np.random.default_rng(seed)
    buckets: dict[datetime, BucketCounts] = {}
    for row in range(rows):
        cells: dict[Cell, int] = {}
        for stratum in ("billing", "refund"):
            for rate in RATES:
                p = np.array([0.01, 0.01, 0.18 + fall, 0.4, 0.4 - fall])
                for mark, count in enumerate(chance.multinomial(chance.poisson(15), p), 1):
                    cells[Cell("factual", OVERALL, stratum, str(mark), rate)] = int(count)
        buckets[MONDAY + row * QUARTER] = cells
    return buckets


def dense(buckets: dict[datetime, BucketCounts], order: list[datetime] | None = None) -> SeriesCounts:
    cache = CountsCache(bucket_minutes=15, span=timedelta(days=3))
    for start in order or buckets:
        cache.update({start: buckets[start]})
    return cache.series(KEY, min(buckets), max(buckets) + QUARTER)


NORMAL = pin_dimension(dense(drawn(1, BASELINE_ROWS)), BaselinePolicy())


@given(st.integers(0, 2**31), st.floats(0, 0.3))
@settings(max_examples=40, deadline=None)
def test_recomputing_equals_the_recursion(seed: int, fall: float) -> None:
    """What is recomputed from buckets is the detector of the literature: R_t = (1 + R_t-1) exp(l_t)."""
    series = dense(drawn(seed, ROWS, fall=fall))
    sums = increments([(series, payoffs(series, NORMAL, POLICY))])
    running = np.zeros(sums.wealth.shape[2])
    for added in sums.wealth[0]:
        running = (1 + running) * np.exp(added)

    assert assess(sums, POLICY).evidence[0] == pytest.approx(np.log(running.mean()), abs=1e-9)


@given(st.integers(0, 671), st.integers(1, ROWS), st.sampled_from([24, 168]))
@settings(max_examples=40, deadline=None)
def test_a_bucket_counts_by_its_own_hour_wherever_a_window_begins(
    quarter: int, rows: int, cells: int
) -> None:
    """A window begins at any quarter and passes midnight; a profile begins there."""
    begin = MONDAY + quarter * QUARTER
    series = replace(dense(drawn(5, ROWS)).rows(0, rows), start=begin)

    def added(*profile: float) -> Floats:
        normal = NORMAL.model_copy(update={"profile": profile})
        return increments([(series, payoffs(series, normal, POLICY))]).wealth[0]

    profile = [hour / 200 for hour in range(cells)]
    by_hour = {hour: added(profile[hour]) for hour in {(quarter + row) // 4 % cells for row in range(rows)}}
    expected = [by_hour[(quarter + row) // 4 % cells][row] for row in range(rows)]

    assert added(*profile) == pytest.approx(np.array(expected), abs=1e-9)


@given(st.randoms(use_true_random=False), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_the_order_in_which_buckets_are_read_does_not_matter(chance: object, seed: int) -> None:
    """Shards and leaders read as they like."""
    buckets = drawn(seed, ROWS, fall=0.1)
    order = list(buckets)
    chance.shuffle(order)  # type: ignore[attr-defined]
    one, other = dense(buckets), dense(buckets, order)

    found = [assess(increments([(each, payoffs(each, NORMAL, POLICY))]), POLICY) for each in (one, other)]

    assert found[0].evidence[0] == pytest.approx(found[1].evidence[0], abs=1e-9)
    assert found[0].trimmed[0] == pytest.approx(found[1].trimmed[0], abs=1e-9)
    assert found[0].onset[0] == found[1].onset[0]


@given(st.integers(0, ROWS - 1), st.sampled_from([1, 5]), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_a_late_event_changes_its_own_bucket_only(row: int, score: int, seed: int) -> None:
    """And with it the sums that follow; what was counted elsewhere stays bit for bit."""
    buckets = drawn(seed, ROWS)
    cell = Cell("factual", OVERALL, "refund", str(score), "0.05")
    start = MONDAY + row * QUARTER
    late = buckets | {start: {**buckets[start], cell: buckets[start].get(cell, 0) + 1}}
    before, after = (
        increments([(series, payoffs(series, NORMAL, POLICY))]) for series in (dense(buckets), dense(late))
    )
    others = np.arange(ROWS) != row

    assert np.array_equal(before.wealth[:, others], after.wealth[:, others])
    assert np.array_equal(before.residual[:, others], after.residual[:, others])
    worse = bool((after.wealth[0, row] > before.wealth[0, row]).all())
    assert worse == (score == 1)


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(*(st.floats(0, 1e5), st.floats(1, 5)) * 2),
        min_size=1,
    )
)
@settings(max_examples=200, deadline=None)
def test_an_attribution_adds_up_exactly(groups: dict[str, tuple[float, float, float, float]]) -> None:
    """Percentages that do not add up cost more trust than they earn."""
    before = {name: (w, w * x) for name, (w, x, _, _) in groups.items()}
    since = {name: (w, w * x) for name, (_, _, w, x) in groups.items()}

    found = attribute(before, since)

    if found is not None:
        assert found.within + found.mix == pytest.approx(found.change, abs=1e-9)


@given(st.sampled_from([0.1, 0.5, 2.0, 3.0]), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_scaling_all_weights_changes_nothing(factor: float, seed: int) -> None:
    """Weights are relative: halving every rate makes no finding."""

    def scaled(buckets: dict[datetime, BucketCounts]) -> dict[datetime, BucketCounts]:
        return {
            start: {cell._replace(rate=f"{float(cell.rate) * factor:.6g}"): n for cell, n in cells.items()}
            for start, cells in buckets.items()
        }

    found = []
    for change in (dict, scaled):
        normal = pin_dimension(dense(change(drawn(1, BASELINE_ROWS))), BaselinePolicy())
        series = dense(change(drawn(seed, ROWS, fall=0.1)))
        found.append(assess(increments([(series, payoffs(series, normal, POLICY))]), POLICY))

    for name in ("evidence", "trimmed", "effect", "se", "recent"):
        assert getattr(found[0], name)[0] == pytest.approx(getattr(found[1], name)[0], rel=1e-6)


def test_without_a_fall_the_wealth_of_every_bet_is_at_most_one_on_average() -> None:
    """The bound on false findings rests on this, at the worst mean that still counts as normal.

    The two rates have different means, and only their weighted mean is what the baseline says.
    """
    mean, tolerance = NORMAL.strata["billing"].mean, NORMAL.strata["billing"].tolerance
    wealth = _null_wealth(mean - tolerance, units=40, runs=40_000)
    average, error = wealth.mean(axis=0), wealth.std(axis=0) / np.sqrt(len(wealth))

    assert (average <= 1 + 3 * error).all()
    assert (average > 0.9).all()
    fallen = _null_wealth(mean - tolerance - 0.3, units=40, runs=2000)
    assert np.log(fallen).mean() > 0


def test_evidence_over_the_threshold_is_as_rare_as_promised() -> None:
    """At most n exp(-h) of all runs of n evaluations raise E above h."""
    mean, tolerance = NORMAL.strata["billing"].mean, NORMAL.strata["billing"].tolerance
    h, n, runs = 4.0, 20, 4000
    steps = np.stack([np.log(_null_wealth(mean - tolerance, 5, runs, seed)) for seed in range(n)], axis=1)
    wealth = paths(steps, np.zeros(runs, dtype=np.intp))
    raised = np.zeros(runs, dtype=np.bool_)
    for end in range(2, n + 2):
        raised |= log_sr(wealth[..., :end]) > h

    assert raised.mean() <= n * np.exp(-h)


def _null_wealth(mean: float, units: int, runs: int, seed: int = 7) -> Floats:
    """Draw [run, bet] wealth after some units of one stratum, whose weighted mean is `mean`."""
    columns = (("billing", "0.05"), ("billing", "0.25"))
    series = SeriesCounts(
        dimension="factual",
        segment=OVERALL,
        start=MONDAY,
        bucket_minutes=15,
        columns=columns,
        weights=np.array([20.0, 4.0]),
        values=np.arange(1, 6, dtype=np.float64),
        counts=np.zeros((runs, 2, 5)),
    )
    chance = np.random.default_rng(seed)
    light = chance.binomial(units, 0.5, runs)
    # Of the weight, 20 of 24 lie in the heavy class: the light one may be far below, the heavy one makes up for it.
    means = (mean + 0.5 * 4 / 20, mean - 0.5)
    for place, n in enumerate((units - light, light)):
        low = int(means[place])
        highs = chance.binomial(n, means[place] - low)
        series.counts[:, place, low - 1] = n - highs
        series.counts[:, place, low] = highs
    sums = increments([(series, payoffs(series, NORMAL, POLICY))])
    return np.exp(sums.wealth[0])
