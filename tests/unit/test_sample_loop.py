"""The sampler's loop: decide, send, confirm, remember and count, and only then commit."""

from datetime import datetime

import pytest
from confluent_kafka import KafkaError, KafkaException

from monitor.adapters.redis_functions import StoreUnavailable
from monitor.intake.dead_letter import DeadLetter
from monitor.publishing import PublishError
from monitor.sampling.decision import Kept
from monitor.sampling.store import Source
from tests.confluent import EVENTS, FakeMessage, SampleWorld
from tests.events import HOUR, NOON, raw


def test_offsets_are_committed_after_delivery_and_after_the_store_has_recorded() -> None:
    """A kill at any point leaves work to be done again, and never work undone."""
    world = SampleWorld().feed(raw("c1", 0), b"{", raw("c2", 0)).run(("assign", [0]))

    assert world.journal == [
        ("subscribed", EVENTS),
        ("delivered", "sampled"),
        ("delivered", "sampled"),
        ("delivered", "dead"),
        ("recorded", 0, 3),
        ("committed", (0, 3)),
        ("closed",),
    ]


def test_a_delivery_that_fails_raises_and_commits_nothing() -> None:
    """The process ends, and whoever takes over reads the batch again."""
    world = SampleWorld().feed(raw("c1", 0))
    world.producer.fails = KafkaError(KafkaError.NOT_ENOUGH_REPLICAS)

    with pytest.raises(PublishError):
        world.run()

    assert world.journal == [("subscribed", EVENTS), ("closed",)]


def test_a_delivery_that_is_not_confirmed_in_time_commits_nothing() -> None:
    """Unconfirmed is not sent."""
    world = SampleWorld().feed(raw("c1", 0))
    world.producer.stuck = 1

    with pytest.raises(PublishError, match="unconfirmed"):
        world.run()
    assert not any(step[0] in {"recorded", "committed"} for step in world.journal)


def test_a_store_that_is_gone_commits_nothing() -> None:
    """A conversation that was kept and is not remembered would lose its later turns."""
    world = SampleWorld().feed(raw("c1", 0))
    world.store.gone = True

    with pytest.raises(StoreUnavailable):
        world.run()
    assert not any(step[0] == "committed" for step in world.journal)


def test_a_full_queue_waits_for_the_broker_and_drops_nothing() -> None:
    """Back pressure is the only answer that loses nothing."""
    world = SampleWorld()
    world.producer.room = 3
    world.feed(*(raw(f"c{n}", 0) for n in range(10))).run()

    assert len(world.producer.on("sampled")) == 10


def test_a_killed_sampler_that_reads_again_counts_nothing_twice() -> None:
    """It was killed between the record and the commit; the next one cuts the batches elsewhere."""
    first = SampleWorld(rate=0.0).feed(*(raw(f"c{n}", 0) for n in range(6))).run(("assign", [0]))
    assert first.store.funnel() == {"sampled_out:base:default": 6}

    second = SampleWorld(rate=0.0, store=first.store)
    second.feed(*(raw(f"c{n}", 0) for n in range(4)))
    second.feed(*(raw(f"c{n}", 0) for n in range(4, 9))).run(("assign", [0]))

    assert second.store.funnel() == {"sampled_out:base:default": 9}
    assert sum(second.store.census().values()) == 9
    assert second.journal[-2] == ("committed", (0, 9))


def test_what_was_kept_stays_kept_with_the_next_owner() -> None:
    """The partition moves in the middle of a conversation."""
    first = SampleWorld().feed(raw("c1", 0)).run(("assign", [0]))
    assert first.store.remembered(Source("cluster", EVENTS, "id", 0), now=NOON).kept == {
        "c1": Kept(1.0, 1.0, "base:default")
    }

    second = SampleWorld(rate=0.0, store=first.store, offsets=first.offsets)
    second.feed(raw("c1", 1), raw("c2", 1)).run(("assign", [0]))

    assert [one["key"] for one in second.producer.on("sampled")] == [b"c1"]


def test_what_cannot_be_read_is_buried_with_its_bytes_and_its_place() -> None:
    """It is found, understood and sent again by them."""
    world = SampleWorld().feed(raw("c0", 0), b"\xff{").run()

    [one] = world.producer.on("dead")
    letter = DeadLetter.model_validate_json(one["value"])
    assert (letter.stage, letter.fault, letter.value) == ("sample", "undecodable", b"\xff{")
    assert one["key"] == letter.id.encode() == f"{EVENTS}/0/1".encode()


def test_a_round_without_messages_does_nothing() -> None:
    """Quiet nights cost neither commits nor calls."""
    assert SampleWorld().run().journal == [("subscribed", EVENTS), ("closed",)]


class TestPrompts:
    def served(self, prompt: str, at: datetime = NOON) -> bytes:
        return raw(f"c-{prompt}", 0, at=at, served_by={"prompt_hash": prompt})

    def test_a_worker_that_starts_after_a_release_knows_the_prompt_before_it(self) -> None:
        """Taken for the very first prompt, the release would not be watched by this worker at all."""
        old = SampleWorld(rate=0.0).feed(self.served("p1")).run(("assign", [0]))
        assert old.producer.on("sampled") == []

        new = SampleWorld(rate=0.0, store=old.store, offsets=old.offsets)
        new.feed(self.served("p2", NOON + HOUR)).run(("assign", [0]))

        assert [one["key"] for one in new.producer.on("sampled")] == [b"c-p2"]

    def test_first_sightings_are_shared_before_the_commit(self) -> None:
        """Killed after it, nobody would know when the prompt came."""
        world = SampleWorld().feed(self.served("p1"))
        world.consumer.refuses = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

        with pytest.raises(KafkaException):
            world.run()
        assert [one.prompt_hash for one in world.store.share({})] == ["p1"]


class TestErrors:
    @pytest.mark.parametrize(
        "name",
        ["_PARTITION_EOF", "_MAX_POLL_EXCEEDED", "UNKNOWN_TOPIC_OR_PART", "_TRANSPORT", "_ALL_BROKERS_DOWN"],
    )
    def test_what_the_client_mends_by_itself_ends_nothing(self, name: str) -> None:
        """It tells of everything; a restart for each would be a rebalance for each."""
        world = SampleWorld()
        error = FakeMessage(None, error=KafkaError(getattr(KafkaError, name)))
        world.consumer.batches = [[error, FakeMessage(raw("c1", 0), 0)]]

        world.run()

        assert ("committed", (0, 1)) in world.journal

    @pytest.mark.parametrize(
        "name", ["TOPIC_AUTHORIZATION_FAILED", "_BAD_MSG", "_BAD_COMPRESSION", "_AUTO_OFFSET_RESET"]
    )
    def test_what_may_stand_for_a_lost_message_ends_the_process(self, name: str) -> None:
        """Going on would commit past it."""
        world = SampleWorld()
        error = FakeMessage(None, error=KafkaError(getattr(KafkaError, name)))
        world.consumer.batches = [[FakeMessage(raw("c1", 0), 0), error]]

        with pytest.raises(KafkaException):
            world.run()
        assert world.journal == [("subscribed", EVENTS), ("closed",)]

    def test_a_fatal_error_ends_the_process(self) -> None:
        """The client says that it cannot go on."""
        world = SampleWorld()
        error = KafkaError(KafkaError._TIMED_OUT, "fatal", fatal=True)
        world.consumer.batches = [[FakeMessage(None, error=error)]]

        with pytest.raises(KafkaException):
            world.run()

    @pytest.mark.parametrize("name", ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"])
    def test_a_commit_that_a_rebalance_refuses_is_no_loss(self, name: str) -> None:
        """The next commit says more; or whoever has the partition now reads again, and counts nothing twice."""
        world = SampleWorld()
        world.consumer.refuses = KafkaError(getattr(KafkaError, name))
        world.feed(raw("c1", 0)).run(("assign", [0]))
        assert not any(step[0] == "committed" for step in world.journal)

        world.consumer.refuses = None
        world.feed(raw("c2", 0)).run()
        assert ("committed", (0, 2)) in world.journal
