"""The endpoints of a process: one for each address, shared by all its judges; and what keeps the judge running."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from monitor.judging.allowance import Allowance
from monitor.judging.breaker import BreakerPolicy, Phase
from monitor.judging.budget import Importance, Purse
from monitor.judging.judge import Judge, Scored
from monitor.judging.judgment import JudgeRequest
from monitor.judging.limiter import LimiterPolicy
from monitor.judging.policy import JudgePolicy, Presentation, Scoring
from monitor.judging.probability import LEVELS
from monitor.metrics import Metrics
from monitor.policy import ConfigError, Policy
from monitor.settings import Settings

if TYPE_CHECKING:
    from monitor.adapters.openai_endpoint import Endpoint

QUEUE_SECONDS = 300.0
"""Beside its deadline, how long a judgment in hand may stand in line for its first call."""

PHASES = (Phase.CLOSED, Phase.HALF_OPEN, Phase.OPEN)
"""Of a breaker, by the number that stands for each in the metrics."""

log = structlog.get_logger()


class Endpoints:
    """Each address once, so that all who ask it share its limits."""

    def __init__(self, settings: Settings, policy: JudgePolicy) -> None:
        """Take the limits, which are those of each endpoint; nothing is connected yet."""
        self._settings = settings
        self._policy = policy
        self._known: dict[str | None, Endpoint] = {}

    def at(self, base_url: str | None) -> "Endpoint":
        """Return the endpoint of an address; raises ConfigError without a key."""
        # The SDK takes a second to import; the rules and the command line do without it.
        from monitor.adapters.openai_endpoint import Endpoint  # noqa: PLC0415

        if self._settings.judge_api_key is None:
            raise ConfigError("MONITOR_JUDGE_API_KEY: missing; judge.backend llm needs it")
        if base_url not in self._known:
            policy = self._policy
            self._known[base_url] = Endpoint(
                api_key=self._settings.judge_api_key.get_secret_value(),
                base_url=base_url,
                timeout_seconds=policy.timeout_seconds,
                limits=LimiterPolicy(
                    concurrency_max=policy.concurrency,
                    requests_per_minute=policy.requests_per_minute,
                    tokens_per_minute=policy.tokens_per_minute,
                ),
                breaker=BreakerPolicy(
                    failures_in_a_row=policy.breaker.failures_in_a_row,
                    open_seconds=policy.breaker.open_seconds,
                    open_max_seconds=policy.breaker.open_max_seconds,
                ),
            )
        return self._known[base_url]

    async def probe(self) -> None:
        """Try every model that may be asked; raises ConfigError where monitor.yaml says what it cannot do."""
        if not self._policy.probe:
            return
        from monitor.adapters.openai_probe import probe  # noqa: PLC0415

        for key, policy in models_of(self._policy).items():
            endpoint = self._known.get(policy.base_url)
            if endpoint is None:
                continue
            try:
                unknown = await probe(endpoint, policy)
            except ConfigError as error:
                raise ConfigError(f"{error} (asked of {key} {policy.model})") from None
            if unknown is not None:
                log.warning("judge_not_probed", model=policy.model, reason=unknown)

    def measure(self, metrics: Metrics) -> None:
        """Tell the state of each endpoint, by its host."""
        for base_url, endpoint in self._known.items():
            host = urlsplit(base_url or "").hostname or "default"
            metrics.gauge("monitor_judge_breaker", PHASES.index(endpoint.gate.phase), endpoint=host)
            metrics.gauge("monitor_judge_limit", endpoint.gate.limit, endpoint=host)

    async def close(self) -> None:
        """Let go of all connections."""
        for endpoint in self._known.values():
            await endpoint.close()


def models_of(policy: JudgePolicy) -> dict[str, JudgePolicy]:
    """Return the models that may be asked, by the key that names each, with what holds for its calls."""
    found = {"judge.model": policy}
    if policy.cascade.model is not None:
        found["judge.cascade.model"] = _at(policy, policy.cascade.model, policy.cascade.base_url)
    if policy.fallback is not None and policy.fallback.model is not None:
        found["judge.fallback.model"] = _at(policy, policy.fallback.model, policy.fallback.base_url)
    return found


def _at(policy: JudgePolicy, model: str, base_url: str | None) -> JudgePolicy:
    return policy.model_copy(update={"model": model, "base_url": base_url or policy.base_url})


def allowance_of(
    policy: Policy,
    purse: Purse,
    rules: Judge,
    *,
    model: str | None = None,
    importance: Importance | None = None,
) -> Allowance | None:
    """Build the budget's guard, by the price of the model, the first one's if none is named; None without limits."""
    judge = policy.monitor.judge
    if not judge.budget.limited:
        return None

    async def suspects(request: JudgeRequest) -> bool:
        reply = await rules.judge(request)
        return isinstance(reply, Scored) and any(score.critical for score in reply.scores)

    dimensions = len(policy.rubric.dimensions)
    yes_no = judge.scoring is Scoring.PROBABILITY
    calls = 1
    if yes_no:
        calls = dimensions * len(LEVELS)
    elif judge.presentation is Presentation.SINGLE:
        calls = dimensions
    return Allowance(
        purse,
        judge.budget,
        price=judge.price if model is None else judge.prices.get(model),
        answer_tokens=1 if yes_no else judge.max_tokens,
        calls=calls,
        suspects=suspects,
        importance=importance,
    )
