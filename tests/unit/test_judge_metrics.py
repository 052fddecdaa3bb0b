"""What Prometheus reads of the judge: a real endpoint, a real judge, and the figures that they leave."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.endpoints import Endpoints
from agents.metering import MeteredExecutor
from monitor.adapters.memory import MemoryAnswers
from monitor.adapters.memory_budget import MemoryPurse
from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.adapters.prometheus_metrics import PrometheusMetrics
from monitor.judging.allowance import Allowance
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judgment import JudgeRequest
from monitor.judging.policy import BudgetSection, JudgePolicy, Price
from monitor.settings import Settings
from tests.conversations import Shelf, a_conversation, a_request, assistant, the_rubric, user
from tests.servers.stub_judge import StubJudge, serving

POLICY = ExecutorPolicy(deadline_seconds=60, max_age=timedelta(hours=1))
FIRST = {"stage": "first"}


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a process reads its clock, and this stands for one


def a_call(number: int) -> JudgeRequest:
    request = a_request(a_conversation([user(f"q{number}"), assistant("a")], id=f"c{number}"), turn=0)
    return request.model_copy(update={"requested_at": now()})


@asynccontextmanager
async def an_executor(
    stub: StubJudge, metrics: PrometheusMetrics, *, allowance: Allowance | None = None, **judge: Any
) -> AsyncIterator[MeteredExecutor]:
    async with serving(stub):
        endpoint = Endpoint(api_key="k", base_url=stub.url)
        first = OpenAIJudge(the_rubric(), Shelf(), model="m", endpoint=endpoint, **judge)
        inner = Executor(first, MemoryAnswers(), "r1", POLICY, gate=endpoint.gate, allowance=allowance)
        try:
            yield MeteredExecutor(inner, metrics)
        finally:
            await endpoint.close()


async def test_records_calls_tokens_money_and_time_are_counted_by_stage() -> None:
    metrics = PrometheusMetrics()
    read = metrics.registry.get_sample_value
    stub = StubJudge({"malformed": 1.0}, only_first=True)

    async with an_executor(stub, metrics, price=Price(prompt=1.0, completion=1.0)) as executor:
        for number in range(3):
            await executor.record_of(a_call(number), now=now)
        stub.faults, stub.only_first = {"refusal": 1.0}, False
        await executor.record_of(a_call(3), now=now)

    records = "monitor_judge_records_total"
    assert read(records, FIRST | {"outcome": "judged", "kind": "none"}) == 3
    assert read(records, FIRST | {"outcome": "failed", "kind": "refused"}) == 1
    assert read("monitor_judge_retries_total", FIRST) == 3
    assert read("monitor_judge_tokens_total", FIRST | {"part": "prompt"}) == 7 * 900
    assert read("monitor_judge_tokens_total", FIRST | {"part": "completion"}) == 7 * 120
    assert round(read("monitor_judge_cost_total", FIRST) or 0, 6) == round(7 * 1020e-6, 6)
    assert read("monitor_judge_seconds_count", FIRST) == 4


async def test_an_answer_that_was_known_is_not_paid_for_in_the_figures_either() -> None:
    """A redelivery is no new money."""
    metrics = PrometheusMetrics()
    async with an_executor(StubJudge(), metrics) as executor:
        request = a_call(0)
        for _ in range(3):
            await executor.record_of(request, now=now)

    read = metrics.registry.get_sample_value
    assert read("monitor_judge_tokens_total", FIRST | {"part": "prompt"}) == 900
    assert read("monitor_judge_records_total", FIRST | {"outcome": "judged", "kind": "none"}) == 3


async def test_what_is_left_of_the_budget_is_told_also_when_it_is_nothing() -> None:
    metrics = PrometheusMetrics()
    read = metrics.registry.get_sample_value
    allowance = Allowance(MemoryPurse(), BudgetSection(tokens_per_hour=8_000), answer_tokens=100)
    async with an_executor(StubJudge(), metrics, allowance=allowance) as executor:
        await executor.record_of(a_call(0), now=now)
        whole = read("monitor_judge_budget_left", FIRST)
        for number in range(1, 12):
            await executor.record_of(a_call(number), now=now)

    left = read("monitor_judge_budget_left", FIRST)
    assert whole == 1.0
    assert left is not None
    assert left < 0.3
    budget = read("monitor_judge_records_total", FIRST | {"outcome": "failed", "kind": "budget"})
    thinned = read("monitor_judge_records_total", FIRST | {"outcome": "thinned", "kind": "thinned"})
    assert (budget or 0) + (thinned or 0) > 0


async def test_an_endpoint_that_is_down_shows_by_its_host() -> None:
    metrics = PrometheusMetrics()
    settings = Settings.model_validate({"judge_api_key": "k"})
    endpoints = Endpoints(settings, JudgePolicy(concurrency=7))
    gate = endpoints.at("http://user:secret@judge.example:8000/v1").gate
    read = metrics.registry.get_sample_value
    host = {"endpoint": "judge.example"}

    endpoints.measure(metrics)
    well = read("monitor_judge_breaker", host), read("monitor_judge_limit", host)
    for _ in range(5):
        gate.leave(await gate.enter(1), "unknown", ok=False)
    endpoints.measure(metrics)
    await endpoints.close()

    assert well == (0, 7)
    assert read("monitor_judge_breaker", host) == 2
