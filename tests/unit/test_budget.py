"""What judging may cost, who is thinned out first, and that what is left still stands for all."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.adapters.memory_budget import MemoryPurse
from monitor.judging.allowance import Allowance
from monitor.judging.budget import Importance, claims_of, importance_of, is_kept, share_kept
from monitor.judging.cascade import AUDIT_RULE, BORDERLINE_RULE, CRITICAL_RULE
from monitor.judging.judgment import FailureKind, JudgeRequest, Phase, Place, Usage
from monitor.judging.policy import BudgetSection, Price
from tests.conversations import NOON, a_conversation, a_request, assistant, user

ORDER = [Importance.AUDIT, Importance.TURN, Importance.CONVERSATION, Importance.CRITICAL]
REQUEST = a_request(a_conversation([user("Hello?"), assistant("Hello.")]), turn=0)


def complaint() -> JudgeRequest:
    raw = REQUEST.model_dump()
    raw["conversation"]["turns"][0]["signals"] = {"thumb": "down"}
    return JudgeRequest.model_validate(raw)


@given(st.floats(min_value=0, max_value=1.2), st.floats(min_value=0.1, max_value=0.95))
def test_nobody_is_thinned_before_those_below_are_gone(fill: float, thin_from: float) -> None:
    """The order is stated, and critical checks go last."""
    shares = [share_kept(importance, fill, thin_from=thin_from) for importance in ORDER]

    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert sum(0 < share < 1 for share in shares) <= 1
    if fill < thin_from:
        assert shares == [1.0] * 4


def test_a_share_keeps_about_that_share() -> None:
    kept = sum(is_kept(f"id{number}", 0.3) for number in range(10_000))

    assert 2800 < kept < 3200


def test_a_complaint_or_a_suspicion_makes_a_check_critical() -> None:
    assert importance_of(REQUEST, suspected=False) is Importance.TURN
    assert importance_of(REQUEST, suspected=True) is Importance.CRITICAL
    assert importance_of(complaint(), suspected=False) is Importance.CRITICAL


def test_each_limit_has_a_claim_and_each_period_its_own() -> None:
    budget = BudgetSection(tokens_per_hour=10, money_per_day=2.5, tokens_per_tenant_day=7)

    claims = claims_of(budget, tenant="acme", tokens=5, money=0.001, now=NOON)
    later = claims_of(budget, tenant="acme", tokens=5, money=0.001, now=NOON + timedelta(hours=1))

    assert [(claim.name.split(":")[:2], claim.limit, claim.amount) for claim in claims] == [
        (["tokens", "hour"], 10, 5),
        (["money", "day"], 2_500_000, 1000),
        (["tokens", "tenant"], 7, 5),
    ]
    assert [one.name == other.name for one, other in zip(claims, later, strict=True)] == [False, True, True]


async def test_an_empty_budget_refuses_even_critical_checks_and_takes_nothing() -> None:
    purse = MemoryPurse()
    allowance = Allowance(purse, BudgetSection(tokens_per_hour=100))

    granted = await allowance.ask(complaint(), "id", now=NOON)

    assert granted.refused is not None
    assert granted.refused.kind is FailureKind.BUDGET
    assert sum(purse.used.values()) == 0


async def test_what_was_used_takes_the_place_of_what_was_reserved() -> None:
    purse = MemoryPurse()
    price = Price(prompt=1.0, completion=10.0)
    allowance = Allowance(purse, BudgetSection(tokens_per_hour=100_000, money_per_day=1.0), price=price)

    granted = await allowance.ask(REQUEST, "id", now=NOON)
    reserved = dict(purse.used)
    await allowance.settle(granted, Usage(prompt_tokens=900, completion_tokens=100, cost=0.0019))

    assert min(reserved.values()) > 1000
    assert sorted(purse.used.values()) == [1000, 1900]


@pytest.mark.parametrize(
    ("used", "turns", "critical"), [(70_000, 100, 100), (90_000, 50, 100), (97_000, 0, 100)]
)
async def test_near_the_end_turns_are_thinned_and_complaints_are_not(
    used: int, turns: int, critical: int
) -> None:
    """What is kept has a known share, by which its rate is multiplied."""
    kept = {"turns": 0, "critical": 0}
    for number in range(100):
        for name, request in (("turns", REQUEST), ("critical", complaint())):
            purse = MemoryPurse()
            allowance = Allowance(purse, BudgetSection(tokens_per_hour=100_000), answer_tokens=100)
            purse.used[
                claims_of(BudgetSection(tokens_per_hour=1), tenant="", tokens=1, money=0, now=NOON)[0].name
            ] = used
            granted = await allowance.ask(request, f"id{number}", now=NOON)
            kept[name] += granted.refused is None
            if granted.refused is not None:
                assert max(purse.used.values()) == used

    assert kept["critical"] == critical
    assert abs(kept["turns"] - turns) <= 20


async def test_the_rules_are_only_asked_when_the_budget_nears_its_end() -> None:
    asked = []

    async def suspects(request: JudgeRequest) -> bool:
        asked.append(request)
        return True

    purse = MemoryPurse()
    allowance = Allowance(purse, BudgetSection(tokens_per_hour=100_000), suspects=suspects)
    await allowance.ask(REQUEST, "id", now=NOON)
    assert asked == []

    purse.used.update(dict.fromkeys(purse.used, 90_000))
    granted = await allowance.ask(REQUEST, "id", now=NOON)
    assert asked == [REQUEST]
    assert (granted.refused, granted.share) == (None, 1.0)


def of_the_second_stage(rule: str, request: JudgeRequest = REQUEST) -> JudgeRequest:
    phase = Phase(place=Place.SECOND, probability=0.05, asked=True, rule=rule)
    return request.model_copy(update={"phase": phase})


def test_an_audit_is_thinned_before_everything_else() -> None:
    """The first stage has judged it: what an audit would show is how the stages differ, and never a missed failure."""
    assert importance_of(of_the_second_stage(AUDIT_RULE), suspected=False) is Importance.AUDIT
    assert importance_of(of_the_second_stage(AUDIT_RULE, complaint()), suspected=True) is Importance.AUDIT
    assert importance_of(of_the_second_stage(CRITICAL_RULE), suspected=True) is Importance.CRITICAL
    assert importance_of(of_the_second_stage(BORDERLINE_RULE), suspected=False) is Importance.TURN


async def test_the_audit_share_of_a_cascade_gives_way_to_first_judgments() -> None:
    """At a fill that leaves single turns alone the audits are gone."""
    purse = MemoryPurse()
    allowance = Allowance(purse, BudgetSection(tokens_per_hour=100_000), answer_tokens=100)
    await allowance.ask(REQUEST, "before", now=NOON)
    purse.used.update(dict.fromkeys(purse.used, 84_300))

    audit = await allowance.ask(of_the_second_stage(AUDIT_RULE), "id", now=NOON)
    turn = await allowance.ask(REQUEST, "id", now=NOON)

    assert audit.refused is not None
    assert "audit is thinned out" in audit.refused.reason
    assert turn.refused is None


async def test_anchors_are_thinned_like_audits_and_before_all_traffic() -> None:
    """What the monitor does for itself must not cost a user's conversation its judgment."""
    for fill in (0.5, 0.83, 0.9, 0.99):
        anchor, audit = (
            share_kept(one, fill, thin_from=0.8) for one in (Importance.ANCHOR, Importance.AUDIT)
        )
        assert anchor == audit

    budget = BudgetSection(tokens_per_hour=10_000, thin_from=0.1)
    purse = MemoryPurse()
    anchors = Allowance(purse, budget, answer_tokens=10, importance=Importance.ANCHOR)
    traffic = Allowance(purse, budget, answer_tokens=10)
    await purse.reserve(claims_of(budget, tenant="t", tokens=5000, money=0.0, now=NOON))

    refused = (await anchors.ask(REQUEST, "a", now=NOON)).refused

    assert refused is not None
    assert "anchor is thinned out" in refused.reason
    assert (await traffic.ask(complaint(), "b", now=NOON)).refused is None
