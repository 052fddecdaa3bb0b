import math

import pytest

from monitor.detection.multiplicity import half_for_all, incidents, patience, speaking, threshold

OVERALL = ("factual", "*")
REFUND = ("factual", "intent=refund")
BILLING = ("factual", "intent=billing")
PROMPT = ("factual", "prompt_hash=3f9c")
SAFETY = ("safety", "*")


def test_one_series_alone_needs_evidence_against_all_of_them() -> None:
    """40 series asked every quarter of an hour are 115,200 chances a month."""
    h0 = patience(evaluations_per_month=2880, false_per_month=1)

    assert threshold(40, h0) == pytest.approx(math.log(40 * 2880))
    evidence = {("factual", f"intent={i}"): 0.0 for i in range(39)} | {OVERALL: 11.6}
    assert speaking(evidence, h0) == frozenset()
    assert speaking(evidence | {OVERALL: 11.7}, h0) == {OVERALL}


def test_many_that_fall_together_need_less_each() -> None:
    """Half of all series at 11.1 are no coincidence."""
    h0 = patience(evaluations_per_month=2880, false_per_month=1)
    evidence = {("factual", f"intent={i}"): 11.1 if i < 20 else 0.0 for i in range(40)}

    assert len(speaking(evidence, h0)) == 20


def test_half_of_a_budget_is_for_all_traffic_and_the_weights_add_up() -> None:
    """The whole is one of ten series, and the one that people ask about."""
    series = [OVERALL, *(("factual", f"intent={i}") for i in range(9))]

    weights = half_for_all(series)

    assert sum(map(math.exp, weights.values())) == pytest.approx(len(series))
    assert threshold(10, 8.0) - weights[OVERALL] == pytest.approx(8 + math.log(2))
    assert threshold(10, 8.0) - weights[series[1]] == pytest.approx(8 + math.log(18))
    assert half_for_all([OVERALL, SAFETY]) == {OVERALL: 0.0, SAFETY: 0.0}
    assert half_for_all([REFUND]) == {REFUND: 0.0}


def test_no_series_speaks_when_there_is_none() -> None:
    """A young deployment has nothing to say."""
    assert speaking({}, 8.0) == frozenset()
    assert incidents((), {}) == ()


def test_where_the_whole_falls_its_segments_are_the_explanation() -> None:
    """Ten alerts for one cause are nine too many."""
    evidence = {OVERALL: 20.0, REFUND: 30.0, PROMPT: 25.0, SAFETY: 12.0}

    found = incidents(evidence, evidence)

    assert [one.series for one in found] == [OVERALL, SAFETY]
    assert found[0].explained_by == (REFUND, PROMPT)


def test_one_prompt_with_its_intent_is_one_incident_and_another_intent_is_its_own() -> None:
    """The strongest segment leads; other keys cut the same conversations differently."""
    evidence = {REFUND: 30.0, PROMPT: 25.0, BILLING: 14.0}

    found = incidents(evidence, evidence)

    assert [one.series for one in found] == [REFUND, BILLING]
    assert found[0].explained_by == (PROMPT,)
