"""A judge's shift by its anchors: how much, how sure, since when, and how seldom a steady judge is accused."""

import math
from datetime import timedelta

import numpy as np
import pytest

from monitor.judging.drift import CERTAIN, anchor_shift, since, student_t
from tests.anchors import a_score, later, pinned
from tests.events import HOUR, NOON


def test_the_shift_is_the_mean_of_the_paired_differences_with_students_interval() -> None:
    """By hand: differences -1, -1, 0, 0, -1, 0, -1, 0; sd 0.535, se 0.189, t(7) 2.365."""
    pins = pinned([4, 4, 4, 4, 5, 5, 5, 5])
    (shift,) = anchor_shift(pins, later([3, 3, 4, 4, 4, 5, 4, 5])).values()

    assert (shift.mean, shift.n, shift.repeats, shift.noise) == (-0.5, 8, 8, None)
    assert shift.se == pytest.approx(0.18898, abs=1e-5)
    assert (shift.low, shift.high) == pytest.approx((-0.94686, -0.05314), abs=1e-4)


def test_repeats_of_one_anchor_are_one_anchor() -> None:
    """A hundred repetitions of five transcripts say little of all others."""
    pins = pinned([4, 4, 4, 4, 4])
    few = anchor_shift(pins, later([3, 4, 4, 3, 4]))["safety"]
    many = anchor_shift(pins, [s for n in range(1, 21) for s in later([3, 4, 4, 3, 4], n)])["safety"]

    assert (many.n, many.repeats) == (5, 100)
    assert (many.mean, many.se) == pytest.approx((few.mean, few.se))


def test_the_noise_is_what_one_anchor_differs_from_itself() -> None:
    """By hand: 4, 5 and 3, 3: squares 0.5 and 0 over two degrees of freedom."""
    pins = pinned([4, 3])
    shift = anchor_shift(pins, [*later([4, 3], 1), *later([5, 3], 2)])["safety"]

    assert shift.noise == pytest.approx(0.5)


def test_equal_scores_do_not_make_a_judge_exact() -> None:
    """Scores are whole: a small drift may not have moved one of sixty yet."""
    shift = anchor_shift(pinned([4] * 60), later([4] * 60))["safety"]

    assert shift.mean == 0.0
    assert 0.02 < shift.high < 0.05


def test_abstentions_and_the_pinned_round_itself_are_no_differences() -> None:
    """Not applicable is no score, and a pin is not held against itself."""
    pins = pinned([4, 4, 4])
    told = [
        a_score("a0", 1, scores={"safety": None}),
        a_score("a1", 1, scores={"safety": 3, "tone": 1}),
        a_score("a2", 0, scores={"safety": 1}),
        a_score("unknown", 1),
    ]

    shifts = anchor_shift(pins, told)

    assert shifts.keys() == {"safety"}
    assert (shifts["safety"].n, shifts["safety"].mean) == (1, -1.0)
    assert math.isinf(shifts["safety"].high)
    assert anchor_shift(pins, []) == {}


def test_a_drift_is_dated_by_the_first_score_after_the_change() -> None:
    """Whoever looks for the provider's release needs the day."""
    pins = pinned([4] * 10)
    scores = [one for number in range(1, 41) for one in later([4 if number < 25 else 3] * 10, number)]

    assert since(pins, scores, "safety") == NOON + timedelta(hours=25)
    assert since(pins, later([3] * 10, 7), "safety") == NOON + 7 * HOUR
    assert since(pins, scores, "tone") is None


def test_a_judge_that_did_not_drift_is_hardly_ever_accused() -> None:
    """One in a thousand is asked for; the noise is that of a judge that is off by a point in a third of its scores."""
    random = np.random.default_rng(7)
    accused = missed = 0
    for _ in range(300):
        truth = random.integers(2, 5, size=60)

        def read(shift: float, truth: np.ndarray = truth) -> list[int]:
            moved = truth + random.choice([-1, 0, 0, 0, 0, 1], size=60) + (random.random(60) < -shift) * -1
            return [int(score) for score in np.clip(moved, 1, 5)]

        pins = pinned(read(0.0))
        steady = [score for number in range(1, 5) for score in later(read(0.0), number)]
        moved = [score for number in range(1, 5) for score in later(read(-0.5), number)]
        same = anchor_shift(pins, steady, confidence=CERTAIN)["safety"]
        stricter = anchor_shift(pins, moved, confidence=CERTAIN)["safety"]
        accused += not same.low <= 0 <= same.high
        missed += stricter.high >= 0

    assert accused <= 3
    assert missed <= 30


@pytest.mark.parametrize(
    ("confidence", "freedom", "wanted"), [(0.95, 5, 2.5706), (0.95, 59, 2.0010), (0.999, 19, 3.8834)]
)
def test_students_t_is_that_of_the_tables(confidence: float, freedom: int, wanted: float) -> None:
    assert student_t(confidence, freedom) == pytest.approx(wanted, rel=1e-3)
