"""The figures and the course of a window, as people read them."""

import io
from datetime import timedelta

import pytest
import typer
from rich.console import Console
from rich.table import Table

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.plot import NOTHING, sparkline
from monitor.cli.windows_read import granularity_of, slot_length
from monitor.cli.windows_shown import (
    Shown,
    as_values,
    headline_table,
    other_line,
    rows_of,
    table_of,
)
from monitor.judging.judgment import Judgment, Phase, Place
from monitor.windows.bucket import OTHER, BucketCounts, Granularity, Scope
from monitor.windows.headline import headlines
from monitor.windows.other import Other, others_in
from monitor.windows.policy import WindowPolicy
from monitor.windows.window import merged
from tests.judgments import HOUR, NOON, a_failure, a_judgment

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
    scope = Scope.of(a_judgment())
    others = {scope: [Other(key="intent", values=3, units=7)]}
    shown = Shown(NOON - HOUR, NOON + HOUR, Granularity.BUCKET, {scope: rows}, others, ())
    values = as_values(shown)

    series = {one["dimension"]: one for one in values["scopes"][0]["series"]}
    assert series["safety"]["mean"] == 5
    assert series["safety"]["mean_low"] is None
    assert series["safety"]["slots"][0]["mean"] is None
    assert series["safety"]["bounds"] == (5, 5)
    assert (values["granularity"], values["two_phase"]) == ("bucket", [])
    assert values["scopes"][0]["others"] == [{"key": "intent", "values": 3, "units": 7}]


def test_bars_grow_with_the_value() -> None:
    """The lowest and the highest must be told apart at a glance."""
    assert sparkline([1.0, None, 5.0, 9.0], 1.0, 5.0) == "▁·██"
    assert sparkline([2.0], 2.0, 2.0) == "█"


def test_a_long_window_has_no_more_bars_than_fit() -> None:
    """A week of quarters would wrap every line."""
    assert slot_length(6 * HOUR, QUARTER) == QUARTER
    assert slot_length(48 * HOUR, QUARTER) == HOUR
    assert slot_length(24 * 8 * HOUR, QUARTER) == 4 * HOUR
    assert slot_length(24 * 90 * HOUR, 24 * HOUR) == 48 * HOUR
    assert slot_length(3 * HOUR, HOUR) == HOUR


def test_a_window_is_read_from_the_finest_slices_that_are_kept_for_it() -> None:
    """A month of quarters that are kept for nine days would show a week's mean as a month's."""
    days = timedelta(days=1)
    policy = WindowPolicy()

    assert granularity_of(9 * days, None, policy) is Granularity.BUCKET
    assert granularity_of(10 * days, None, policy) is Granularity.HOUR
    assert granularity_of(91 * days, None, policy) is Granularity.DAY
    assert granularity_of(3 * days, Granularity.DAY, policy) is Granularity.DAY
    with pytest.raises(typer.BadParameter, match=r"kept for 9 days.*--granularity hour"):
        granularity_of(10 * days, Granularity.BUCKET, policy)


def shown_as(table: Table) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


async def test_the_bounds_stand_beside_a_mean_that_misses_units() -> None:
    """A judge that fails on one of two leaves a mean that says nothing of the other."""
    store = MemoryWindowStore(WindowPolicy())
    await store.apply([a_judgment("a"), a_failure("b")], now=NOON)
    scope = Scope.of(a_judgment())
    buckets = await store.buckets(scope, NOON, NOON + HOUR)

    assert "3.00-5.00" in shown_as(table_of(scope, rows_of(buckets, NOON, NOON + HOUR, step=QUARTER)))
    assert "bounds" not in shown_as(table_of(scope, await the_rows()))


def second(name: str, score: int) -> Judgment:
    first_scores = ({"dimension": "safety", "score": 5},)
    phase = Phase(place=Place.SECOND, probability=0.5, first_scores=first_scores)
    judged = a_judgment(name, scores={"safety": score}, judge_version="v2")
    return judged.model_copy(update={"phase": phase})


async def counted(*records: Judgment) -> dict[Scope, BucketCounts]:
    store = MemoryWindowStore(WindowPolicy())
    await store.apply(records, now=NOON)
    return {
        scope: merged((await store.buckets(scope, NOON, NOON + HOUR)).values())
        for scope in await store.scopes()
    }


def cascade() -> list[Judgment]:
    first = [a_judgment(f"c{i}", judge_version="v1") for i in range(80)]
    return first + [second(f"c{i}", 4) for i in range(0, 80, 2)]


async def test_a_cascade_has_a_two_phase_mean_beside_its_first_stages() -> None:
    """The headline of S13: what the expensive judge would give over all; the raw series stay what they are."""
    [headline] = headlines(await counted(*cascade()), first_judge="v1")

    assert (headline.scope.judge_version, headline.first_judge) == ("v2", "v1")
    [safety] = headline.means
    assert (safety.mean, safety.cheap_mean, safety.n, safety.n_both) == (pytest.approx(4), 5, 80, 40)
    assert safety.low == pytest.approx(4)
    told = " ".join(shown_as(headline_table(headline)).split())
    assert "4.00-4.00" in told
    assert "judge v2 would give over all that judge v1 judged" in told


async def test_the_first_stage_is_the_one_that_the_configuration_names() -> None:
    """The rules judged the same sample, in a series of their own; a guess would mix judges."""
    rules = [a_judgment(f"c{i}", judge_version="rules") for i in range(80)]
    other = a_judgment("x", judge_version="v1", assistant="other")
    counts = await counted(*cascade(), *rules, other)

    def firsts(named: str | None) -> list[str]:
        return [one.first_judge for one in headlines(counts, first_judge=named)]

    assert firsts("v1") == ["v1"]
    assert firsts("gone") == firsts(None) == []
    assert [one.first_judge for one in headlines(await counted(*cascade()), first_judge="gone")] == ["v1"]
    assert headlines(await counted(*rules), first_judge="rules") == ()
    assert headlines(counts, first_judge="v1", segment="intent=none") == ()


async def test_what_is_beyond_the_limits_is_counted_and_told() -> None:
    """A series that is not there must not be taken for traffic that is not there."""
    policy = WindowPolicy(segment_values_max=1, strata_max=2)
    store = MemoryWindowStore(policy)
    await store.apply([a_judgment(f"c{i}", intent=f"i{i % 4}") for i in range(8)], now=NOON)
    scope = Scope.of(a_judgment())
    [counts] = (await store.buckets(scope, NOON, NOON + HOUR)).values()

    others = others_in(counts, await store.others(scope, NOON, NOON + HOUR))

    assert others == (Other(key="intent", values=3, units=6), Other(key="strata", values=2, units=4))
    assert other_line(others[0]).startswith(f"intent: 3 values, 6 units, are intent={OTHER}")
    assert other_line(others[1]).startswith("2 strata, 4 units")
    assert len(rows_of({NOON: counts}, NOON, NOON + HOUR, step=HOUR, segment=f"intent={OTHER}")) == 5
