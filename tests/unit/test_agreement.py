import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa as reference_kappa

from monitor.judging.calibration import Answer, Share
from monitor.review.agreement import (
    IDENTITY,
    LINEAR,
    QUADRATIC,
    Case,
    agreement,
    answer,
    cohens_kappa,
    gwets_ac,
    needed,
    wilson,
)
from monitor.review.alternative import alternative_test, student_t
from monitor.review.threshold import Probability, area_under_curve, fit_threshold

TABLES = st.lists(st.integers(0, 30), min_size=25, max_size=25).map(
    lambda cells: np.array(cells, dtype=float).reshape(5, 5)
)


def cases_of(*pairs: tuple[int, int], times: int = 1) -> list[Case]:
    return [Case((pair,)) for pair in pairs for _ in range(times)]


def a_share(hits: int, n: int) -> Share:
    low, high = wilson(hits / n, n)
    return Share(value=hits / n, low=low, high=high, n=n)


@given(TABLES)
def test_kappa_is_that_of_statsmodels(table: np.ndarray) -> None:
    """A figure that decides on a judge must be the published one, for every table."""
    for worth, name in ((IDENTITY, None), (LINEAR, "linear"), (QUADRATIC, "quadratic")):
        if table.sum() == 0 or cohens_kappa(table, worth) is None:
            continue
        theirs = reference_kappa(table, wt=name, return_results=False)
        assert cohens_kappa(table, worth) == pytest.approx(theirs, abs=1e-9)


def test_the_interval_of_kappa_is_near_that_of_statsmodels() -> None:
    """Leaving out one case at a time and the delta method are two ways to one spread."""
    table = np.array(
        [[20, 5, 1, 0, 0], [4, 22, 6, 0, 1], [0, 5, 30, 7, 1], [0, 1, 6, 40, 8], [0, 0, 2, 9, 60.0]]
    )
    pairs = [(i + 1, j + 1) for i in range(5) for j in range(5) for _ in range(int(table[i, j]))]
    theirs = reference_kappa(table)
    ours = agreement(cases_of(*pairs)).kappa
    assert ours.low == pytest.approx(theirs.kappa_low, abs=0.005)
    assert ours.high == pytest.approx(theirs.kappa_upp, abs=0.005)


def test_kappa_and_ac1_by_hand() -> None:
    """45 agreeing passes, 2 agreeing failures, 3 apart: kappa says .54, AC1 .93 - the paradox it was made for."""
    told = agreement(cases_of((5, 5), times=45) + cases_of((1, 1), times=2) + cases_of((5, 1), times=3))
    assert told.exact.value == pytest.approx(0.94)
    # By chance they agree on .96 x .90 and .04 x .10 of the cases, .868 in all.
    assert told.kappa.value == pytest.approx((0.94 - 0.868) / (1 - 0.868))
    # The shares are .93 and .07; chance spreads over the five levels of the scale, .03255.
    assert told.ac1.value == pytest.approx((0.94 - 0.03255) / (1 - 0.03255))


def test_gwets_ac2_by_hand() -> None:
    """Quadratic worth of one step on five levels is 15/16."""
    table = np.zeros((5, 5))
    table[4, 4], table[3, 4] = 8, 2
    seen = 0.8 + 0.2 * 15 / 16
    by_chance = QUADRATIC.sum() / 20 * (0.9 * 0.1 + 0.1 * 0.9)
    assert gwets_ac(table, QUADRATIC) == pytest.approx((seen - by_chance) / (1 - by_chance))


def test_all_alike_has_no_kappa() -> None:
    """Where chance alone would agree always, a coefficient says nothing; 1.0 would be a lie."""
    told = agreement(cases_of((5, 5), times=20))
    assert told.kappa.value is None
    assert told.exact.value == 1.0


def test_critical_failures_have_recall_and_precision() -> None:
    """Recall asks what people saw; precision what the judge said."""
    told = agreement(cases_of((1, 2), (2, 1), (5, 1), (1, 4), (5, 5), (4, 4)))
    assert told.critical_recall.value == pytest.approx(2 / 3)
    assert told.critical_precision.value == pytest.approx(2 / 3)
    assert told.critical_recall.n == 3


def test_weights_move_the_figure_and_widen_the_interval() -> None:
    """Ten cases of which one stands for ninety are no hundred cases."""
    even = agreement([Case(((5, 5),)) for _ in range(9)] + [Case(((5, 1),))])
    uneven = agreement([Case(((5, 5),)) for _ in range(9)] + [Case(((5, 1),), weight=91.0)])
    assert even.exact.value == pytest.approx(0.9)
    assert uneven.exact.value == pytest.approx(0.09)
    assert uneven.exact.high - uneven.exact.low > even.exact.high - even.exact.low


def test_several_raters_share_the_weight_of_their_case() -> None:
    """Else a case that more people saw would count for more."""
    told = agreement([Case(((5, 5), (5, 5), (5, 1))), Case(((4, 4),))])
    assert told.exact.value == pytest.approx((2 / 3 + 1) / 2)
    assert told.exact.n == 2
    assert sum(map(sum, told.confusion)) == pytest.approx(2.0)


def test_43_of_50_is_74_to_93_percent_and_too_few() -> None:
    """The guide's example: 86 % of 50 shows nothing about 85 %."""
    share = a_share(43, 50)
    assert (round(share.low, 2), round(share.high, 2)) == (0.74, 0.93)
    said, wanted = answer(share)
    assert said is Answer.TOO_FEW
    assert wanted is not None
    low, _ = wilson(0.86, wanted)
    before, _ = wilson(0.86, wanted - 1)
    assert before < 0.85 <= low


@pytest.mark.parametrize(
    ("hits", "n", "said"),
    [(50, 50, Answer.SHOWN), (190, 200, Answer.SHOWN), (60, 100, Answer.NOT_SHOWN), (8, 10, Answer.TOO_FEW)],
)
def test_the_answer_follows_the_interval(hits: int, n: int, said: Answer) -> None:
    assert answer(a_share(hits, n))[0] is said


def test_what_nobody_could_label_has_no_number() -> None:
    """85 % exactly is never decided; an endless number would be asked for."""
    assert needed(0.85, 0.85) is None


def test_nothing_compared_is_too_few() -> None:
    assert answer(Share()) == (Answer.TOO_FEW, needed(1.0, 0.85))
    assert agreement([Case(())]).exact.value is None


@pytest.mark.parametrize("freedom", [1, 5, 29, 200])
@pytest.mark.parametrize("value", [-4.0, -1.2, 0.0, 0.7, 3.1])
def test_students_t_is_that_of_scipy(value: float, freedom: int) -> None:
    assert student_t(value, freedom) == pytest.approx(stats.t.cdf(value, freedom), abs=1e-6)


def three_raters(n: int, *, judge_is_right: bool) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return cases on which the raters err on every seventh, each on another."""
    judge, people = {}, {}
    for number in range(n):
        truth = 5 if number % 3 else 2
        wrong = 7 - truth
        people[f"c{number}"] = {
            rater: wrong if number % 7 == place else truth for place, rater in enumerate("abc")
        }
        judge[f"c{number}"] = truth if judge_is_right or number % 2 else wrong
    return judge, people


def test_a_judge_as_good_as_people_may_stand_in_for_one() -> None:
    """Calderon et al.: it must win against half the raters, given what a rater costs more."""
    told = alternative_test(*three_raters(140, judge_is_right=True))
    assert told.passed is True
    assert told.winning_rate == 1.0
    # It errs nowhere; a rater errs on one case in seven and is as near on all others.
    assert told.rivals[0].judge_wins == 1.0
    assert told.rivals[0].rater_wins == pytest.approx(6 / 7)


def test_a_judge_that_errs_on_every_second_case_may_not() -> None:
    told = alternative_test(*three_raters(140, judge_is_right=False))
    assert told.passed is False
    assert told.winning_rate == 0.0


def test_the_test_is_not_held_with_two_raters_or_few_cases() -> None:
    """No answer is better than one that the data cannot carry."""
    judge, people = three_raters(140, judge_is_right=True)
    two = {
        case: {rater: score for rater, score in told.items() if rater != "c"} for case, told in people.items()
    }
    assert alternative_test(judge, two).passed is None
    few = dict(list(people.items())[:20])
    assert "20 cases of the 30" in alternative_test(judge, few).reason


def test_a_threshold_is_fitted_on_one_half_and_told_on_the_other() -> None:
    """The small model of MODELS.md says yes to 97 %: at .5 it finds nothing, at its own threshold it does."""
    cases = [
        Probability(f"c{number}", 0.9 + 0.08 * math.sin(number) ** 2 + (0.02 if yes else -0.1), yes)
        for number in range(400)
        for yes in (number % 3 != 0,)
    ]
    told = fit_threshold(cases)
    assert told.value is not None
    assert told.value > 0.85
    assert told.held_out_at_half.value == pytest.approx(2 / 3, abs=0.08)
    assert told.held_out.value > 0.95
    assert told.auc > 0.95
    assert told.fitted + told.held_out.n == 400


def test_a_threshold_without_both_answers_is_none() -> None:
    told = fit_threshold([Probability(f"c{number}", 0.5, yes=True) for number in range(100)])
    assert told.value is None
    assert "0 cases" in told.reason


def test_equal_probabilities_are_a_coin() -> None:
    assert area_under_curve([Probability("a", 0.5, yes=True), Probability("b", 0.5, yes=False)]) == 0.5
