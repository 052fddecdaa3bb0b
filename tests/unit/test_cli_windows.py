"""The figures and the course of a window, as people read them."""

from datetime import timedelta

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.cli.windows import NOTHING, as_values, rows_of, slot_length, sparkline
from monitor.windows.bucket import Scope
from monitor.windows.policy import WindowPolicy
from tests.judgments import HOUR, NOON, a_judgment

QUARTER = timedelta(minutes=15)


async def the_rows(segment: str = "*"):  # noqa: ANN201 - rows of the module under test
    store = MemoryWindowStore(WindowPolicy())
    await store.apply([a_judgment()], now=NOON)
    buckets = await store.buckets(Scope.of(a_judgment()), NOON - HOUR, NOON + HOUR)
    return rows_of(buckets, NOON - HOUR, NOON + HOUR, step=QUARTER, segment=segment)


async def test_a_slot_without_judgments_is_no_bar() -> None:
    """No data is not zero."""
    rows = await the_rows()

    [safety] = [row for row in rows if row.stats.dimension == "safety"]
    assert safety.bars == NOTHING * 4 + "█" + NOTHING * 3
    assert [slot.n for slot in safety.slots] == [0, 0, 0, 0, 1, 0, 0, 0]


async def test_a_key_shows_all_its_segments_and_a_value_one() -> None:
    """People ask for one intent, or want to compare all."""
    assert {row.stats.segment for row in await the_rows("intent")} == {"intent=returns"}
    assert await the_rows("intent=returns") == await the_rows("intent")
    assert await the_rows("intent=other") == []


async def test_machines_get_the_same_figures() -> None:
    """A figure that is not there is null, never zero."""
    rows = await the_rows()
    values = as_values([(Scope.of(a_judgment()), rows)], NOON - HOUR, NOON + HOUR)

    series = {one["dimension"]: one for one in values["scopes"][0]["series"]}
    assert series["safety"]["mean"] == 5
    assert series["safety"]["mean_low"] is None
    assert series["safety"]["slots"][0]["mean"] is None


def test_bars_grow_with_the_value() -> None:
    """The lowest and the highest must be told apart at a glance."""
    assert sparkline([1.0, None, 5.0, 9.0], 1.0, 5.0) == "▁·██"
    assert sparkline([2.0], 2.0, 2.0) == "█"


def test_a_long_window_has_no_more_bars_than_fit() -> None:
    """A week of quarters would wrap every line."""
    assert slot_length(6, 15) == QUARTER
    assert slot_length(48, 15) == HOUR
    assert slot_length(24 * 8, 15) == 4 * HOUR
