"""What is said of one conversation, above all of one that is not in the sample."""

import pytest
from rich.console import Console

from monitor.cli.explain import explanation, show
from monitor.conversations.assembly import Outcome, Stored, Taken
from monitor.conversations.conversation import Attributes
from monitor.conversations.store import Explained
from monitor.judging.shadow import shadowed
from monitor.sampling.policy import SamplingPolicy
from tests.conversations import NOON
from tests.judgments import a_judgment

NOTHING = Explained(None, {}, {}, None, None, [])


def said(policy: SamplingPolicy, conversation_id: str = "c1") -> str:
    console = Console(record=True, width=200)
    show(explanation(conversation_id, NOTHING, policy), console)
    return console.export_text()


def test_an_unsampled_id_is_told_its_decision_by_every_rule() -> None:
    """Nothing is stored of what was not kept, so the decision is made again."""
    policy = SamplingPolicy.model_validate(
        {"cohort": "main", "default_rate": 0.0, "rates": [{"match": {"intent": "refunds"}, "rate": 1.0}]}
    )

    text = said(policy)

    assert "base:default, rate 0: leaves it out" in text
    assert "base:intent=refunds, rate 1: would keep it" in text


@pytest.mark.parametrize(("rate", "hint"), [(0.0, False), (1.0, True)])
def test_an_id_that_the_base_rate_keeps_must_be_elsewhere(rate: float, hint: bool) -> None:
    """`Not sampled` would be wrong of a conversation that has not come yet."""
    text = said(SamplingPolicy(cohort="main", default_rate=rate))

    assert ("have not come yet" in text) is hint


def test_the_position_decides_alone() -> None:
    """The same id stands at the same place in every run."""
    policy = SamplingPolicy(cohort="main", default_rate=0.5)
    one = explanation("c1", NOTHING, policy).sampling

    assert one == explanation("c1", NOTHING, policy).sampling
    assert one.rules[0].keeps is (one.position < 0.5)
    assert not one.kept


def test_an_open_conversation_says_until_when_it_waits() -> None:
    """No judgment and no hint is what people report as a fault."""
    taken = Taken(
        event_id="c1:t2",
        conversation_id="c1",
        source="conversation-events/0/7",
        kind="turn",
        outcome=Outcome.WAITING,
        attributes=Attributes(),
        decision_rule="priority:escalated",
        rate=1.0,
        first_rate=None,
        occurred_at=NOON,
    )
    stored = Stored(
        id="c1", revision=1, closed_revision=0, first_activity=NOON, taken=(taken,), revisions={"c1:t2": 1}
    )
    known = Explained(stored, {"c1:t2": ("conversation-events/0/7", Outcome.WAITING)}, {}, NOON, None, [])
    console = Console(record=True, width=200)

    show(explanation("c1", known, SamplingPolicy(cohort="main", default_rate=0.0)), console)

    text = console.export_text()
    assert "in the sample by priority:escalated, rate 1" in text
    assert "waiting until 2026-01-05 12:00:00 UTC" in text
    assert "conversation-events/0/7" in text
    assert "It is partial" in text


def test_a_judgment_on_trial_is_told_from_the_live_one() -> None:
    """Nobody was told of what it found, and nobody should wonder why."""
    console = Console(record=True, width=200)
    policy = SamplingPolicy(cohort="main", default_rate=1.0)
    known = NOTHING._replace(records=[a_judgment("c1"), shadowed(a_judgment("c1", judge_version="new"))])
    show(explanation("c1", known, policy), console)
    text = console.export_text()

    assert "by rules j1\n" in "\n".join(line.rstrip() for line in text.splitlines())
    assert "by rules new, on trial" in text
