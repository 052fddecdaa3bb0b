"""What is always true of buckets: order, repetition and revisions change no figure."""

import asyncio
import zlib
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import BucketCounts, contribution, rank
from monitor.windows.policy import WindowPolicy
from monitor.windows.window import all_stats, merged
from tests.judgments import DIMENSIONS, MINUTE, NOON, a_failure, a_judgment

POLICY = WindowPolicy(strata=("intent",))
scores = st.one_of(st.none(), st.integers(1, 5))


@st.composite
def records(draw: st.DrawFn) -> Judgment | JudgeFailure:
    """Draw a record of one of a few conversations. One id always holds the same content, as the judge's log does."""
    conversation = f"c-{draw(st.integers(0, 4))}"
    revision = draw(st.integers(1, 3))
    seed = zlib.crc32(f"{conversation}/{revision}".encode()) % 1000
    at = NOON + (seed % 12) * 15 * MINUTE
    rate = (1.0, 0.05, 0.3, None)[int(conversation[-1]) % 4]
    if draw(st.booleans()):
        return a_failure(conversation, revision=revision, at=at, rate=rate)
    given_scores = {name: (seed + place) % 5 + 1 for place, name in enumerate(DIMENSIONS)}
    intent = ("returns", "billing")[seed % 2]
    return a_judgment(conversation, revision=revision, at=at, rate=rate, intent=intent, scores=given_scores)


def census(found: list[Judgment | JudgeFailure]) -> BucketCounts:
    """Count by definition: of each conversation the record that ranks highest, once."""
    best: dict[str, Judgment | JudgeFailure] = {}
    for record in found:
        current = best.get(record.target.conversation_id)
        if current is None or rank(record) > rank(current):
            best[record.target.conversation_id] = record
    added = [contribution(record, POLICY) for record in best.values()]
    return merged(dict.fromkeys(a.cells, 1) for a in added if a is not None)


def stored(*batches: list[Judgment | JudgeFailure]) -> BucketCounts:
    async def run() -> BucketCounts:
        store = MemoryWindowStore(POLICY)
        for batch in batches:
            await store.apply(batch, now=NOON + timedelta(days=1))
        parts = []
        for scope in await store.scopes():
            parts += (await store.buckets(scope, NOON, NOON + timedelta(days=1))).values()
        return merged(parts)

    return asyncio.run(run())


@given(st.lists(records(), max_size=25), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_any_order_and_a_replay_give_the_census(found: list[Judgment | JudgeFailure], chance: object) -> None:
    """Partitions drift, hops repeat, conversations resume: the figures are those of the last word on each."""
    shuffled = list(found)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    expected = census(found)

    assert stored(found) == expected
    assert stored(shuffled) == expected
    assert stored(found, shuffled, found) == expected


@given(st.lists(st.tuples(scores, st.sampled_from(["1", "0.05", "0.333333", "0.1"])), max_size=30))
@settings(max_examples=100, deadline=None)
def test_the_order_of_merging_changes_no_bit_of_a_figure(drawn: list[tuple[int | None, str]]) -> None:
    """Two leaders that read the shards in different orders must decide alike."""
    parts = []
    for place, (score, rate) in enumerate(drawn):
        added = contribution(a_judgment(f"c-{place}", scores={"safety": score}, rate=float(rate)), POLICY)
        assert added is not None
        parts.append(dict.fromkeys(added.cells, 1))

    assert all_stats(merged(parts)) == all_stats(merged(reversed(parts)))


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([1.0, 0.05, 0.5])), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_the_figures_lie_where_they_must(drawn: list[tuple[int, float]]) -> None:
    """A mean off its scale or a rate above one is a bug, whatever the weights."""
    parts = []
    for place, (score, rate) in enumerate(drawn):
        added = contribution(a_judgment(f"c-{place}", scores={"safety": score}, rate=rate), POLICY)
        assert added is not None
        parts.append(dict.fromkeys(added.cells, 1))
    stats = all_stats(merged(parts))["safety", "*"]

    assert stats.mean is not None
    assert stats.pass_at_4 is not None
    assert stats.critical_rate is not None
    assert 1 <= stats.mean <= 5
    assert 0 <= stats.pass_at_4 <= 1
    assert stats.pass_at_4 + stats.critical_rate <= 1 + 1e-12
    if stats.mean_low is not None and stats.mean_high is not None:
        assert stats.mean_low <= stats.mean <= stats.mean_high
