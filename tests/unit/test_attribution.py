from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from monitor.detection.attribution import (
    attribute,
    baseline_totals,
    by_attribute,
    onset,
    totals_by_stratum,
)
from monitor.detection.baseline import BaselinePolicy, pin_dimension
from monitor.detection.counts import SeriesCounts

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def a_series(counts: dict[tuple[str, str], tuple[int, ...]], segment: str = "*") -> SeriesCounts:
    columns = tuple(counts)
    return SeriesCounts(
        dimension="factual",
        segment=segment,
        start=MONDAY,
        bucket_minutes=15,
        columns=columns,
        weights=np.array([1 / float(rate) for _, rate in columns]),
        values=np.arange(1, 6, dtype=np.float64),
        counts=np.array([list(counts.values())], dtype=np.float64),
    )


def test_a_fall_in_one_intent_is_within_that_intent() -> None:
    """Cancellations lost half a point at a tenth of the traffic."""
    found = attribute({"cancel": (10, 45), "other": (90, 405)}, {"cancel": (10, 40), "other": (90, 405)})

    assert found is not None
    assert found.change == pytest.approx(-0.05)
    assert found.parts[0].group == "cancel"
    assert found.parts[0].within == pytest.approx(-0.05)
    assert found.mix == pytest.approx(0)


def test_a_change_of_traffic_is_mix_alone() -> None:
    """More of what was always hard."""
    found = attribute({"easy": (90, 450), "hard": (10, 40)}, {"easy": (50, 250), "hard": (50, 200)})

    assert found is not None
    assert found.change == pytest.approx(-0.4)
    assert found.within == pytest.approx(0)
    assert found.mix == pytest.approx(-0.4)


def test_a_new_group_is_mix_and_has_no_mean_before() -> None:
    """Nobody can get worse than they never were."""
    found = attribute({"old": (100, 450)}, {"old": (50, 225), "new": (50, 150)})

    assert found is not None
    new = found.parts[0]
    assert (new.group, new.mean_before, new.mean) == ("new", None, 3)
    assert new.within == 0
    assert found.within + found.mix == pytest.approx(found.change)


def test_nothing_on_one_side_is_no_attribution() -> None:
    """An outage explains nothing."""
    assert attribute({}, {"old": (1, 4)}) is None
    assert attribute({"old": (1, 4)}, {}) is None


def test_totals_weigh_and_group_by_one_attribute() -> None:
    """Strata are products of attributes; people ask about one of them."""
    series = a_series(
        {("billing,web", "0.5"): (0, 0, 0, 0, 2), ("billing,app", "1"): (0, 0, 0, 1, 0)}, "intent=billing"
    )

    assert totals_by_stratum(series) == {"billing,web": (4, 20), "billing,app": (1, 4)}
    assert by_attribute(totals_by_stratum(series), 0, "intent") == {"intent=billing": (5, 24)}


def test_a_baseline_has_the_totals_of_its_span() -> None:
    """Buckets are gone after nine days, and the baseline still explains."""
    series = a_series({("billing,web", "0.5"): (0, 0, 1, 0, 2), ("refund,web", "1"): (0, 0, 0, 1, 1)})

    pinned = baseline_totals(pin_dimension(series, BaselinePolicy()))

    for group, sums in totals_by_stratum(series).items():
        assert pinned[group] == pytest.approx(sums)


def test_rows_become_times() -> None:
    """An alert says 14:15, not row 57."""
    found = onset(a_series({("billing", "1"): (0, 0, 0, 0, 1)}), 57, 56, 59)

    assert found.at == MONDAY + timedelta(hours=14, minutes=15)
    assert (found.low, found.high) == (MONDAY + timedelta(hours=14), MONDAY + timedelta(hours=14, minutes=45))
