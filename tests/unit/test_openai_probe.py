"""The small call at the start: what monitor.yaml says of an endpoint is tried, and a mistake is named with its cure."""

from typing import Any

import pytest

from agents.endpoints import Endpoints
from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_probe import probe
from monitor.judging.policy import Ability, JudgePolicy, Scoring
from monitor.policy import ConfigError
from monitor.settings import Settings
from tests.servers.stub_judge import StubJudge, serving

FORMS = [Ability.JSON_SCHEMA, Ability.JSON_OBJECT, Ability.TOOL]


def a_policy(**changes: Any) -> JudgePolicy:
    return JudgePolicy.model_validate({"backend": "llm", "model": "m", "timeout_seconds": 1.0} | changes)


async def probed(stub: StubJudge, **changes: Any) -> str | None:
    async with serving(stub):
        endpoint = Endpoint(api_key="k", base_url=stub.url)
        try:
            return await probe(endpoint, a_policy(**changes))
        finally:
            await endpoint.close()


async def fault_of(stub: StubJudge, **changes: Any) -> str:
    with pytest.raises(ConfigError) as found:
        await probed(stub, **changes)
    return str(found.value)


@pytest.mark.parametrize("ability", list(Ability))
async def test_an_endpoint_that_keeps_to_what_was_said_costs_one_call(ability: Ability) -> None:
    stub = StubJudge()

    assert await probed(stub, ability=ability) is None
    assert len(stub.requests) == 1


async def test_probabilities_are_tried_as_they_will_be_asked_for() -> None:
    stub = StubJudge()

    assert await probed(stub, scoring=Scoring.PROBABILITY) is None
    assert (stub.requests[0]["logprobs"], stub.requests[0]["max_tokens"]) == (True, 1)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("ability", FORMS)
async def test_an_ability_that_is_not_there_is_named_with_what_to_try(
    ability: Ability, *, ignores: bool
) -> None:
    """Whether the endpoint refuses the form or passes over it, hours later would be too late to learn it."""
    others = [other for other in Ability if other is not ability]

    said = await fault_of(StubJudge(able=[*others, "logprobs"], ignores=ignores), ability=ability)

    assert said.startswith("monitor.yaml: judge.ability: ")
    assert all(str(other) in said for other in others)
    assert "secret words" not in said


@pytest.mark.parametrize("ignores", [False, True])
async def test_an_endpoint_without_logprobs_is_told_from_one_without_a_form(*, ignores: bool) -> None:
    said = await fault_of(
        StubJudge(able=[*Ability], ignores=ignores), scoring=Scoring.PROBABILITY, ability=Ability.TEXT
    )

    assert said.startswith("monitor.yaml: judge.scoring: ")
    assert "written" in said


@pytest.mark.parametrize(
    ("fault", "key"),
    [
        ("401", "MONITOR_JUDGE_API_KEY: "),
        ("404", "monitor.yaml: judge.model: "),
        ("truncated", "monitor.yaml: judge.max_tokens: "),
    ],
)
async def test_another_mistake_is_named_by_its_own_key(fault: str, key: str) -> None:
    said = await fault_of(StubJudge({fault: 1.0}))

    assert said.startswith(key)
    assert "secret words" not in said


@pytest.mark.parametrize("fault", ["429", "500", "drop", "html"])
async def test_an_endpoint_that_is_down_is_no_mistake(fault: str) -> None:
    """A worker that did not start while its judge is down would turn one outage into two."""
    assert await probed(StubJudge({fault: 1.0}))


class TestTheEndpointsOfAWorker:
    """All models that a worker may ask are tried before the first judgment."""

    async def probed(self, stub: StubJudge, policy: JudgePolicy) -> None:
        async with serving(stub):
            settings = Settings.model_validate({"judge_api_key": "k"})
            urls = {"base_url": stub.url}
            told = policy.model_copy(
                update=urls
                | {"cascade": policy.cascade.model_copy(update=urls)}
                | {"fallback": policy.fallback and policy.fallback.model_copy(update=urls)}
            )
            endpoints = Endpoints(settings, told)
            endpoints.at(stub.url)
            try:
                await endpoints.probe()
            finally:
                await endpoints.close()

    async def test_every_model_is_tried_once(self) -> None:
        stub = StubJudge()
        policy = a_policy(cascade={"model": "large"}, fallback={"backend": "llm", "model": "other"})

        await self.probed(stub, policy)

        assert [body["model"] for body in stub.requests] == ["m", "large", "other"]

    async def test_a_fault_of_a_later_model_says_whose_it_is(self) -> None:
        class Half(StubJudge):
            def written(self, body: dict[str, Any], key: str) -> dict[str, Any]:
                return {} if body["model"] == "large" else super().written(body, key)

        with pytest.raises(ConfigError, match=r"judge\.ability.*judge\.cascade\.model large"):
            await self.probed(Half(), a_policy(cascade={"model": "large"}))

    async def test_with_probe_off_nobody_is_asked(self) -> None:
        stub = StubJudge()

        await self.probed(stub, a_policy(probe=False))

        assert stub.requests == []
