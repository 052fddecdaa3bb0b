"""What every store of conversations must do: the twin and the real thing alike."""

from datetime import timedelta

import pytest

from monitor.adapters.memory_conversations import MemoryConversations
from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_keys import Keys
from monitor.conversations.assembly import Outcome, Stored
from monitor.conversations.conversation import EndReason
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, ConversationStore, TakenIn
from monitor.judging.shadow import shadowed
from tests.events import HOUR, MINUTE, NOON, SECOND, a_record, messages, taking
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

POLICY = ConversationPolicy(idle_seconds=1800, max_age_seconds=7200, end_grace_seconds=30)
MOMENT = timedelta(milliseconds=1)


@pytest.fixture(params=["memory", "valkey 1", "valkey 16", "valkey_cluster 16"])
def store(request: pytest.FixtureRequest) -> ConversationStore:
    if request.param == "memory":
        return MemoryConversations(POLICY)
    server, shards = request.param.split()
    return RedisConversations(request.getfixturevalue(server), Keys("test", int(shards)), POLICY)


async def loaded(store: ConversationStore, conversation: str = "c1") -> Stored:
    return (await store.load([conversation]))[conversation]


async def closed(
    store: ConversationStore, conversation: str = "c1", reason: EndReason = EndReason.IDLE
) -> bool:
    return await store.close(await loaded(store, conversation), 0, reason)


class TestConversationStore:
    async def test_a_new_event_opens_the_first_revision(self, store: ConversationStore) -> None:
        """Everything later hangs on the revision."""
        assert await store.take([taking()]) == [TakenIn(Arrival.NEW, 1)]

        stored = await loaded(store)
        assert (stored.revision, stored.closed_revision, stored.first_activity) == (1, 0, NOON)
        assert [turn.answer for turn in stored.turns] == ["It arrives on Monday."]
        assert stored.waiting == {"c1-turn-0"}
        assert await store.funnel() == {"turn|waiting": 1}

    async def test_the_same_message_again_is_again_and_counts_nothing(self, store: ConversationStore) -> None:
        """A kill before the ack brings every message of the batch once more."""
        await store.take([taking()])
        before = await store.explain("c1")

        assert await store.take([taking(), taking()]) == [TakenIn(Arrival.AGAIN, 1)] * 2
        assert await store.funnel() == {"turn|waiting": 1}
        assert await store.explain("c1") == before

    async def test_the_same_event_from_another_position_is_a_duplicate_counted_once(
        self, store: ConversationStore
    ) -> None:
        """A producer's retry is a message of its own, and needs an outcome of its own."""
        await store.take([taking(source="events/0/1")])
        other = taking(source="events/0/2", messages=messages(answer="Something else."))

        for _ in range(3):
            assert await store.take([other]) == [TakenIn(Arrival.DUPLICATE, 1)]

        assert await store.funnel() == {"turn|waiting": 1, "turn|duplicate": 1}
        assert [turn.answer for turn in (await loaded(store)).turns] == ["It arrives on Monday."]
        assert (await store.explain("c1")).duplicates == {"events/0/2": "c1-turn-0"}

    async def test_a_resumed_conversation_is_a_new_revision_that_has_not_ended(
        self, store: ConversationStore
    ) -> None:
        """Otherwise the end event of the first part would close the second at once, with its reason."""
        await store.take([taking(), taking(kind="end", at=NOON + MINUTE)])
        assert await closed(store, reason=EndReason.END_EVENT)
        assert (await store.explain("c1")).end_reason is EndReason.END_EVENT

        later = NOON + HOUR
        assert await store.take([taking(turn=1, at=later)]) == [TakenIn(Arrival.NEW, 2)]

        stored = await loaded(store)
        assert (stored.revision, stored.closed_revision, stored.first_activity) == (2, 1, later)
        assert stored.revisions == {"c1-turn-0": 1, "c1-end-0": 1, "c1-turn-1": 2}
        assert not stored.holds("end")
        explained = await store.explain("c1")
        assert explained.due == later + 30 * MINUTE
        assert explained.end_reason is None

    async def test_feedback_after_the_close_does_not_reopen(self, store: ConversationStore) -> None:
        """A thumb is no turn: there is nothing new to judge."""
        await store.take([taking()])
        await closed(store)

        late = [taking(kind=kind, at=NOON + HOUR) for kind in ("feedback", "end", "summary")]

        assert await store.take(late) == [TakenIn(Arrival.NEW, 1)] * 3
        stored = await loaded(store)
        assert stored.closed_revision == stored.revision == 1
        assert (await store.explain("c1")).due is None
        assert await store.funnel() == {
            "closed|idle": 1,
            "end|applied": 1,
            "feedback|applied": 1,
            "summary|not_yet_judged": 1,
            "turn|waiting": 1,
        }

    async def test_a_conversation_is_due_by_idleness(self, store: ConversationStore) -> None:
        """Nobody sends the last word of a conversation that just stops."""
        await store.take([taking(), taking(turn=1, at=NOON + 10 * MINUTE)])

        over = NOON + 40 * MINUTE
        assert await store.due(0, now=over - MOMENT, limit=9) == []
        assert await store.due(0, now=over, limit=9) == ["c1"]
        assert await store.due(1, now=over, limit=9) == []

    async def test_a_conversation_is_due_by_age_though_it_goes_on(self, store: ConversationStore) -> None:
        """One that never stops would never be judged."""
        await store.take([taking(turn=turn, at=NOON + turn * 20 * MINUTE) for turn in range(6)])

        assert await store.due(0, now=NOON + 2 * HOUR - MOMENT, limit=9) == []
        assert await store.due(0, now=NOON + 2 * HOUR, limit=9) == ["c1"]

    async def test_an_end_event_waits_for_a_last_turn_a_little_behind_it(
        self, store: ConversationStore
    ) -> None:
        """Producers send the end from another thread than the answer."""
        await store.take([taking(), taking(kind="end", at=NOON + MINUTE)])
        assert await store.due(0, now=NOON + MINUTE + 29 * SECOND, limit=9) == []
        assert await store.due(0, now=NOON + MINUTE + 30 * SECOND, limit=9) == ["c1"]

        await store.take([taking(turn=1, at=NOON + MINUTE + 20 * SECOND)])
        assert await store.due(0, now=NOON + MINUTE + 49 * SECOND, limit=9) == []
        assert await store.due(0, now=NOON + MINUTE + 50 * SECOND, limit=9) == ["c1"]

    async def test_a_whole_conversation_is_due_at_once(self, store: ConversationStore) -> None:
        """It is complete with its one event."""
        await store.take([taking(kind="conversation")])

        assert await store.due(0, now=NOON, limit=9) == ["c1"]

    async def test_an_old_event_that_comes_late_does_not_bring_the_end_nearer(
        self, store: ConversationStore
    ) -> None:
        """On the stream's clock an event counts by its own time, and disorder is no silence."""
        await store.take([taking(turn=1, at=NOON + 20 * MINUTE), taking(at=NOON)])

        assert await store.due(0, now=NOON + 49 * MINUTE, limit=9) == []
        assert (await loaded(store)).first_activity == NOON

    async def test_those_due_longest_come_first(self, store: ConversationStore) -> None:
        """After an outage the oldest must not starve, whatever shard they are in."""
        names = [f"c{number}" for number in (5, 3, 8, 1, 9, 2)]
        for minutes, name in enumerate(names):
            await store.take([taking(name, at=NOON + minutes * MINUTE)])

        assert await store.due(0, now=NOON + 5 * HOUR, limit=4) == names[:4]

    async def test_a_close_is_refused_if_something_came_since_the_load(
        self, store: ConversationStore
    ) -> None:
        """What came in between would be in no judgment."""
        await store.take([taking()])
        before = await loaded(store)
        await store.take([taking(turn=1)])

        assert not await store.close(before, 0, EndReason.IDLE)
        assert await store.due(0, now=NOON + HOUR, limit=9) == ["c1"]
        assert await closed(store)

    async def test_a_close_twice_counts_once(self, store: ConversationStore) -> None:
        """A kill behind the close repeats the whole round."""
        await store.take([taking()])
        stored = await loaded(store)

        assert await store.close(stored, 0, EndReason.IDLE)
        assert await store.close(stored, 0, EndReason.AGE)
        assert (await store.funnel())["closed|idle"] == 1
        assert "closed|age" not in await store.funnel()
        assert await store.due(0, now=NOON + HOUR, limit=9) == []

    async def test_only_waiting_events_become_queued(self, store: ConversationStore) -> None:
        """Asking again must not take a judgment back."""
        await store.take([taking(), taking(turn=1), taking(kind="end")])
        await store.queued([("c1", ["c1-turn-0", "c1-end-0", "unheard-of"])])
        assert await store.funnel() == {"turn|queued": 1, "turn|waiting": 1, "end|applied": 1}
        assert (await loaded(store)).waiting == {"c1-turn-1"}

        await store.settle([a_record("c1", "c1-turn-0", turn="c1-turn-0")])
        await store.queued([("c1", ["c1-turn-0"])])
        assert (await store.explain("c1")).outcomes["c1-turn-0"][1] is Outcome.JUDGED

    @pytest.mark.parametrize("first", ["failed", "expired", "thinned"])
    async def test_a_failure_may_become_judged_and_never_the_reverse(
        self, store: ConversationStore, first: str
    ) -> None:
        """A judge that recovered has the last word; one that fails later takes nothing away."""
        await store.take([taking()])
        target = ("c1", "c1-turn-0")
        await store.settle([a_record(*target, turn="c1-turn-0", fails=first)])
        await store.settle([a_record(*target, turn="c1-turn-0", fails=first)])
        assert await store.funnel() == {f"turn|{first}": 1, f"judgment:turn|{first}": 1}

        await store.settle([a_record(*target, turn="c1-turn-0")])
        await store.settle([a_record(*target, turn="c1-turn-0", fails="expired")])
        assert await store.funnel() == {"turn|judged": 1, "judgment:turn|judged": 1}
        [record] = (await store.explain("c1")).records
        assert record.outcome == "judged"

    async def test_a_rejected_message_is_counted_once_and_again_as_what_it_became(
        self, store: ConversationStore
    ) -> None:
        """A dead letter that is sent again keeps its position; two outcomes would be one too many."""
        for _ in range(2):
            await store.reject("c1", "events/0/7")
        assert await store.funnel() == {"event|invalid": 1}
        assert await store.load(["c1"]) == {}

        await store.take([taking(source="events/0/7")])
        await store.reject("c1", "events/0/7")
        assert await store.funnel() == {"turn|waiting": 1}

    async def test_what_a_judge_on_trial_judged_is_counted_apart(self, store: ConversationStore) -> None:
        """Else a trial would look like twice the traffic."""
        await store.settle([shadowed(a_record("c1"))])

        assert await store.funnel() == {"judgment:shadow conversation|judged": 1}
        assert [one.judge.stage for one in (await store.explain("c1")).records] == ["shadow"]

    async def test_what_is_not_known_is_no_error(self, store: ConversationStore) -> None:
        """Records end with their time to live; what comes after must find nothing and go on."""
        await store.queued([("gone", ["e"])])
        await store.drop_due("gone", 0)
        await store.settle([a_record("gone", "e")])

        assert await store.load(["gone"]) == {}
        explained = await store.explain("never")
        assert (explained.stored, explained.due, explained.records) == (None, None, [])
        assert await store.forget("never") == 0

    async def test_a_conversation_can_be_taken_off_the_due_list(self, store: ConversationStore) -> None:
        """Its record is gone; it would be asked for on every tick."""
        await store.take([taking()])
        await store.drop_due("c1", 0)

        assert await store.due(0, now=NOON + HOUR, limit=9) == []

    async def test_forgetting_keeps_outcomes_and_scores(self, store: ConversationStore) -> None:
        """People have a right to their words being gone, and the figures a right to stay."""
        await store.take([taking(), taking(turn=1)])
        await store.settle([a_record("c1", "c1-turn-0", says="She lives in Quedlinburg.")])
        funnel, before = await store.funnel(), await store.explain("c1")

        assert await store.forget("c1") == 2

        after = await store.explain("c1")
        assert (await store.funnel(), after.outcomes) == (funnel, before.outcomes)
        [record] = after.records
        assert "Quedlinburg" not in record.model_dump_json()
        assert [(score.dimension, score.score) for score in record.scores] == [("safety", 5)]
        assert after.stored is not None
        assert after.stored.turns == ()
        # The same message once more must not bring the words back.
        await store.take([taking()])
        assert (await loaded(store)).turns == ()

    async def test_what_comes_behind_an_overdue_event_waits_with_it(self, store: ConversationStore) -> None:
        """On the stream's clock; taken at once, the cut of the batches would decide on its revision."""
        await store.take([taking()])
        late = taking(turn=1, at=NOON + HOUR)
        behind = taking(turn=2, at=NOON + MINUTE)

        overdue = TakenIn(Arrival.OVERDUE, 1, NOON + 30 * MINUTE)
        assert await store.take([late, behind], ahead=True) == [overdue, overdue]
        assert await store.funnel() == {"turn|waiting": 1}

        await closed(store)
        assert await store.take([late, behind], ahead=True) == [TakenIn(Arrival.NEW, 2)] * 2
