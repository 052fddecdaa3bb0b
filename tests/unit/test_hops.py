"""Each hop on the twins: what it sends, in which order, and what it does with what it cannot take."""

import asyncio
import json

import pytest

from monitor.clock import ClockKind, Watermark
from monitor.conversations.assembly import Outcome
from monitor.conversations.conversation import Conversation, EndReason
from monitor.hops.inbound import Inbound
from monitor.intake.dead_letter import DeadLetter, Position
from monitor.publishing import PublishError
from monitor.sampling.decision import Decision
from tests.events import HOUR, MINUTE, NOON, SECOND, messages, raw
from tests.world import CLOSED, LATER, World, kept, mark

PROMOTED = Decision(kept=True, rule="priority:thumbs_down", rate=1.0, first_rate=None)


def asked(world: World) -> list[tuple[str, str, int]]:
    """Return of each request the kind, the target and the revision."""
    return [
        (one.target.kind, one.target.turn_event_id or one.target.conversation_id, one.target.revision)
        for one in world.requests()
    ]


class TestAssemble:
    async def test_a_turn_is_asked_for_at_once_and_the_conversation_at_its_end(self) -> None:
        """A broken answer must not wait for the end of a long conversation."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), kept(raw("c1", 1, at=NOON + MINUTE), 1)])
        assert asked(world) == [("turn", "c1-turn-0", 1), ("turn", "c1-turn-1", 1)]

        await world.pipeline.assemble([mark(CLOSED, 2)])

        assert asked(world)[2:] == [("conversation", "c1", 1)]
        assert [len(one.conversation.turns) for one in world.requests()] == [1, 2, 2]
        assert world.requests()[2].conversation.ended is EndReason.IDLE
        assert (await world.conversations.funnel()) == {"closed|idle": 1, "turn|queued": 2}

    async def test_the_same_message_again_asks_again_under_the_same_id(self) -> None:
        """The first request may have been lost; the judge's answer is kept, so nothing is paid twice."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0))])
        await world.pipeline.assemble([kept(raw("c1", 0))])

        first, second = world.requests()
        assert first.target == second.target
        assert await world.conversations.funnel() == {"turn|queued": 1}

    async def test_a_duplicate_asks_for_nothing(self) -> None:
        """A producer's retry is no second turn."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), kept(raw("c1", 0), 1)])

        assert len(world.requests()) == 1
        assert await world.conversations.funnel() == {"turn|duplicate": 1, "turn|queued": 1}

    async def test_an_old_message_that_comes_again_asks_with_its_own_revision(self) -> None:
        """Under the revision of today it would be another judgment, and the turn would count twice."""
        world = World()
        first = kept(raw("c1", 0, event_id="msg#0"))
        resumed = kept(raw("c1", 1, at=NOON + 2 * HOUR), 2)
        await world.pipeline.assemble([first, mark(CLOSED, 1), resumed])

        await world.pipeline.assemble([first])

        assert asked(world) == [
            ("turn", "msg#0", 1),
            ("conversation", "c1", 1),
            ("turn", "c1-turn-1", 2),
            ("turn", "msg#0", 1),
            # It might have been held back for want of it.
            ("turn", "c1-turn-1", 2),
        ]
        assert world.requests()[3].event_ids == ("msg#0",)

    async def test_a_late_turn_after_the_close_is_a_new_revision(self) -> None:
        """On the stream's clock it carries an old time, and its conversation closes again with the next marker."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), mark(CLOSED, 1)])
        await world.pipeline.assemble([kept(raw("c1", 1, at=NOON + MINUTE), 2), mark(CLOSED + SECOND, 3)])

        assert asked(world)[2:] == [("turn", "c1-turn-1", 2), ("conversation", "c1", 2)]
        assert len(world.requests()[3].conversation.turns) == 2

    async def test_a_turn_that_waits_for_the_one_before_it_is_asked_for_at_the_close(self) -> None:
        """It would wait for ever: a gap is a fact, and no reason to be lost."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), kept(raw("c1", 2, at=NOON + MINUTE), 1)])
        assert asked(world) == [("turn", "c1-turn-0", 1)]

        await world.pipeline.assemble([mark(CLOSED, 2)])

        assert asked(world)[1:] == [("turn", "c1-turn-2", 1), ("conversation", "c1", 1)]
        assert world.requests()[2].conversation.missing_turns == (1,)

    async def test_a_gap_that_a_whole_conversation_fills_leaves_nobody_waiting(self) -> None:
        """The turn is in it as another event's, and its own event still wants its outcome."""
        world = World()
        piece = raw(
            "c1", kind="conversation", at=NOON + MINUTE, messages=messages() + messages() + messages()
        )
        await world.run([kept(raw("c1", 0)), kept(raw("c1", 2), 1), kept(piece, 2), mark(CLOSED, 3)])

        assert await world.conversations.funnel() == {
            "closed|whole": 1,
            "conversation|judged": 1,
            "judgment:conversation|judged": 1,
            "judgment:turn|judged": 5,
            "turn|judged": 2,
        }

    async def test_a_whole_conversation_asks_for_its_turns_and_itself(self) -> None:
        """Its one event has the outcome of the whole."""
        world = World()
        both = messages("One?", "One.") + messages("Two?", "Two.")
        await world.run([kept(raw("c1", kind="conversation", event_id="e", messages=both)), mark(NOON, 1)])

        assert asked(world) == [("turn", "e#0", 1), ("turn", "e#1", 1), ("conversation", "c1", 1)]
        assert [one.event_ids for one in world.requests()] == [(), (), ("e",)]
        assert (await world.conversations.explain("c1")).outcomes["e"][1] is Outcome.JUDGED

    async def test_a_whole_conversation_behind_a_promotion_is_judged_all_the_same(self) -> None:
        """Feedback came first and made it partial; the piece is whole, and its event must end somewhere."""
        world = World()
        await world.run(
            [
                kept(raw("c1", kind="feedback"), decision=PROMOTED),
                kept(raw("c1", 0), 1, decision=PROMOTED),
                kept(raw("c1", kind="conversation", at=NOON + MINUTE), 2),
                mark(CLOSED, 3),
            ]
        )

        assert (await world.conversations.funnel())["conversation|judged"] == 1

    async def test_a_partial_conversation_is_judged_by_turns_only(self) -> None:
        """It stands for nobody, and its turns do."""
        world = World()
        await world.run([kept(raw("c1", 4), decision=PROMOTED), mark(CLOSED, 1)])

        assert asked(world) == [("turn", "c1-turn-4", 1)]
        assert await world.conversations.funnel() == {
            "closed|idle": 1,
            "judgment:turn|judged": 1,
            "turn|judged": 1,
        }

    async def test_a_conversation_of_feedback_only_closes_in_silence(self) -> None:
        """There is nothing to judge and nothing to archive."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", kind="feedback"), decision=PROMOTED), mark(CLOSED, 1)])

        assert world.requests() == []
        assert world.on("archive") == []
        assert await world.conversations.funnel() == {"closed|idle": 1, "feedback|applied": 1}

    async def test_no_published_byte_holds_an_address(self) -> None:
        """Masking comes before everything that is stored or sent."""
        address = "erika.mustermann@example.org"
        call = {"id": "1", "function": {"name": "mail", "arguments": json.dumps({"to": address})}}
        said = [
            {"role": "user", "content": f"I am {address}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": json.dumps({"sent": [address]}), "tool_call_id": "1"},
            {"role": "assistant", "content": [{"type": "text", "text": f"Sent to {address}."}]},
        ]
        world = World()
        await world.run([kept(raw("c1", 0, messages=said)), mark(CLOSED, 1)])

        archived = [one for one in world.on("archive") if one.key == b"c1/r1"]
        whole = Conversation.model_validate_json(archived[0].value)
        assert "[EMAIL_" in whole.turns[0].answer
        sent = b"".join(one.value or b"" for one in world.published.sent)
        assert b"example.org" not in sent
        stored = await world.conversations.explain("c1")
        assert stored.stored is not None
        assert "example.org" not in stored.stored.model_dump_json()

    async def test_a_marker_goes_on_behind_all_that_came_before_it(self) -> None:
        """What a later hop concludes at a time must not miss what was due by then."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), mark(CLOSED, 1), kept(raw("c2", 0, at=CLOSED), 2)])

        order = [one.is_marker for one in world.on("judge-requests")]
        assert order == [False, False, True, False]
        [passed] = [one for one in world.on("judge-requests") if one.is_marker]
        assert Watermark.model_validate_json(passed.value).times == {"assemble/0": CLOSED}

    async def test_of_several_sources_the_slowest_gives_the_time(self) -> None:
        """One sampler ahead of the other must not close the other's conversations."""
        world = World()
        await world.pipeline.assemble(
            [mark(NOON, 0, source="events/0"), kept(raw("c1", 0), 1), mark(CLOSED, 2, source="events/1")]
        )
        assert "closed|idle" not in await world.conversations.funnel()

        idle = Watermark(times={}, idle=("events/0",)).model_dump_json().encode()
        await world.pipeline.assemble([Inbound(mark(NOON, 3).position, b"", idle, {"marker": b"1"})])
        assert (await world.conversations.funnel())["closed|idle"] == 1

    async def test_on_the_walls_clock_idleness_counts_from_the_arrival(self) -> None:
        """After an outage the backlog is old and comes fast; nobody in it fell silent."""
        world = World(clock=ClockKind.WALL)
        world.now = NOON + 9 * HOUR
        await world.pipeline.assemble([kept(raw("c1", 0)), kept(raw("c1", 1, at=NOON + 3 * HOUR), 1)])
        assert await world.pipeline.close_due(0) == 0

        world.now += 31 * MINUTE
        assert await world.pipeline.close_due(1) == 0
        assert await world.pipeline.close_due(0) == 1
        assert await world.pipeline.close_due(0) == 0

    async def test_more_than_a_round_of_conversations_close_in_one_tick(self) -> None:
        """After an outage thousands are due."""
        world = World()
        await world.pipeline.assemble([kept(raw(f"c{n}", 0), n) for n in range(450)])
        await world.pipeline.assemble([mark(CLOSED, 999)])

        assert (await world.conversations.funnel())["closed|idle"] == 450

    async def test_a_due_conversation_of_which_nothing_is_known_is_dropped(self) -> None:
        """Its record ended with its time to live; it would be looked for on every tick."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0))])
        world.conversations._records.clear()

        await world.pipeline.assemble([mark(CLOSED, 1)])
        assert await world.conversations.due(0, now=LATER, limit=9) == []

    async def test_what_the_broker_does_not_take_is_not_queued(self) -> None:
        """The message is un-acked and comes again; by then it must still be waiting."""
        world = World()
        world.published.refuses = True
        with pytest.raises(PublishError):
            await world.pipeline.assemble([kept(raw("c1", 0))])
        assert await world.conversations.funnel() == {"turn|waiting": 1}

        world.published.refuses = False
        await world.pipeline.assemble([kept(raw("c1", 0))])
        assert await world.conversations.funnel() == {"turn|queued": 1}

    @pytest.mark.parametrize(
        "bad",
        [
            kept(b"{"),
            kept(raw("c1", 0, messages=[{"role": "user", "content": {"x": "Quedlinburg"}}])),
            Inbound(kept(b"").position, b"c1", raw("c1", 0), {}),
            Inbound(kept(b"").position, b"c1", raw("c1", 0), {"decision": b"\xff", "source": b"\xff"}),
        ],
        ids=["no event", "invalid", "no decision", "broken decision"],
    )
    async def test_what_it_cannot_take_is_buried_and_the_rest_goes_on(self, bad: Inbound) -> None:
        """One message that nobody can read must not stop its partition."""
        world = World()
        for _ in range(2):
            await world.pipeline.assemble([bad, kept(raw("c2", 0), 1)])

        letter = DeadLetter.model_validate_json(world.on("dead-letters")[0].value)
        assert (letter.stage, letter.value) == ("assemble", bad.value)
        assert "Quedlinburg" not in letter.reason
        assert await world.conversations.funnel() == {"event|invalid": 1, "turn|queued": 1}

    async def test_a_marker_without_a_time_is_buried(self) -> None:
        """It would end the worker, and the next one, and the next."""
        world = World()
        broken = Inbound(Position(topic="t", partition=0, offset=0), b"", b"{", {"marker": b"1"})

        await world.pipeline.assemble([broken])
        await world.pipeline.pass_marker(broken)
        await world.pipeline.aggregate([broken])

        stages = [DeadLetter.model_validate_json(one.value).stage for one in world.on("dead-letters")]
        assert stages == ["assemble", "judge", "aggregate"]


def test_one_event_loop_is_enough() -> None:
    """The twins work outside of a test's loop too; property tests run them so."""
    world = World()
    asyncio.run(world.run([kept(raw("c1", 0)), mark(CLOSED, 1)]))
    assert len(world.records()) == 2
