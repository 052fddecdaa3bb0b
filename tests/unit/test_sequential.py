"""The detector of one scope: a function of buckets, baseline and where evidence begins, whatever it remembers."""

from datetime import datetime

import pytest

from monitor.detection.policy import DetectionPolicy
from monitor.detection.sequential import Reading, SequentialDetector, excuse
from monitor.windows.bucket import OVERALL, Cell
from tests.drawn import MONDAY, QUARTER, Drawn
from tests.judgments import HOUR
from tests.sustained import a_shift, pinned_before

KEY = ("factual_correctness", OVERALL)
BASELINE = pinned_before("{}", 7).baseline
Buckets = dict[datetime, dict[Cell, int]]


def a_day(**change: object) -> Buckets:
    drawn = Drawn({"changes": [{"hours": [12, 24]} | change]} if change else {})
    return {MONDAY + n * QUARTER: drawn.bucket(MONDAY + n * QUARTER) for n in range(96)}


def read(
    detector: SequentialDetector,
    buckets: Buckets,
    *,
    hours: float = 24,
    since: dict[tuple[str, str], datetime] | None = None,
    shift: float = 0.0,
    wide: float = 0.0,
) -> dict[tuple[str, str], Reading]:
    detector.update(buckets, start=MONDAY)
    shifts = {KEY[0]: a_shift(shift, wide)} if shift else {}
    return detector.read(BASELINE, since or {}, end=MONDAY + hours * HOUR, shifts=shifts)


def a_detector() -> SequentialDetector:
    return SequentialDetector(DetectionPolicy(), 15)


def figures(readings: dict[tuple[str, str], Reading]) -> dict[tuple[str, str], tuple[float, ...]]:
    return {key: (one.evidence, one.effect, one.low, one.value, one.n) for key, one in readings.items()}


def test_what_it_remembers_changes_nothing() -> None:
    """A leader of weeks and one that has just started must say the same, to the last bit."""
    old, buckets = a_detector(), a_day(fall=0.2)
    strange = {
        begin: {cell._replace(rate="0.001"): n for cell, n in cells.items()}
        for begin, cells in buckets.items()
    }
    read(old, strange)
    for begin in sorted(buckets, reverse=True):
        read(old, {begin: buckets[begin]})

    # By their words, since an effect of nothing is no number, and no two of those are equal.
    assert repr(figures(read(old, buckets))) == repr(figures(read(a_detector(), buckets)))


def test_only_changed_buckets_are_taken() -> None:
    """A week of buckets is read each quarter of an hour, and one of them changed."""
    detector, buckets = a_detector(), a_day()
    assert detector.update(buckets, start=MONDAY) == 96
    assert detector.update({begin: dict(cells) for begin, cells in buckets.items()}, start=MONDAY) == 0

    buckets[MONDAY] = {**buckets[MONDAY], Cell("x", OVERALL, "s", "5", "1"): 1}
    assert detector.update(buckets, start=MONDAY) == 1
    del buckets[MONDAY]
    assert detector.update(buckets, start=MONDAY) == 1


def test_a_fall_speaks_and_what_was_before_an_end_does_not() -> None:
    """Evidence that has been told of is not told again."""
    buckets = a_day(fall=0.2)
    assert read(a_detector(), buckets)[KEY].speaks
    assert not read(a_detector(), buckets, hours=12)[KEY].speaks

    ended = read(a_detector(), buckets, since={KEY: MONDAY + 23 * HOUR + 1 * QUARTER})[KEY]
    assert not ended.speaks
    assert ended.evidence < ended.threshold


def test_segments_wait_while_all_traffic_may_yet_be_a_blip() -> None:
    """One fall must not be told under the name of an intent first, only because the whole fell deeper at first."""
    buckets, detector = a_day(fall=0.4), a_detector()
    spoke = [
        {key for key, one in read(detector, buckets, hours=12 + n / 4).items() if one.speaks}
        for n in range(24)
    ]

    first = next(keys for keys in spoke if keys)
    assert KEY in first


def test_segments_wait_some_hours_after_a_blip_of_all_traffic_and_not_for_ever() -> None:
    """The hour is most of what is known of an intent; but one that goes on falling by itself must be told of."""
    drawn = Drawn(
        {"changes": [{"hours": [12, 13], "fall": 0.9}, {"hours": [13, 24], "fall": 0.5, "intent": "returns"}]}
    )
    buckets = {MONDAY + n * QUARTER: drawn.bucket(MONDAY + n * QUARTER) for n in range(96)}
    part, detector = (KEY[0], "intent=returns"), a_detector()
    found = {n / 4: read(detector, buckets, hours=n / 4) for n in range(52, 72)}

    assert not any(found[hour][KEY].speaks for hour in found)
    assert found[14.5][part].evidence > found[14.5][part].threshold
    assert not any(found[hour][part].speaks for hour in found if hour < 15)
    assert found[15.5][part].speaks


def test_a_judge_that_became_harsher_is_excused_by_its_interval_and_no_more() -> None:
    """Drift is taken off, not a mute; and a shift that may be none excuses nothing."""
    drift, drift_and_step = a_day(fall=0.2), a_day(fall=0.5)

    assert not read(a_detector(), drift, shift=-0.2, wide=0.03)[KEY].speaks
    assert read(a_detector(), drift_and_step, shift=-0.2, wide=0.03)[KEY].speaks
    assert read(a_detector(), drift, shift=-0.05, wide=0.1)[KEY].speaks
    assert excuse(a_shift(0.2, 0.1)) == pytest.approx(0.1)
    assert excuse(None) == 0


def test_a_fall_that_the_judge_may_have_made_is_told_no_more_and_ends_no_sooner() -> None:
    """The judge lost 0.2, and so did the assistant: what excuses more than that is doubt, and doubt ends nothing."""
    buckets = a_day(fall=0.4)

    doubtful = read(a_detector(), buckets, shift=-0.2, wide=0.19, since={KEY: MONDAY})[KEY]
    assert not doubtful.speaks
    assert not doubtful.recovered
    assert read(a_detector(), buckets, shift=-0.4, wide=0.05, since={KEY: MONDAY})[KEY].recovered


def test_the_interval_holds_the_spread_of_bad_answers() -> None:
    """Where all answers were fives, seven bad ones do not make a mean that is known to a fiftieth."""
    [found] = [read(a_detector(), a_day(fall=1.5, per_hour=20))[KEY]]

    assert found.effect == pytest.approx(-1.5, abs=0.4)
    assert found.high - found.low > 2 * 1.96 * 0.6 / found.n**0.5


def test_before_the_end_of_its_baseline_nothing_is_said() -> None:
    """What made the baseline is no evidence against it."""
    assert read(a_detector(), a_day(fall=0.5), hours=0) == {}
