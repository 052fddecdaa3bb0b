"""Which judge speaks, and when a start is refused."""

from datetime import timedelta
from pathlib import Path

import pytest

from agents.services import build_judge, build_services, fallback_of
from monitor.adapters.memory import MemoryAnswers
from monitor.judging.cascade import Cascade
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judgment import FailureKind, Judgment
from monitor.policy import ConfigError, Policy, load_policy
from monitor.settings import Profile, Settings, load_settings
from monitor.windows.bucket import Scope
from tests.conversations import NOON, a_conversation, a_request, assistant, user


def a_policy(tmp_path: Path, judge: str) -> Policy:
    (tmp_path / "monitor.yaml").write_text(f"judge: {{{judge}}}\n", encoding="utf-8")
    return load_policy(tmp_path)


def settings(**changes: object) -> Settings:
    return (
        load_settings(judge_api_key=None, **changes)
        if "judge_api_key" not in changes
        else load_settings(**changes)
    )


def test_without_an_llm_auto_takes_the_rules_and_says_so(tmp_path: Path) -> None:
    """A first try needs no key; every output names the judge that spoke."""
    judge = build_judge(settings(), a_policy(tmp_path, "backend: auto"))

    assert judge.identity.backend == "rules"


@pytest.mark.parametrize("judge", ["backend: auto", "backend: auto, model: big"])
def test_in_production_a_missing_key_is_a_refusal_to_start(tmp_path: Path, judge: str) -> None:
    """A silent fall to the rules would look like a month of good news."""
    with pytest.raises(ConfigError, match=r"monitor\.yaml: judge\.backend.*MONITOR_JUDGE_API_KEY"):
        build_judge(settings(profile=Profile.PRODUCTION), a_policy(tmp_path, judge))


def test_rules_are_a_choice_in_production_too(tmp_path: Path) -> None:
    """Who asks for them by name gets them."""
    judge = build_judge(settings(profile=Profile.PRODUCTION), a_policy(tmp_path, "backend: rules"))

    assert judge.identity.backend == "rules"


def test_an_llm_that_is_asked_for_needs_its_key(tmp_path: Path) -> None:
    """In every profile: the rules are not what was asked for."""
    with pytest.raises(ConfigError, match="MONITOR_JUDGE_API_KEY: missing"):
        build_judge(settings(), a_policy(tmp_path, "backend: llm, model: big"))


def test_auto_takes_the_llm_when_model_and_key_are_there(tmp_path: Path) -> None:
    """And its series are its own: the version differs from the rules'."""
    policy = a_policy(tmp_path, "backend: auto, model: big, base_url: 'http://127.0.0.1:9/v1'")
    judge = build_judge(settings(judge_api_key="k"), policy)

    assert (judge.identity.model_asked, judge.identity.backend != "rules") == ("big", True)
    assert (
        judge.identity.version
        != build_judge(settings(), a_policy(tmp_path, "backend: rules")).identity.version
    )


async def test_a_fallback_to_the_rules_is_not_the_rules_of_the_cascade(tmp_path: Path) -> None:
    """Both judge the same target: under one id the one record would overwrite the other, and be counted for it."""
    base = (
        "backend: llm, model: m, base_url: 'http://127.0.0.1:9/v1', max_attempts: 1, cascade: {model: large}"
    )
    services = build_services(
        settings(judge_api_key="k"),
        a_policy(
            tmp_path,
            base + ", fallback: {backend: rules, 'on': [unavailable]}, breaker: {failures_in_a_row: 9}",
        ),
    )
    assert services.rules is not None
    assert services.second is not None
    first = Executor(
        services.judge,
        MemoryAnswers(),
        "r1",
        ExecutorPolicy(deadline_seconds=5, max_age=timedelta(hours=1)),
        fallback=fallback_of(services.settings, services.policy, services.endpoints),
        fallback_on=[FailureKind.UNAVAILABLE],
    )
    cascade = Cascade(
        rules=services.rules,
        first=first,
        second=services.second,
        policy=services.policy.monitor.judge.cascade,
    )
    request = a_request(a_conversation([user("Hello?"), assistant("You have 1 day.")]))

    record, (rules,) = await cascade.records_of(request, now=lambda: NOON)
    await services.close()

    assert isinstance(record, Judgment)
    assert record.instead_of is FailureKind.UNAVAILABLE
    assert (record.judge.backend, record.judge.stage, rules.judge.stage) == ("rules", "fallback", "rules")
    assert record.judgment_id != rules.judgment_id
    assert Scope.of(record) != Scope.of(rules)
