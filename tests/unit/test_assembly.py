"""Turns in, conversations in their order out; what is asked of the judge, and when a conversation is over."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from monitor.conversations import assembly
from monitor.conversations.assembly import Outcome, Stored, Taken
from monitor.conversations.conversation import EndReason
from monitor.conversations.policy import ConversationPolicy
from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.sampling.decision import Decision
from tests.events import HOUR, MINUTE, NOON, messages, taken

POLICY = ConversationPolicy(idle_seconds=1800, max_age_seconds=7200)
PROMOTED = Decision(kept=True, rule="priority:thumbs_down", rate=1.0, first_rate=None)
WORDS = IntentClassifier(IntentPolicy(keywords={"shipping": ("parcel",), "refund": ("refund",)}))


def stored(*events: Taken, revision: int = 1, closed: int = 0, **revisions: int) -> Stored:
    """Return what a store holds after these events came in the open revision, or in the one that is said."""
    return Stored(
        id="c1",
        revision=revision,
        closed_revision=closed,
        first_activity=NOON,
        taken=events,
        revisions={one.event_id: revisions.get(one.event_id.replace("-", "_"), revision) for one in events},
        waiting=frozenset(one.event_id for one in events if one.outcome is Outcome.WAITING),
    )


def ids(turns: Sequence[Any]) -> list[str]:
    return [turn.event_id for turn in turns]


def turn(index: int | None, *, minutes: float = 0, **fields: Any) -> Taken:
    return taken("c1", index, at=NOON + timedelta(minutes=minutes), **fields)


class TestOrder:
    def test_the_index_comes_first_then_the_time_then_the_id(self) -> None:
        """Partitions, retries and clocks bring turns in any order."""
        events = [
            turn(2, minutes=0),
            turn(0, minutes=9),
            turn(1, minutes=5, event_id="b"),
            turn(1, minutes=5, event_id="a"),
            turn(1, minutes=4, event_id="z"),
        ]

        expected = ["c1-turn-0", "z", "a", "b", "c1-turn-2"]
        assert ids(stored(*events).turns) == expected
        assert ids(stored(*reversed(events)).turns) == expected

    def test_without_indexes_the_time_decides(self) -> None:
        """Many producers number nothing."""
        events = [turn(None, minutes=m, event_id=f"at-{m}") for m in (5, 1, 3)]

        assert ids(stored(*events).turns) == ["at-1", "at-3", "at-5"]

    def test_a_turn_without_an_index_stands_where_its_time_puts_it(self) -> None:
        """A handover to a producer that numbers nothing must not come before the greeting."""
        events = [
            turn(0, minutes=0),
            turn(1, minutes=4),
            turn(None, minutes=2, event_id="between"),
            turn(None, minutes=9, event_id="after"),
            turn(None, minutes=6, event_id="also after"),
            turn(None, minutes=-1, event_id="before"),
        ]

        expected = ["before", "c1-turn-0", "between", "c1-turn-1", "also after", "after"]
        assert ids(stored(*events).turns) == expected
        assert ids(stored(*reversed(events)).turns) == expected

    def test_up_to_a_turn_nothing_later_is_seen(self) -> None:
        """The judge of a turn must not know how the conversation went on."""
        whole = assembly.conversation(
            stored(turn(0), turn(1, minutes=4), turn(None, minutes=2, event_id="between"))
        )

        assert ids(assembly.up_to(whole, whole.turns[0]).turns) == ["c1-turn-0"]
        assert ids(assembly.up_to(whole, whole.turns[1]).turns) == ["c1-turn-0", "between"]
        assert assembly.up_to(whole, whole.turns[2]).turns == whole.turns


class TestWhole:
    def test_attributes_are_those_of_the_first_turn(self) -> None:
        """Strata exist before any answer; a later turn may be about something else."""
        whole = assembly.conversation(
            stored(
                turn(1, intent="refund", channel="chat"),
                turn(0, minutes=9, intent="shipping"),
                turn(0, kind="feedback", intent="other"),
            )
        )

        assert (whole.attributes.intent, whole.attributes.channel) == ("shipping", "unknown")

    def test_missing_turns_are_named(self) -> None:
        """A judge who does not know of the gap takes it for the assistant's fault."""
        assert assembly.conversation(stored(turn(0), turn(3))).missing_turns == (1, 2)
        assert assembly.conversation(stored(turn(None), turn(0))).missing_turns == ()
        assert len(assembly.conversation(stored(turn(0), turn(10**9))).missing_turns) == 20

    def test_without_its_beginning_a_conversation_is_partial(self) -> None:
        """Whatever rate its first kept event had."""
        assert assembly.conversation(stored(turn(0), turn(2))).rate == 1.0
        assert assembly.conversation(stored(turn(1), turn(2))).partial

    def test_a_conversation_promoted_in_its_middle_is_partial(self) -> None:
        """It stands for nobody."""
        assert assembly.conversation(stored(turn(3, decision=PROMOTED))).partial
        assert assembly.conversation(stored(turn(0, decision=PROMOTED))).partial

    def test_only_feedback_is_a_conversation_without_turns(self) -> None:
        """A thumb on what was not kept: nothing to judge, and no crash."""
        whole = assembly.conversation(stored(turn(0, kind="feedback", decision=PROMOTED)))

        assert (whole.turns, whole.partial, whole.last_answered) == ((), True, None)

    def test_what_came_in_one_piece_is_whole_whatever_came_before(self) -> None:
        """Its first turn alone had been promoted; the piece was observed with a rate of its own."""
        whole = assembly.conversation(
            stored(turn(0, decision=PROMOTED), turn(0, minutes=5, kind="conversation"))
        )

        assert whole.rate == 1.0

    def test_of_two_whole_conversations_the_newer_counts(self) -> None:
        """A producer that sends all of it at every step sends the beginning each time."""
        long = [*messages("One?", "One."), *messages("Two?", "Two.")]
        both = stored(
            turn(0, kind="conversation", event_id="e1"),
            turn(0, minutes=5, kind="conversation", event_id="e2", messages=long),
        )

        assert ids(both.turns) == ["e2#0", "e2#1"]
        assert both.whole is not None
        assert both.whole.event_id == "e2"

    def test_a_whole_conversation_is_cut_into_its_turns(self) -> None:
        """Turns are judged one by one, whichever way they came."""
        long = [{"role": "system", "content": "Be kind."}, *messages("One?", "One."), *messages("Two?", "")]
        event = taken("c1", kind="conversation", event_id="e", messages=long)

        assert [(t.event_id, t.turn_index, t.answer) for t in event.turns] == [
            ("e#0", 0, "One."),
            ("e#1", 1, ""),
        ]
        assert event.outcome is Outcome.WAITING


class TestTakingIn:
    @pytest.mark.parametrize(
        ("fields", "outcome"),
        [
            ({"kind": "turn"}, Outcome.WAITING),
            ({"kind": "turn", "messages": messages(answer="")}, Outcome.APPLIED),
            ({"kind": "conversation"}, Outcome.WAITING),
            ({"kind": "conversation", "messages": messages(answer="")}, Outcome.APPLIED),
            ({"kind": "end"}, Outcome.APPLIED),
            ({"kind": "feedback"}, Outcome.APPLIED),
            ({"kind": "summary"}, Outcome.NOT_YET_JUDGED),
        ],
    )
    def test_only_what_can_be_judged_waits(self, fields: dict[str, Any], outcome: Outcome) -> None:
        """Anything else would wait for ever and count as lost."""
        assert taken(**fields).outcome is outcome

    def test_the_classifier_speaks_only_where_the_event_does_not(self) -> None:
        """The producer knows better."""
        assert taken(classifier=WORDS).attributes.intent == "shipping"
        assert taken(classifier=WORDS, intent="billing").attributes.intent == "billing"
        assert taken(classifier=WORDS, messages=messages("Hello")).attributes.intent == "unknown"
        assert taken(classifier=WORDS, kind="end").attributes.intent == "unknown"

    def test_the_decision_travels_with_the_turn(self) -> None:
        """Its rate is the turn's weight."""
        one = taken(decision=Decision(kept=True, rule="base:default", rate=0.3, first_rate=0.1))

        assert (one.rate, one.first_rate, one.decision_rule) == (0.3, 0.1, "base:default")
        assert [each.rate for each in one.turns] == [0.3]


class TestTurnsToJudge:
    def asked(self, *events: Taken, arrived: Sequence[str]) -> list[str]:
        return ids(assembly.turns_to_judge(assembly.conversation(stored(*events)), arrived))

    def test_a_turn_is_asked_for_when_the_one_before_it_is_there(self) -> None:
        """Its judge has to see what came first."""
        assert self.asked(turn(0), arrived=["c1-turn-0"]) == ["c1-turn-0"]
        assert self.asked(turn(0), turn(1), arrived=["c1-turn-1"]) == ["c1-turn-1"]
        assert self.asked(turn(0), turn(2), arrived=["c1-turn-2"]) == []

    def test_a_turn_that_fills_a_gap_lets_the_next_one_go(self) -> None:
        """Nobody else would ask for it before the close."""
        asked = self.asked(turn(0), turn(1), turn(2), turn(3), arrived=["c1-turn-1"])
        assert asked == ["c1-turn-1", "c1-turn-2"]

    def test_in_a_partial_conversation_nothing_is_waited_for(self) -> None:
        """What is missing will not come."""
        assert self.asked(turn(5, decision=PROMOTED), arrived=["c1-turn-5"]) == ["c1-turn-5"]

    def test_a_turn_without_an_index_is_asked_for_at_once(self) -> None:
        """It says nothing of what comes before it."""
        assert self.asked(turn(None, event_id="t"), turn(5), turn(0), arrived=["t"]) == ["t"]

    def test_a_turn_without_an_answer_is_not_asked_for_and_fills_its_gap(self) -> None:
        """There is nothing to judge in it."""
        silent = turn(1, messages=messages(answer=""))
        assert self.asked(turn(0), silent, turn(2), arrived=["c1-turn-1"]) == ["c1-turn-2"]

    def test_what_was_held_back_is_what_still_waits(self) -> None:
        """At the close it waits no longer; what has been asked for is not asked for again."""
        held = stored(turn(0), turn(2), turn(3))
        held = held.model_copy(update={"waiting": frozenset({"c1-turn-2"})})

        assert ids(assembly.held_back(held, assembly.conversation(held))) == ["c1-turn-2"]


class TestRevisions:
    def test_a_turn_keeps_the_revision_in_which_it_came(self) -> None:
        """A request that is repeated later must get the same judgment's id."""
        resumed = stored(turn(0), turn(1), revision=2, c1_turn_0=1)

        assert [resumed.revision_of(one) for one in resumed.turns] == [1, 2]

    def test_the_turns_of_a_whole_conversation_have_its_revision(self) -> None:
        """They are no events themselves."""
        resumed = stored(taken("c1", kind="conversation", event_id="e"), turn(7), revision=2, e=1)

        assert {one.event_id: resumed.revision_of(one) for one in resumed.turns} == {"e#0": 1, "c1-turn-7": 2}

    def test_an_event_id_with_a_hash_in_it_is_that_of_its_event(self) -> None:
        """Producers choose their ids; taken for a part of another it would never have an outcome."""
        resumed = stored(turn(0, event_id="msg#4"), turn(1), revision=2)
        resumed = resumed.model_copy(update={"revisions": {"msg#4": 1, "c1-turn-1": 2}})

        assert [resumed.revision_of(one) for one in resumed.turns] == [1, 2]

    def test_only_what_came_in_the_open_revision_ends_it(self) -> None:
        """The end of the first part is not the end of the second."""
        resumed = stored(turn(0), turn(0, kind="end"), turn(1), revision=2, c1_turn_0=1, c1_end_0=1)

        assert not resumed.holds("end")
        assert resumed.holds("turn")


@pytest.mark.parametrize(
    ("events", "now", "reason"),
    [
        ([turn(0)], NOON + HOUR, EndReason.IDLE),
        ([turn(0)], NOON + 2 * HOUR, EndReason.AGE),
        ([turn(0), turn(0, kind="end")], NOON + 3 * HOUR, EndReason.END_EVENT),
        ([turn(0), turn(0, kind="end"), turn(0, kind="conversation")], NOON + MINUTE, EndReason.WHOLE),
    ],
)
def test_a_conversation_ends_for_one_reason(events: list[Taken], now: datetime, reason: EndReason) -> None:
    """It is recorded and counted; the strongest evidence wins."""
    assert assembly.end_reason(stored(*events), now=now, policy=POLICY) is reason
