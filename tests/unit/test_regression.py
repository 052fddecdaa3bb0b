from datetime import UTC, datetime

import numpy as np
import pytest

from monitor.detection.baseline import BaselinePolicy, DimensionBaseline, pin_dimension
from monitor.detection.counts import SeriesCounts
from monitor.detection.regression import Assessment, RegressionPolicy, assess, increments, payoffs

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
WEEK = 672
POLICY = RegressionPolicy()
ENOUGH = 11.65
"""ln(40 series x 2880 evaluations a month / 1 false finding a month)."""
COLUMNS = (("billing", "0.1"), ("refund", "0.1"))
GOOD = {"billing": (0, 0, 0, 10, 10), "refund": (0, 0, 5, 10, 5)}
"""Units by score in each bucket: means 4.5 and 4.0."""
DOWN = {"billing": (0, 0, 0, 14, 6), "refund": (0, 0, 7, 10, 3)}
"""Both 0.2 lower."""
FAR_DOWN = {"billing": (0, 0, 5, 10, 5), "refund": (0, 5, 5, 5, 5)}
"""Both 0.5 lower."""

Bucket = dict[str, tuple[int, ...]]


def a_series(*stretches: tuple[int, Bucket], columns: tuple[tuple[str, str], ...] = COLUMNS) -> SeriesCounts:
    """Build a series of stretches of equal buckets; a bucket is keyed by stratum, or by stratum/rate."""
    rows = [
        [bucket.get(f"{stratum}/{rate}", bucket.get(stratum, (0,) * 5)) for stratum, rate in columns]
        for length, bucket in stretches
        for _ in range(length)
    ]
    return SeriesCounts(
        dimension="factual",
        segment="*",
        start=MONDAY,
        bucket_minutes=15,
        columns=columns,
        weights=np.array([1 / float(rate) for _, rate in columns]),
        values=np.arange(1, 6, dtype=np.float64),
        counts=np.array(rows, dtype=np.float64),
    )


def a_baseline(*stretches: tuple[int, Bucket], **columns: tuple[tuple[str, str], ...]) -> DimensionBaseline:
    return pin_dimension(a_series(*(stretches or ((WEEK, GOOD),)), **columns), BaselinePolicy())


def assessed(series: SeriesCounts, baseline: DimensionBaseline | None = None, **more: float) -> Assessment:
    known = baseline or a_baseline()
    return assess(increments([(series, payoffs(series, known, POLICY, **more))]), POLICY)


def fires(found: Assessment) -> bool:
    return bool(found.evidence[0] > ENOUGH and found.sustained[0])


def test_a_sustained_fall_is_found_with_its_onset_and_size() -> None:
    """People ask since when and how much before they ask anything else."""
    found = assessed(a_series((96, GOOD), (16, DOWN)))

    assert fires(found)
    assert found.onset[0] == 96
    assert found.onset_low[0] <= 96 <= found.onset_high[0]
    assert found.effect[0] == pytest.approx(-0.2)
    assert found.low[0] < -0.2 < found.high[0] < 0


def test_a_fifth_of_a_point_is_a_ticket_and_half_a_point_pages() -> None:
    """A sustained 0.2 warrants investigation in business hours; nobody is woken for it."""
    assert not assessed(a_series((96, GOOD), (16, DOWN))).pages[0]
    assert assessed(a_series((96, GOOD), (16, FAR_DOWN))).pages[0]


def test_an_hour_long_blip_is_forgiven_however_deep() -> None:
    """A judge's hiccup or a short outage is over before anyone could act."""
    for after in range(8):
        found = assessed(a_series((96, GOOD), (4, FAR_DOWN), (after, GOOD)))
        assert found.evidence[0] > 0
        assert not found.sustained[0]


def test_a_blip_after_a_little_bad_luck_is_forgiven_and_a_fall_as_deep_is_told_soon() -> None:
    """What chance left beside a blip is small for what the blip held; a real fall goes on in its depth."""
    unlucky = [assessed(a_series((96, GOOD), (3, DOWN), (5, FAR_DOWN), (after, GOOD))) for after in range(4)]
    fall = assessed(a_series((96, GOOD), (8, FAR_DOWN)))

    assert not any(fires(found) for found in unlucky)
    assert fires(fall)


def test_a_segment_needs_more_beside_a_blip_than_all_traffic() -> None:
    """A blip of all traffic is one of nine intents, and one of nine is soon unlucky as well."""
    series = a_series((96, GOOD), (7, DOWN))
    sums = increments([(series, payoffs(series, a_baseline(), POLICY))] * 2)

    found = assess(sums, POLICY, parts=np.array([False, True]))

    assert POLICY.trimmed_min_nats < found.trimmed[0] < POLICY.trimmed_parts_min_nats
    assert found.trimmed[0] == found.trimmed[1]
    assert list(found.sustained) == [True, False]


def test_a_change_of_traffic_is_not_a_change_of_quality() -> None:
    """The overall mean falls by 0.17 here, and no intent got worse."""
    more_refunds = GOOD | {"refund": (0, 0, 25, 50, 25)}

    found = assessed(a_series((96, GOOD), (200, more_refunds)))

    assert found.evidence[0] < 3
    assert found.effect[0] != pytest.approx(-0.17, abs=0.1)


def test_sampling_more_of_the_bad_class_is_no_fall() -> None:
    """Raising a rate adds units of less weight each; a monitor must not page on its own policy."""
    columns = (("billing", "0.05"), ("billing", "0.25"), ("billing", "0.5"))
    before = {"billing/0.05": (0, 0, 0, 10, 10), "billing/0.25": (0, 0, 10, 0, 0)}
    after = {"billing/0.05": (0, 0, 0, 10, 10), "billing/0.5": (0, 0, 20, 0, 0)}
    baseline = a_baseline((WEEK, before), columns=columns)

    found = assessed(a_series((96, before), (96, after), columns=columns), baseline)

    assert found.evidence[0] < 5
    assert not found.sustained[0]


def test_more_conversations_going_wrong_is_a_fall_though_no_class_got_worse() -> None:
    """Thumbs down are an effect of quality: stratified by them, such a fall would be adjusted away."""
    columns = (("billing", "0.05"), ("billing", "0.25"))
    before = {"billing/0.05": (0, 0, 0, 10, 10), "billing/0.25": (0, 0, 6, 0, 0)}
    after = {"billing/0.05": (0, 0, 0, 9, 9), "billing/0.25": (0, 0, 20, 0, 0)}
    baseline = a_baseline((WEEK, before), columns=columns)

    assert fires(assessed(a_series((96, before), (24, after), columns=columns), baseline))


def test_a_stratum_without_a_baseline_neither_alarms_nor_calms() -> None:
    """A new intent has no normal yet."""
    columns = (*COLUMNS, ("new", "0.1"))
    terrible = DOWN | {"new": (50, 0, 0, 0, 0)}

    found = assessed(a_series((96, GOOD), (16, terrible), columns=columns))

    assert found.evidence[0] == pytest.approx(assessed(a_series((96, GOOD), (16, DOWN))).evidence[0])
    assert found.effect[0] == pytest.approx(-0.2)


def test_it_resolves_when_quality_is_back_and_not_before() -> None:
    """An alert that ends while things are bad teaches people to ignore ends."""
    assert not assessed(a_series((96, GOOD), (40, DOWN))).recovered[0]
    assert not assessed(a_series((96, GOOD), (40, DOWN), (8, GOOD))).recovered[0]
    assert assessed(a_series((96, GOOD), (40, DOWN), (14, GOOD))).recovered[0]


def test_a_quiet_night_of_good_answers_does_not_end_a_fall_in_which_one_of_seven_is_bad() -> None:
    """Twelve good answers on end are no wonder then, and in the morning people would be woken for it again."""
    columns = (("billing", "0.05"),)
    baseline = a_baseline((WEEK, {"billing": (0, 0, 0, 1, 49)}), columns=columns)
    broken, good = {"billing": (1, 0, 0, 0, 6)}, {"billing": (0, 0, 0, 0, 7)}
    quiet = ((8, {"billing": (0, 0, 0, 0, 1)}), (2, {}), (2, {"billing": (0, 0, 0, 0, 2)}))

    def is_back(*after: tuple[int, Bucket]) -> bool:
        series = a_series((96, good), (40, broken), *after, columns=columns)
        return bool(assessed(series, baseline).recovered[0])

    assert not is_back(*quiet)
    assert is_back(*quiet, (16, good))


def test_what_may_excuse_a_fall_does_not_end_it() -> None:
    """The judge lost 0.3 and may have lost 0.55: no reason to tell of half a point, nor to call it over."""
    series = a_series((96, GOOD), (24, FAR_DOWN))
    sums = increments([(series, payoffs(series, a_baseline(), POLICY, judge_shift=-0.55))])

    doubted = assess(sums, POLICY, doubt=np.array([-0.25]))
    assert not fires(doubted)
    assert np.isnan(doubted.effect[0])
    assert not doubted.recovered[0]
    assert assess(sums, POLICY).recovered[0]


def test_missing_data_never_resolves() -> None:
    """A judge outage must not look like a recovery."""
    assert not assessed(a_series((96, GOOD), (40, DOWN), (60, {}))).recovered[0]


def test_evidence_from_before_a_resolve_does_not_count_again() -> None:
    """Otherwise the alert that just ended would be raised again by the same conversations."""
    series = a_series((96, GOOD), (40, DOWN), (14, GOOD))
    sums = increments([(series, payoffs(series, a_baseline(), POLICY))])

    assert assess(sums, POLICY).evidence[0] > ENOUGH
    assert assess(sums, POLICY, since=np.array([150])).evidence[0] < 3


def test_a_night_team_within_its_baseline_is_normal_and_below_it_is_not() -> None:
    """Quality that swings every day by 0.2 would page every night against a single mean."""
    cycle = [(48, GOOD), (48, DOWN)]
    baseline = a_baseline(*cycle * 7)

    assert len(baseline.profile) == 24
    assert assessed(a_series(*cycle * 4), baseline).evidence[0] < 5
    assert fires(assessed(a_series(*cycle, (24, DOWN)), baseline))


def test_a_judge_that_became_harsher_is_excused_by_as_much_and_no_more() -> None:
    """Judge drift is subtracted, not a mute: what remains still fires."""
    assert not fires(assessed(a_series((96, GOOD), (24, DOWN)), judge_shift=-0.2))
    assert fires(assessed(a_series((96, GOOD), (24, FAR_DOWN)), judge_shift=-0.2))


def test_an_empty_series_says_nothing() -> None:
    """Division by no units must not become a number."""
    found = assessed(a_series((96, {})))

    assert found.evidence[0] == pytest.approx(np.log(96))
    assert np.isnan(found.effect[0])
    assert not found.sustained[0]
    assert not found.recovered[0]
