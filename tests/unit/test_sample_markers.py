"""The stream's clock at the sampler: what it tells the hops behind it, and when it had better be silent."""

import json
from datetime import timedelta

from monitor.clock import MARKER_HEADER, Watermark
from tests.confluent import EVENTS, IDLE_SECONDS, SampleWorld
from tests.events import HOUR, MINUTE, NOON, raw


class TestMarkers:
    def test_on_the_walls_clock_there_are_none(self) -> None:
        """Nobody would read them."""
        assert SampleWorld().feed(raw("c1", 0)).run(("assign", [0])).marks() == []

    def test_a_marker_goes_to_every_partition_behind_the_events(self) -> None:
        """Each partition must hear how late it is, whether it has events or not."""
        world = SampleWorld(markers=True).feed(raw("c1", 0, at=NOON)).run(("assign", [0]))

        sent = world.producer.on("sampled")
        assert [MARKER_HEADER in dict(one["headers"]) for one in sent] == [False, True, True]
        assert {one["partition"] for one in sent[1:]} == {0, 1}
        assert world.marks() == [Watermark(times={f"{EVENTS}/0": NOON})]

    def test_markers_wait_for_partitions_that_have_not_been_heard(self) -> None:
        """What was given to us a moment ago may hold old events: its silence says nothing yet."""
        world = SampleWorld(markers=True).feed(raw("c1", 0, at=NOON)).run(("assign", [0, 1]))
        assert world.marks() == []

        world.seconds += 1
        world.feed(raw("c2", 0, at=NOON - HOUR), partition=1).run()
        assert world.marks() == [Watermark(times={f"{EVENTS}/0": NOON, f"{EVENTS}/1": NOON - HOUR})]

    def test_a_partition_that_stays_silent_is_waited_for_only_so_long(self) -> None:
        """Otherwise one without traffic would stop every evaluation."""
        world = SampleWorld(markers=True).feed(raw("c1", 0, at=NOON)).run(("assign", [0, 1]))
        world.seconds += IDLE_SECONDS + 1
        world.feed(raw("c1", 1, at=NOON + MINUTE)).run()

        assert world.marks() == [Watermark(times={f"{EVENTS}/0": NOON + MINUTE}, idle=(f"{EVENTS}/1",))]

    def test_a_partition_that_falls_silent_is_named_once_more_as_idle(self) -> None:
        """Who only left it out would leave its old time standing, and time with it."""
        world = (
            SampleWorld(markers=True)
            .feed(raw("c1", 0))
            .feed(raw("c2", 0), partition=1)
            .run(("assign", [0, 1]))
        )
        world.seconds += IDLE_SECONDS + 1
        world.feed(raw("c1", 1, at=NOON + HOUR)).run()
        assert world.marks()[-1] == Watermark(times={f"{EVENTS}/0": NOON + HOUR}, idle=(f"{EVENTS}/1",))

        world.seconds += IDLE_SECONDS + 1
        world.run()
        assert world.marks()[-1] == Watermark(times={}, idle=(f"{EVENTS}/0", f"{EVENTS}/1"))

        count = len(world.marks())
        world.seconds += 1
        world.run()
        assert len(world.marks()) == count

    def test_a_marker_of_the_replayer_carries_the_time_on(self) -> None:
        """At the end of a file it moves time past idleness and age."""
        marker = json.dumps({"type": "clock", "time": (NOON + 9 * HOUR).isoformat()}).encode()
        world = SampleWorld(markers=True).feed(raw("c1", 0), marker).run(("assign", [0]))

        assert world.marks() == [Watermark(times={f"{EVENTS}/0": NOON + 9 * HOUR})]

    def test_disorder_does_not_turn_the_time_back(self) -> None:
        """The newest event of a partition counts."""
        world = SampleWorld(markers=True).feed(raw("c1", 0, at=NOON)).run(("assign", [0]))
        world.seconds += 1
        world.feed(raw("c2", 0, at=NOON - HOUR)).run()

        assert world.marks()[-1].times == {f"{EVENTS}/0": NOON}

    def test_a_partition_that_was_taken_away_is_no_longer_spoken_for(self) -> None:
        """Its new owner knows better, and later."""
        world = (
            SampleWorld(markers=True)
            .feed(raw("c1", 0))
            .feed(raw("c2", 0), partition=1)
            .run(("assign", [0, 1]))
        )
        world.seconds += 1
        world.feed(raw("c1", 1, at=NOON + MINUTE)).run(("revoke", [1]))

        assert world.marks()[-1] == Watermark(times={f"{EVENTS}/0": NOON + MINUTE})

    def test_markers_are_not_sent_in_every_round(self) -> None:
        """A marker an event would be more than the events."""
        world = SampleWorld(markers=True)
        for turn in range(5):
            world.feed(raw("c1", turn, at=NOON + timedelta(minutes=turn)))
        world.run(("assign", [0]))

        assert len(world.marks()) == 1
