"""From an old judge to a new one: who is drawn, what the offset is, and which alerts would differ by it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from monitor.detection.baseline import Baseline, BaselinePolicy
from monitor.detection.gates import Gate, GatePolicy
from monitor.judging.drift import Difference
from monitor.judging.judgment import Judgment
from monitor.review.migration import Offset, Splice, carried_over, drawn, offsets
from monitor.review.respeak import Change, changed_alerts
from monitor.windows.bucket import OVERALL, Scope
from monitor.windows.window import WindowStats, no_stats
from tests.judgments import NOON, a_judgment
from tests.unit.test_regression import DOWN, FAR_DOWN, GOOD, a_baseline, a_series, assessed, fires

STRATA = ("intent",)
SAFETY = "safety"
QUARTER = timedelta(minutes=15)


def judged(
    number: int, score: int, *, judge: str = "old", intent: str = "returns", rate: float = 0.1
) -> Judgment:
    return a_judgment(f"c{number}", scores={SAFETY: score}, judge_version=judge, intent=intent, rate=rate)


def moved(mean: float, *, se: float = 0.05) -> Offset:
    points = Difference(mean=mean, low=mean - 2 * se, high=mean + 2 * se, n=100, se=se)
    return Offset(points=points, pass_at_4=Difference(mean=0.0, low=0.0, high=0.0, n=100, se=0.01))


def test_strata_are_drawn_by_what_they_stand_for_and_rare_ones_too() -> None:
    """Nine of ten conversations are returns, sampled at a tenth; the rare intent has two."""
    archived = [
        *(judged(n, 5) for n in range(180)),
        *(judged(n, 5, intent="billing", rate=0.5) for n in range(200, 300)),
        *(judged(n, 5, intent="odd", rate=1.0) for n in range(300, 305)),
    ]
    found = drawn(archived, strata=STRATA, count=50)
    by_intent = {
        intent: sum(one.attributes.intent == intent for one in found)
        for intent in ("returns", "billing", "odd")
    }

    assert by_intent == {"returns": 45, "billing": 5, "odd": 2}
    assert drawn(list(reversed(archived)), strata=STRATA, count=50) == found
    larger = {one.target for one in drawn(archived, strata=STRATA, count=90)}
    assert {one.target for one in found} <= larger


def test_the_offset_is_that_of_all_traffic_and_not_of_the_draw() -> None:
    """The new judge is a point stricter on billing, a fifth of the traffic and half of the draw."""
    archived = [
        *(judged(n, 5) for n in range(80)),
        *(judged(n, 5, intent="billing") for n in range(100, 120)),
    ]
    pairs = [
        *((judged(n, 5), judged(n, 5, judge="new")) for n in range(20)),
        *(
            (judged(n, 5, intent="billing"), judged(n, 4, judge="new", intent="billing"))
            for n in range(100, 120)
        ),
    ]
    found = offsets(pairs, archived, strata=STRATA)[SAFETY]

    assert found.points.mean == pytest.approx(-0.2)
    assert found.points.low < -0.2 < found.points.high < 0
    assert found.pass_at_4.mean == 0.0
    assert offsets(pairs, [], strata=STRATA)[SAFETY].points.mean == pytest.approx(-0.5)


def test_equal_weights_give_the_plain_paired_difference() -> None:
    """By hand: -7/20; se 0.131, t(19) 2.093."""
    scores = [(5, 4)] * 5 + [(5, 3)] + [(5, 5)] * 14
    pairs = [(judged(n, old), judged(n, new, judge="new")) for n, (old, new) in enumerate(scores)]
    points = offsets(pairs, [one for one, _ in pairs], strata=STRATA)[SAFETY].points

    assert (points.mean, points.se) == pytest.approx((-0.35, 0.1313), abs=1e-3)
    assert (points.low, points.high) == pytest.approx((-0.6248, -0.0752), abs=1e-3)


def test_what_only_one_judge_scores_has_no_offset() -> None:
    pairs = [(judged(1, 5), a_judgment("c1", scores={SAFETY: None}, judge_version="new"))]

    assert SAFETY not in offsets(pairs, [], strata=STRATA)


def spliced(offset: Offset) -> Splice:
    return Splice(
        old_judge="old",
        old_rubric="r1",
        new_judge="new",
        new_rubric="r2",
        at=NOON,
        pairs=100,
        rejudged=0,
        offsets={"factual": offset},
    )


def test_a_baseline_is_carried_over_so_that_the_new_judge_is_no_fall_and_a_fall_beside_it_is() -> None:
    """The new judge is 0.2 stricter; what falls further is the assistant's."""
    old = Baseline(
        scope_id="old-scope",
        label="release 7",
        start=NOON,
        end=NOON + 672 * QUARTER,
        bucket_minutes=15,
        dimensions={"factual": a_baseline(), "tone": a_baseline()},
        shares={},
    )
    new = carried_over(old, spliced(moved(-0.2, se=0.01)), scope_id="new-scope", policy=BaselinePolicy())
    unsure = carried_over(old, spliced(moved(-0.2, se=0.2)), scope_id="new-scope", policy=BaselinePolicy())
    factual = new.dimensions["factual"]

    assert (new.scope_id, new.label) == ("new-scope", "release 7, carried over from judge old")
    assert new.dimensions.keys() == {"factual"}
    assert factual.strata["billing"].mean == pytest.approx(4.3)
    assert fires(assessed(a_series((96, GOOD), (24, DOWN))))
    assert not fires(assessed(a_series((120, DOWN)), factual))
    assert fires(assessed(a_series((96, DOWN), (24, FAR_DOWN)), factual))
    # An offset that is hardly known must not be told as a fall.
    assert not fires(assessed(a_series((96, DOWN), (24, FAR_DOWN)), unsure.dimensions["factual"]))


def test_a_carried_mean_stays_on_the_scale() -> None:
    old = a_baseline()
    whole = Baseline(
        scope_id="s",
        label="l",
        start=NOON,
        end=NOON,
        bucket_minutes=15,
        dimensions={"factual": old},
        shares={},
    )
    new = carried_over(whole, spliced(moved(1.5)), scope_id="s", policy=BaselinePolicy())

    assert new.dimensions["factual"].strata["billing"].mean == 5.0


def stats(mean: float, *, n: int = 100) -> dict[tuple[str, str], WindowStats]:
    series = replace(no_stats(SAFETY, OVERALL), n=n, judged=n, mean=mean, pass_at_4=1.0)
    return {(SAFETY, OVERALL): series}


def windows(means: Sequence[float]) -> list[tuple[datetime, dict[tuple[str, str], WindowStats]]]:
    return [(NOON + place * QUARTER, stats(mean)) for place, mean in enumerate(means)]


def differing(means: Sequence[float], offset: Offset) -> list[Change]:
    policy = GatePolicy(gates={SAFETY: Gate(mean_min=4.0)})
    return changed_alerts(windows(means), {SAFETY: offset}, policy, scope=Scope.of(judged(1, 5)))


def test_an_alert_that_a_stricter_judge_would_raise_is_listed_with_its_time() -> None:
    """Eight quarters at 4.2, which is 3.9 for the new judge; before and after it is well by both."""
    (one,) = differing([4.8] * 4 + [4.2] * 8 + [4.8] * 4, moved(-0.3, se=0.01))

    assert (one.dimension, one.segment, one.new, one.sure) == (SAFETY, OVERALL, True, True)
    assert (one.start, one.end) == (NOON + 4 * QUARTER, NOON + 11 * QUARTER)


def test_an_alert_that_would_not_have_come_is_listed_and_a_doubtful_one_is_marked() -> None:
    (gone,) = differing([3.9] * 8, moved(0.3, se=0.01))
    (doubtful,) = differing([3.9] * 8, moved(0.15, se=0.1))

    assert (gone.new, gone.sure) == (False, True)
    assert (doubtful.new, doubtful.sure) == (False, False)


def test_what_both_would_tell_and_what_is_too_short_to_fire_is_no_difference() -> None:
    """An alert a little longer or shorter is the same alert."""
    assert differing([4.2] * 2 + [3.8] * 8, moved(-0.3)) == []
    assert differing([4.8] * 4 + [4.2] * 3 + [4.8] * 4, moved(-0.3)) == []
    assert differing([4.8] * 8, moved(-0.3)) == []
