"""Decisions on single events: which rule, which rate, and for whom the conversation stands."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from monitor.intake.decode import Glimpse, glimpse
from monitor.sampling.decision import (
    BaseRates,
    Decision,
    Kept,
    Prompts,
    decide,
    opens,
    position,
    salt,
)
from monitor.sampling.policy import SamplingPolicy
from tests.events import HOUR, NOON, raw

POLICY = SamplingPolicy.model_validate(
    {
        "cohort": "main",
        "default_rate": 0.1,
        "rates": [
            {"match": {"intent": "refunds", "channel": "phone"}, "rate": 0.6},
            {"match": {"intent": "refunds"}, "rate": 0.3},
        ],
        "priority": {
            "escalated": 0.8,
            "thumbs_down": 0.9,
            "fallback_model": 0.7,
            "new_prompt_hash": {"rate": 0.5, "for_hours": 6},
        },
    }
)
ALWAYS, NEVER = 0.0, 0.999_999
FELL_BACK = {"model_asked": "large", "model_answered": "small"}


def seen(turn: int | None = 0, **fields: Any) -> Glimpse:
    found = glimpse(raw("c1", turn, **fields), max_bytes=100_000)
    assert isinstance(found, Glimpse), found
    return found


def decision(event: Glimpse, where: float, *, kept: Kept | None = None, new: bool = False) -> Decision:
    base = BaseRates(POLICY).of(event, event.intent)
    return decide(event, where=where, base=base, kept=kept, policy=POLICY, prompt_is_new=new)


class TestRules:
    @pytest.mark.parametrize(
        ("fields", "rule", "rate"),
        [
            ({}, "base:default", 0.1),
            ({"intent": "refunds"}, "base:intent=refunds", 0.3),
            ({"intent": "refunds", "channel": "phone"}, "base:channel=phone,intent=refunds", 0.6),
            ({"signals": {"escalated": True}}, "priority:escalated", 0.8),
            ({"signals": {"thumb": "down"}}, "priority:thumbs_down", 0.9),
            ({"signals": {"fallback": True}}, "priority:fallback_model", 0.7),
            ({"served_by": FELL_BACK}, "priority:fallback_model", 0.7),
            ({"signals": {"thumb": "up", "refused": True}}, "base:default", 0.1),
        ],
    )
    def test_each_rule_has_its_rate(self, fields: dict[str, Any], rule: str, rate: float) -> None:
        """`explain` says which one it was."""
        just_in, just_out = decision(seen(**fields), rate - 1e-9), decision(seen(**fields), rate)

        assert (just_in.kept, just_in.rule, just_in.rate) == (True, rule, rate)
        assert (just_out.kept, just_out.rule, just_out.rate) == (False, rule, rate)

    def test_a_new_prompt_is_watched_at_its_own_rate(self) -> None:
        """A release is when things break."""
        assert decision(seen(), 0.4, new=True).rule == "priority:new_prompt_hash"
        assert not decision(seen(), 0.5, new=True).kept
        assert not decision(seen(), 0.4).kept

    def test_of_all_rules_that_match_the_highest_rate_counts(self) -> None:
        """The probability of being kept is the greatest of them, not the first."""
        everything = seen(intent="refunds", signals={"escalated": True, "thumb": "down"}, served_by=FELL_BACK)
        assert decision(everything, ALWAYS, new=True).rule == "priority:thumbs_down"

        low = seen(intent="refunds", channel="phone")
        assert decision(low, ALWAYS, new=True).rule == "base:channel=phone,intent=refunds"

    def test_a_rule_that_is_left_out_is_off(self) -> None:
        """No rate is not a rate of zero."""
        policy = POLICY.model_copy(
            update={"priority": POLICY.priority.model_copy(update={"escalated": None})}
        )
        event = seen(signals={"escalated": True})
        base = BaseRates(policy).of(event, None)

        found = decide(event, where=ALWAYS, base=base, kept=None, policy=policy, prompt_is_new=False)
        assert found.rule == "base:default"

    def test_the_first_row_that_matches_wholly_wins(self) -> None:
        """Rows are read as people read them."""
        rates = BaseRates(POLICY)
        assert rates.of(seen(intent="refunds", channel="chat"), "refunds").rate == 0.3
        assert rates.of(seen(channel="phone"), None).rate == 0.1

    def test_what_no_event_says_is_a_stratum_of_its_own(self) -> None:
        """Unknown is a value; leaving it out would put it somewhere."""
        policy = POLICY.model_copy(update={"strata": ("intent", "tenant")})
        assert BaseRates(policy).of(seen(tenant="a|b"), None).stratum == "default|production|unknown|a/b"


class TestWhoStandsForWhom:
    def test_a_turn_in_the_middle_is_newly_kept_by_priority_only_and_then_partial(self) -> None:
        """What came before it is lost; as a whole it would misrepresent the rest."""
        assert not decision(seen(3), ALWAYS).kept
        assert decision(seen(3), ALWAYS).rule == "base:not_kept"

        promoted = decision(seen(3, signals={"thumb": "down"}), 0.5)
        assert (promoted.kept, promoted.newly, promoted.rate) == (True, True, 0.9)
        assert promoted.first_rate is None

    def test_an_end_never_newly_keeps(self) -> None:
        """There is nothing behind it to judge."""
        end = seen(kind="end", signals={"thumb": "down", "escalated": True})

        assert not decision(end, ALWAYS, new=True).kept
        kept = Kept(0.3, 0.3, "base:intent=refunds")
        assert decision(end, NEVER, kept=kept) == Decision(
            kept=True, rule=kept.rule, rate=0.3, first_rate=0.3
        )

    def test_feedback_promotes_and_stands_for_nobody(self) -> None:
        """A thumb after turns that were not kept."""
        found = decision(seen(kind="feedback", signals={"thumb": "down"}), 0.5)

        assert (found.kept, found.rate, found.first_rate) == (True, 0.9, None)
        assert not decision(seen(kind="feedback", signals={"thumb": "up"}), ALWAYS).kept

    def test_the_first_turn_gives_the_conversation_its_rate(self) -> None:
        """With its signals: they were known when it became observable."""
        assert decision(seen(0), 0.05).first_rate == 0.1
        assert decision(seen(0, signals={"thumb": "down"}), 0.05).first_rate == 0.9

    def test_a_conversation_in_one_piece_has_the_rate_of_its_event(self) -> None:
        """It is wholly observed with it."""
        assert decision(seen(kind="conversation", intent="refunds"), 0.2).first_rate == 0.3
        assert decision(seen(kind="conversation", signals={"escalated": True}), 0.5).first_rate == 0.8

    def test_a_whole_conversation_after_a_promotion_is_whole(self) -> None:
        """What was missing came after all, at the highest rate until then."""
        found = decision(seen(kind="conversation"), 0.5, kept=Kept(0.9, None, "priority:thumbs_down"))

        assert (found.first_rate, found.rate, found.newly) == (0.9, 0.9, True)

    def test_without_an_index_only_the_base_rate_makes_a_conversation_whole(self) -> None:
        """A first turn cannot be told from a later one; what the base keeps would have been kept at the first."""
        thumb = {"signals": {"thumb": "down"}}
        assert decision(seen(None), 0.05).first_rate == 0.1
        # Left out, all that begin badly would be missing from the mean.
        by_both = decision(seen(None, **thumb), 0.05)
        assert (by_both.rate, by_both.first_rate) == (0.9, 0.1)
        by_priority = decision(seen(None, **thumb), 0.5)
        assert (by_priority.kept, by_priority.first_rate) == (True, None)

    def test_what_is_kept_stays_kept_at_the_highest_rate_so_far(self) -> None:
        """A turn's weight is that of all the chances that it had to be kept."""
        kept = Kept(0.1, 0.1, "base:default")
        plain = decision(seen(1), NEVER, kept=kept)
        assert plain == Decision(kept=True, rule="base:default", rate=0.1, first_rate=0.1)

        raised = decision(seen(2, signals={"thumb": "down"}), 0.05, kept=kept)
        assert (raised.rule, raised.rate, raised.first_rate, raised.newly) == (
            "priority:thumbs_down",
            0.9,
            0.1,
            True,
        )

        lower = decision(seen(3, signals={"escalated": True}), 0.05, kept=Kept(0.9, 0.1, raised.rule))
        assert (lower.rule, lower.rate, lower.newly) == ("priority:thumbs_down", 0.9, False)

    def test_what_may_be_the_first_of_its_conversation_falls_under_a_base_rate(self) -> None:
        """Everything else had its chance before."""
        assert [opens(seen(turn)) for turn in (0, 1, None)] == [True, False, True]
        kinds = ("conversation", "summary", "end", "feedback")
        assert [opens(seen(kind=kind)) for kind in kinds] == [True, True, False, False]


class TestPosition:
    def test_a_conversation_stands_where_its_id_puts_it(self) -> None:
        """On every worker, in every replay."""
        assert position("c1", salt("main")) == position("c1", salt("main"))
        assert 0 <= position("c1", salt("main")) < 1

    def test_another_cohort_draws_another_sample(self) -> None:
        """Two judges that should not see the same need two names."""
        one, other = salt("main"), salt("other")
        both = sum(position(f"c{n}", one) < 0.1 and position(f"c{n}", other) < 0.1 for n in range(20_000))
        alone = sum(position(f"c{n}", one) < 0.1 for n in range(20_000))

        assert 1800 < alone < 2200
        assert 120 < both < 290


class TestNewPrompts:
    def event(self, prompt: str | None, at: datetime = NOON, **fields: Any) -> Glimpse:
        return seen(at=at, served_by={"prompt_hash": prompt}, **fields)

    def test_the_very_first_prompt_is_established_and_the_next_is_new_for_its_hours(self) -> None:
        """On the first day everything would be new."""
        prompts = Prompts(POLICY)
        assert not prompts.is_new(self.event("p1"))

        later = NOON + 24 * HOUR
        assert prompts.is_new(self.event("p2", later))
        assert prompts.is_new(self.event("p2", later + 6 * HOUR - timedelta(seconds=1)))
        assert not prompts.is_new(self.event("p2", later + 6 * HOUR))
        assert not prompts.is_new(self.event("p1", later))
        assert set(prompts.sightings.values()) == {NOON, later}

    def test_assistants_and_environments_have_prompts_of_their_own(self) -> None:
        """Staging tries prompts that production has never seen."""
        prompts = Prompts(POLICY)
        prompts.is_new(self.event("p1"))

        assert not prompts.is_new(self.event("p2", environment="staging"))
        assert not prompts.is_new(self.event("p2", assistant="other"))
        assert prompts.is_new(self.event("p2"))

    def test_no_prompt_is_not_new(self) -> None:
        """Unknown is no release."""
        assert not Prompts(POLICY).is_new(self.event(None))
        assert not Prompts(POLICY).is_new(seen())

    def test_what_others_saw_first_counts(self) -> None:
        """A worker that starts after a release must watch it all the same, and not take it for the first."""
        told = Prompts(POLICY)
        told.learn(("default", "production"), "p1", NOON - 24 * HOUR)
        assert told.is_new(self.event("p2"))

        late = Prompts(POLICY)
        assert not late.is_new(self.event("p2"))
        late.learn(("default", "production"), "p1", NOON - 24 * HOUR)
        assert late.is_new(self.event("p2"))

    def test_the_order_of_learning_is_no_matter(self) -> None:
        """Workers hear of the same sightings in their own order."""
        sightings = [("p1", NOON), ("p2", NOON + HOUR), ("p3", NOON + 2 * HOUR), ("p2", NOON + 3 * HOUR)]
        forth, back = Prompts(POLICY), Prompts(POLICY)
        for prompts, order in ((forth, sightings), (back, sightings[::-1])):
            for prompt, at in order:
                prompts.learn(("default", "production"), prompt, at)

        for prompt in ("p1", "p2", "p3"):
            for hours in range(10):
                event = self.event(prompt, NOON + hours * HOUR)
                assert forth.is_new(event) is back.is_new(event)

    def test_a_producer_that_hashes_more_than_its_prompt_does_not_fill_the_memory(self) -> None:
        """A hash an event would also be a watch rate for everything."""
        prompts = Prompts(POLICY)
        new = sum(prompts.is_new(self.event(f"p{n}")) for n in range(2000))

        assert len(prompts.sightings) == 500
        assert new == 499


class TestPolicy:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"rates": [{"match": {"mood": "bad"}, "rate": 0.1}]},
            {"strata": ["mood"]},
            {"default_rate": 1.1},
            {"cohort": "Main Cohort"},
            {"surprise": 1},
        ],
    )
    def test_a_policy_that_means_nothing_is_refused(self, wrong: dict[str, Any]) -> None:
        """A misspelt attribute would match no event, and nobody would notice."""
        with pytest.raises(ValidationError):
            SamplingPolicy.model_validate({"cohort": "main", "default_rate": 0.1} | wrong)
