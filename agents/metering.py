"""What the processes measure: metrics built from the settings, and thin wraps around hops, publisher and executor."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import structlog

from monitor.adapters.prometheus_metrics import Exporter, PrometheusMetrics
from monitor.judging.executor import Executor
from monitor.judging.judgment import JudgeFailure, JudgeRequest, Judgment, Record
from monitor.metrics import Metrics, NoMetrics
from monitor.publishing import Outgoing, Publisher
from monitor.settings import Settings, secret

TOKEN_VARIABLE = "MONITOR_METRICS_TOKEN"  # noqa: S105 - the variable's name, no secret

log = structlog.get_logger()


def start_metrics(settings: Settings) -> Metrics:
    """Serve metrics if a port is set; raises SettingsError where they would lie open to others."""
    if not settings.metrics_port:
        return NoMetrics()
    kept = PrometheusMetrics()
    exporter = Exporter(
        kept.registry,
        host=settings.metrics_host,
        port=settings.metrics_port,
        token=secret(TOKEN_VARIABLE),
    )
    log.info("metrics_served", host=settings.metrics_host, port=exporter.port)
    return kept


def metered(
    metrics: Metrics, stage: str, work: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    """Return the same work, timed, its failures counted; each attempt is one."""

    async def measured() -> None:
        started = time.monotonic()
        try:
            await work()
        except Exception:
            metrics.count("monitor_hop_failures_total", stage=stage)
            raise
        metrics.time("monitor_hop_seconds", time.monotonic() - started, stage=stage)

    return measured


class MeteredPublisher:
    """The port `Publisher`, with the dead letters of a stage counted once they are sent."""

    def __init__(self, inner: Publisher, metrics: Metrics, *, stage: str, dead_letters: str) -> None:
        """Take the publisher that does the work."""
        self._inner = inner
        self._metrics = metrics
        self._stage = stage
        self._dead_letters = dead_letters

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send on."""
        await self._inner.publish(messages)
        buried = sum(message.topic == self._dead_letters for message in messages)
        if buried:
            self._metrics.count("monitor_dead_letters_total", buried, stage=self._stage)


class MeteredExecutor(Executor):
    """An executor whose records are counted, with what each took; an answer that was known took nothing again."""

    def __init__(self, inner: Executor, metrics: Metrics) -> None:
        """Take the executor that does the work."""
        self._inner = inner
        self._metrics = metrics

    async def record_of(
        self, request: JudgeRequest, *, now: Callable[[], datetime]
    ) -> Judgment | JudgeFailure:
        """Return the record of a request."""
        began = now()
        record = await self._inner.record_of(request, now=now)
        stage = record.judge.stage
        kind = record.kind if isinstance(record, JudgeFailure) else "none"
        self._metrics.count("monitor_judge_records_total", stage=stage, outcome=record.outcome, kind=kind)
        if record.judged_at >= began:
            self._took(record, stage)
        left = self._inner.budget_left
        if left is not None:
            self._metrics.gauge("monitor_judge_budget_left", left, stage=stage)
        return record

    def _took(self, record: Record, stage: str) -> None:
        count, usage = self._metrics.count, record.usage
        self._metrics.time("monitor_judge_seconds", usage.latency_seconds, stage=stage)
        # Each question has its last reply; a judgment that failed at all of them asked at least one.
        retries = usage.attempts - max(1, len(record.trace.replies))
        if retries > 0:
            count("monitor_judge_retries_total", retries, stage=stage)
        if usage.prompt_tokens or usage.completion_tokens:
            count("monitor_judge_tokens_total", usage.prompt_tokens, stage=stage, part="prompt")
            count("monitor_judge_tokens_total", usage.completion_tokens, stage=stage, part="completion")
        if usage.cost is not None:
            count("monitor_judge_cost_total", usage.cost, stage=stage)
