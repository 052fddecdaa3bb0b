"""The census that the sampler keeps over all traffic."""

from collections import Counter

from monitor.sampling.sampler import BUCKET_SECONDS
from tests.events import MINUTE, NOON, raw
from tests.unit.test_sampler import NOON_BUCKET, NOTHING, SOURCE, a_sampler, census, take


def test_the_census_counts_all_traffic_with_its_signals() -> None:
    """It is exact, kept or not; estimates are checked against it."""
    late = NOON + 16 * MINUTE
    sampled = take(
        a_sampler(NOTHING),
        raw("c1", 0, intent="returns", channel="chat"),
        raw("c2", 0, intent="returns", channel="chat", signals={"thumb": "down", "escalated": True}),
        raw("c2", 1, intent="returns", channel="chat", served_by={"model_asked": "a", "model_answered": "b"}),
        raw("c3", kind="conversation", at=late, signals={"refused": True, "thumb": "up"}),
        b"{",
    )

    returns, unknown = "default|production|returns|chat", "default|production|unknown|unknown"
    assert census(sampled) == {
        (NOON_BUCKET, returns, "turn"): 3,
        (NOON_BUCKET, returns, "thumb_down"): 1,
        (NOON_BUCKET, returns, "escalated"): 1,
        (NOON_BUCKET, returns, "fallback"): 1,
        (NOON_BUCKET + BUCKET_SECONDS, unknown, "conversation"): 1,
        (NOON_BUCKET + BUCKET_SECONDS, unknown, "refused"): 1,
        (NOON_BUCKET + BUCKET_SECONDS, unknown, "thumb_up"): 1,
    }


def test_disorder_puts_each_event_into_its_own_bucket() -> None:
    """Neighbours share a bucket most of the time, and only most of the time."""
    times = [NOON, NOON + 20 * MINUTE, NOON, NOON + 15 * MINUTE, NOON - MINUTE]
    sampled = take(a_sampler(NOTHING), *(raw(f"c{n}", 0, at=at) for n, at in enumerate(times)))

    counts: Counter[int] = Counter()
    for (bucket, _, _), count in census(sampled).items():
        counts[bucket - NOON_BUCKET] += count
    assert counts == {0: 2, BUCKET_SECONDS: 2, -BUCKET_SECONDS: 1}
    assert sampled.tallies[SOURCE].newest == NOON + 20 * MINUTE


def test_an_answer_longer_than_the_policy_says_is_counted_as_long_and_nothing_else_is() -> None:
    """A drift of length is seen without a judge; feedback and ends have no length that says anything."""
    policy = {"default_rate": 0.0, "long_bytes": 400}
    words = [{"role": "assistant", "content": "word " * 100}]
    sampled = take(
        a_sampler(policy),
        raw("c1", 0),
        raw("c1", 1, messages=words),
        raw("c2", kind="conversation", messages=words),
        raw("c3", kind="end", comment="x" * 500),
    )

    counts = {signal: count for (_, _, signal), count in census(sampled).items()}
    assert counts == {"turn": 2, "conversation": 1, "end": 1, "long": 2}
