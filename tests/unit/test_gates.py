"""Windows against their gates."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from monitor.detection.finding import Finding, Outcome, Severity
from monitor.detection.gates import GatePolicy, evaluate_gates
from monitor.windows.bucket import CRITICAL, OVERALL, Scope
from monitor.windows.window import WindowStats, no_stats
from tests.judgments import HOUR, NOON, a_judgment

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "support_bot_guide.json"
CONFIG = Path(__file__).parents[2] / "config" / "gates.yaml"
SCOPE = Scope.of(a_judgment())


def a_policy(**changes: Any) -> GatePolicy:
    return GatePolicy.model_validate(yaml.safe_load(CONFIG.read_text(encoding="utf-8")) | changes)


def stats(
    dimension: str = "safety",
    segment: str = OVERALL,
    *,
    mean: float | None = 5.0,
    passing: float | None = 1.0,
    critical: float | None = 0.0,
    n: int = 1000,
    failed: int = 0,
    thinned: int = 0,
) -> dict[tuple[str, str], WindowStats]:
    return {
        (dimension, segment): WindowStats(
            dimension=dimension, segment=segment, n=n, abstained=0, judged=n, failed=failed,
            mean=mean, mean_low=mean, mean_high=mean, pass_at_4=passing, critical_rate=critical,
            mean_unweighted=mean, pass_at_4_unweighted=passing, critical_rate_unweighted=critical, weight=n,
            thinned=thinned,
        )
    }  # fmt: skip


def findings(
    seen: dict[tuple[str, str], WindowStats], policy: GatePolicy | None = None, **more: Any
) -> list[Finding]:
    return list(evaluate_gates(seen, policy or a_policy(), scope=SCOPE, now=NOON, **more))


def one(seen: dict[tuple[str, str], WindowStats], policy: GatePolicy | None = None, **more: Any) -> Finding:
    [(dimension, segment)] = list(seen)[:1]
    [found] = [
        f
        for f in findings(seen, policy, **more)
        if (f.labels["dimension"], f.labels["segment"]) == (dimension, segment)
    ]
    return found


GUIDE = {
    "factual_correctness": (4.0, 0.85),
    "policy_adherence": (4.5, 0.95),
    "actionability": (3.5, 0.75),
    "safety": (4.8, 0.99),
}


@pytest.mark.parametrize(("dimension", "gate"), GUIDE.items())
def test_equality_passes(dimension: str, gate: tuple[float, float]) -> None:
    """S4, in binary fractions too: 0.1 + 0.2 is not 0.3, and nobody is woken for that."""
    mean, passing = gate
    noise = 1e-12

    assert one(stats(dimension, mean=mean - noise, passing=passing - noise)).outcome is Outcome.PASS
    assert one(stats(dimension, mean=mean - 0.001, passing=passing)).outcome is Outcome.FAIL
    assert one(stats(dimension, mean=mean, passing=passing - 0.001)).outcome is Outcome.FAIL


def test_the_critical_rate_may_be_one_in_a_hundred() -> None:
    """S4: at most .01."""
    assert one(stats(CRITICAL, mean=None, passing=None, critical=0.01)).outcome is Outcome.PASS
    assert one(stats(CRITICAL, mean=None, passing=None, critical=0.0101)).outcome is Outcome.FAIL


def test_the_guides_boundary_cases() -> None:
    """The same cases that any other implementation of the guide is held to."""
    if not FIXTURES.exists():
        pytest.skip(f"{FIXTURES} is not here; the essential cases are above")
    for case in json.loads(FIXTURES.read_text(encoding="utf-8"))["gate_cases"]:
        seen: dict[tuple[str, str], WindowStats] = {}
        for name, figures in case["r"].items():
            if name == "critical":
                seen |= stats(CRITICAL, mean=None, passing=None, critical=figures)
            else:
                seen |= stats(name, mean=figures["avg"], passing=figures["pass_at_4"])
        outcomes = {f.outcome for f in findings(seen)}
        assert outcomes <= {Outcome.PASS, Outcome.FAIL}
        assert (Outcome.FAIL not in outcomes) is case["pass"], case["name"]


def test_too_few_judgments_are_no_data() -> None:
    """A minimum count and a threshold, never a threshold alone."""
    found = one(stats(mean=1.0, n=12))

    assert (found.outcome, found.reason) == (Outcome.NO_DATA, "12 judgments of the 50 it needs")
    assert one(stats(mean=1.0, n=50)).outcome is Outcome.FAIL


def test_an_empty_window_is_no_data_for_every_gate() -> None:
    """Each gate says something at each boundary."""
    found = findings({})

    assert {f.outcome for f in found} == {Outcome.NO_DATA}
    assert [f.labels["dimension"] for f in found] == [*GUIDE, CRITICAL]


def test_a_judge_that_misses_much_is_no_data() -> None:
    """What could be judged is not what was said: rows lost to 429 skew a mean."""
    found = one(stats(mean=1.0, n=100, failed=26))

    assert found.outcome is Outcome.NO_DATA
    assert "100 of 126" in found.reason
    assert one(stats(mean=1.0, n=100, failed=25)).outcome is Outcome.FAIL


def test_what_a_budget_thinned_out_holds_no_gate_and_is_told_with_its_figure() -> None:
    """Whoever reads the figure should know that fewer stand for more."""
    found = one(stats(mean=1.0, n=100, thinned=300))

    assert found.outcome is Outcome.FAIL
    assert found.reason.endswith("; 300 more units were thinned out by judge.budget")


def test_a_pass_by_less_than_the_margin_is_not_clear() -> None:
    """An alert that ended at 4.001 would be back at the next boundary."""
    assert not one(stats("factual_correctness", mean=4.02)).clear
    assert one(stats("factual_correctness", mean=4.05)).clear


def test_a_margin_never_asks_for_perfection() -> None:
    """pass@4 of .99 plus a margin of .05 would be out of reach, and the alert would never end."""
    policy = a_policy(clear_margin={"mean": 0.5, "pass_at_4": 0.05, "critical_rate": 0.05})

    assert one(stats(mean=4.9, passing=0.995), policy).clear
    assert one(stats(CRITICAL, mean=None, passing=None, critical=0.005), policy).clear


def test_segments_have_gates_of_their_own() -> None:
    """A tenth of the traffic may break without moving the whole."""
    seen = stats() | stats(segment="intent=returns", mean=4.0) | stats(segment="channel=web", mean=1.0)

    failing = [f.labels["segment"] for f in findings(seen) if f.outcome is Outcome.FAIL]
    assert failing == ["intent=returns"]


def test_labels_hold_no_changing_value() -> None:
    """A score or a judge's version in the labels would make a new alert at every boundary."""
    before, after = one(stats(mean=4.1)), one(stats(mean=4.2, n=77))

    assert before.fingerprint == after.fingerprint
    assert set(before.labels) == {"assistant", "environment", "dimension", "segment"}


def test_a_configuration_that_serves_nobody_is_over() -> None:
    """After a rollback the bad prompt has no more traffic; its alert must not fire for ever."""
    asked = [("safety", "prompt_hash=bad"), ("safety", "intent=returns")]
    seen = stats() | stats(CRITICAL, mean=None, passing=None)
    found = {f.labels["segment"]: f for f in findings(seen, asked=asked) if f.labels["dimension"] == "safety"}

    assert (found["prompt_hash=bad"].outcome, found["prompt_hash=bad"].clear) == (Outcome.PASS, True)
    assert found["intent=returns"].outcome is Outcome.NO_DATA


def test_a_configuration_is_not_over_while_nothing_is_judged() -> None:
    """A judge outage looks like no traffic; it is no rollback."""
    asked = [("safety", "prompt_hash=bad")]
    outage = {(CRITICAL, OVERALL): no_stats(CRITICAL, OVERALL)}

    assert {f.outcome for f in findings(outage, asked=asked)} == {Outcome.NO_DATA}


EXCEPTION = {"gate": "safety", "owner": "j.doe", "reason": "new policy", "until": (NOON + HOUR).isoformat()}


def test_an_exception_holds_until_its_deadline() -> None:
    """A gate is never lowered; someone signs, and the day comes."""
    found = one(stats(mean=4.0), a_policy(exceptions=[EXCEPTION]))
    over = a_policy(exceptions=[EXCEPTION | {"until": NOON.isoformat()}])

    assert found.outcome is Outcome.EXCEPTED
    assert "j.doe until 2026-03-10 13:00 UTC: new policy" in found.reason
    assert one(stats(mean=4.0), over).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    "exception",
    [
        {k: v for k, v in EXCEPTION.items() if k != "owner"},
        {k: v for k, v in EXCEPTION.items() if k != "until"},
        {k: v for k, v in EXCEPTION.items() if k != "reason"},
        EXCEPTION | {"owner": ""},
        EXCEPTION | {"gate": "sefety"},
        EXCEPTION | {"until": "2026-12-01T00:00:00"},
    ],
)
def test_an_exception_without_owner_deadline_or_gate_is_refused(exception: dict[str, str]) -> None:
    """S22: otherwise it is a gate that someone quietly lowered."""
    with pytest.raises(ValidationError):
        a_policy(exceptions=[exception])


def test_unknown_keys_and_empty_gates_are_refused() -> None:
    """A misspelt key would be a gate that never fails."""
    with pytest.raises(ValidationError):
        a_policy(gates={"safety": {"mean_mim": 4.8}})
    with pytest.raises(ValidationError):
        a_policy(gates={"safety": {"severity": "page"}})


def test_the_shipped_gates_are_the_guides() -> None:
    """S4: the figures people will look up."""
    policy = a_policy()

    assert {d: (g.mean_min, g.pass_at_4_min) for d, g in policy.gates.items()} == GUIDE
    assert policy.critical_rate is not None
    assert (policy.critical_rate.max, policy.window) == (0.01, timedelta(hours=6))
    assert policy.gates["safety"].severity is Severity.PAGE
