"""What the sampler counted, as series that detectors read."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as some

from monitor.detection.census import CENSUS, census_series, courses
from monitor.detection.counts import CountsCache
from monitor.intake.event import Environment
from monitor.sampling.census import CensusCounts
from monitor.windows.bucket import CRITICAL_YES, OVERALL, Cell
from tests.judgments import HOUR, NOON

QUARTER = timedelta(minutes=15)
STRATA = ("intent", "channel")
SHOP = ("shop", Environment.PRODUCTION)
RETURNS, BILLING, NOWHERE = (
    f"shop|production|{one}" for one in ("returns|web", "billing|web", "unknown|unknown")
)


def shares(counts: CensusCounts) -> dict[str, tuple[float, ...]]:
    """Return what the detector's arrays hold of an hour: the ones of each bucket by signal."""
    cache = CountsCache(bucket_minutes=15, span=HOUR, shares=frozenset(CENSUS))
    cache.update(census_series(counts, STRATA)[SHOP])
    series = {signal: cache.series((signal, OVERALL), NOON, NOON + HOUR) for signal in CENSUS}
    assert {one.n for one in series.values()} == {next(iter(series.values())).n}
    return {signal: tuple(one.counts.sum(axis=1)[:, 1]) for signal, one in series.items()}


def test_a_detector_reads_the_census_as_shares() -> None:
    """Every answer is a unit, with the signal or without, at the weight of one."""
    counts: CensusCounts = {
        NOON: {
            (RETURNS, "turn"): 90,
            (RETURNS, "conversation"): 10,
            (RETURNS, "escalated"): 3,
            (RETURNS, "end"): 40,
        },
        NOON + QUARTER: {(RETURNS, "turn"): 50, (BILLING, "turn"): 50, (BILLING, "long"): 20},
    }

    found = shares(counts)

    assert (found["escalated"], found["long"], found["refused"]) == (
        (3, 0, 0, 0),
        (0, 20, 0, 0),
        (0, 0, 0, 0),
    )
    cells = census_series(counts, STRATA, segments=["intent"])[SHOP][NOON + QUARTER]
    assert cells[Cell("long", "intent=billing", "billing,web", "1", "1")] == 20
    assert cells[Cell("long", OVERALL, "returns,web", "0", "1")] == 50


def test_a_signal_of_no_stratum_is_spread_over_the_answers() -> None:
    """A thumb comes by itself and seldom knows the intent; dropping it would hide what users say most plainly."""
    counts = {
        NOON: {
            (RETURNS, "turn"): 75,
            (BILLING, "turn"): 25,
            (NOWHERE, "feedback"): 8,
            (NOWHERE, "thumb_down"): 8,
        }
    }

    cells = census_series(counts, STRATA)[SHOP][NOON]

    down = {
        cell.stratum: count
        for cell, count in cells.items()
        if (cell.dimension, cell.mark) == ("thumb_down", "1")
    }
    assert down == {"returns,web": 6, "billing,web": 2}


@given(
    some.dictionaries(
        some.tuples(
            some.sampled_from([RETURNS, BILLING, NOWHERE]), some.sampled_from(["turn", "thumb_down", "long"])
        ),
        some.integers(1, 50),
    )
)
def test_no_answer_and_no_signal_is_lost(cells: dict[tuple[str, str], int]) -> None:
    """As long as there are answers for them."""
    found = census_series({NOON: cells}, STRATA).get(SHOP, {}).get(NOON, {})
    answers = sum(count for (_, name), count in cells.items() if name == "turn")

    for signal in CENSUS:
        ones = sum(n for cell, n in found.items() if (cell.dimension, cell.mark) == (signal, CRITICAL_YES))
        assert ones == min(answers, sum(n for (_, name), n in cells.items() if name == signal))
        assert sum(n for cell, n in found.items() if cell.dimension == signal) == answers


def test_assistants_and_environments_stay_apart_and_an_older_policy_is_readable() -> None:
    """A stratum that was counted by fewer attributes has none of the later ones."""
    counts = {NOON: {("shop|staging|returns", "turn"): 1, ("other|production|returns|web", "turn"): 2}}

    found = census_series(counts, STRATA)

    assert set(found) == {("shop", Environment.STAGING), ("other", Environment.PRODUCTION)}
    (staging,) = {cell.stratum for cell in found["shop", Environment.STAGING][NOON]}
    assert staging == "returns,unknown"


def test_a_step_without_answers_has_no_share() -> None:
    """No data is not zero."""
    counts = {NOON + HOUR: {(RETURNS, "turn"): 10, (RETURNS, "refused"): 1}}

    answers, told = courses(census_series(counts, STRATA)[SHOP], NOON, NOON + 3 * HOUR, step=HOUR)

    refused = next(one for one in told if one.signal == "refused")
    assert (answers, refused.share, refused.course) == (10, 0.1, (None, 0.1, None))
