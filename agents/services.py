"""The one place that wires: settings and policy in, ports on real servers out."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agents.documents import consulting, in_event
from agents.endpoints import QUEUE_SECONDS, Endpoints, allowance_of
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_anchors import RedisAnchors
from monitor.adapters.redis_answers import RedisAnswers
from monitor.adapters.redis_awaited import RedisAwaited
from monitor.adapters.redis_baselines import RedisBaselines
from monitor.adapters.redis_budget import RedisPurse
from monitor.adapters.redis_calibrations import RedisCalibrations
from monitor.adapters.redis_census import RedisCensus
from monitor.adapters.redis_changes import RedisChanges
from monitor.adapters.redis_clock import RedisClock
from monitor.adapters.redis_configurations import RedisConfigurations
from monitor.adapters.redis_connection import blocking_client, waiting_client
from monitor.adapters.redis_conversations import RedisConversations
from monitor.adapters.redis_functions import Client
from monitor.adapters.redis_groups import RedisGroups
from monitor.adapters.redis_health import RedisHealth
from monitor.adapters.redis_heartbeats import BlockingHeartbeats, RedisHeartbeats
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_review import RedisReview
from monitor.adapters.redis_sampling import RedisSampling
from monitor.adapters.redis_splices import RedisSplices
from monitor.adapters.redis_windows import RedisWindows
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy, Gate
from monitor.judging.judge import Judge
from monitor.judging.rules import RuleJudge
from monitor.policy import ConfigError, Policy
from monitor.settings import Profile, Settings


def wall_now() -> datetime:
    """Read the wall's clock; hops are given this function and read no clock themselves."""
    return datetime.now(UTC)  # noqa: TID251 - the process is where the clock is read


@dataclass
class Stores:
    """Everything that is remembered, behind its port."""

    client: Client
    conversations: RedisConversations
    windows: RedisWindows
    alerts: RedisAlerts
    groups: RedisGroups
    changes: RedisChanges
    census: RedisCensus
    heartbeats: RedisHeartbeats
    review: RedisReview
    answers: RedisAnswers
    anchors: RedisAnchors
    calibrations: RedisCalibrations
    baselines: RedisBaselines
    awaited: RedisAwaited
    health: RedisHealth
    configurations: RedisConfigurations
    clock: RedisClock
    purse: RedisPurse
    splices: RedisSplices

    async def start(self) -> None:
        """Load the server-side functions; raises StoreUnavailable."""
        for store in (
            self.conversations,
            self.windows,
            self.alerts,
            self.changes,
            self.groups,
            self.review,
            self.clock,
            self.purse,
            self.health,
            self.configurations,
        ):
            await store.start()

    async def close(self) -> None:
        """Let go of all connections."""
        await self.client.aclose()


@dataclass
class Services:
    """What the stages of a worker share."""

    settings: Settings
    policy: Policy
    stores: Stores
    judge: Judge
    executor: Executor
    endpoints: Endpoints
    second: Executor | None = None
    """The expensive judge of a cascade; None where one judge judges alone."""
    rules: Executor | None = None
    """The rules that a cascade asks first."""
    gate: Gate | None = None
    """Of the judge's endpoint; None where judging needs none."""
    now: Callable[[], datetime] = wall_now

    async def close(self) -> None:
        """Let go of all connections."""
        await self.judge.close()
        await self.endpoints.close()
        await self.stores.close()


def build_stores(settings: Settings, policy: Policy, *, account: str = "") -> Stores:
    """Wire the stores; nothing is connected yet. An account's budget is its own."""
    client = waiting_client(settings.redis)
    keys = Keys(settings.namespace, policy.monitor.windows.shards)
    return Stores(
        client=client,
        conversations=RedisConversations(client, keys, policy.monitor.conversations),
        windows=RedisWindows(client, keys, policy.monitor.windows),
        alerts=RedisAlerts(client, keys),
        groups=RedisGroups(client, keys),
        changes=RedisChanges(client, keys),
        census=RedisCensus(client, keys),
        heartbeats=RedisHeartbeats(client, keys),
        review=RedisReview(client, keys),
        answers=RedisAnswers(client, keys, keep_days=policy.monitor.conversations.keep_records_days),
        anchors=RedisAnchors(client, keys),
        calibrations=RedisCalibrations(client, keys),
        baselines=RedisBaselines(client, keys),
        awaited=RedisAwaited(client, keys),
        health=RedisHealth(client, keys),
        configurations=RedisConfigurations(client, keys),
        clock=RedisClock(client, keys, partitions=policy.monitor.topics.partitions),
        purse=RedisPurse(client, keys, account=account),
        splices=RedisSplices(client, keys),
    )


def build_services(settings: Settings, policy: Policy, *, account: str = "") -> Services:
    """Wire judge and stores; raises ConfigError where the judge cannot speak."""
    stores = build_stores(settings, policy, account=account)
    wanted = policy.monitor.judge
    endpoints = Endpoints(settings, wanted)
    judge = build_judge(settings, policy, endpoints)
    by_model = uses_model(settings, policy)
    gate = endpoints.at(wanted.base_url).gate if by_model else None
    limits = ExecutorPolicy(
        # A model's judge keeps its own deadline, which begins when it is its turn.
        deadline_seconds=wanted.deadline_seconds + (QUEUE_SECONDS if by_model else 0),
        max_age=timedelta(hours=wanted.max_age_hours),
    )
    executor = Executor(
        judge,
        stores.answers,
        policy.rubric.version,
        limits,
        gate=gate,
        allowance=allowance_of(policy, stores.purse, rules_of(settings, policy)) if by_model else None,
        fallback=fallback_of(settings, policy, endpoints) if by_model else None,
        fallback_on=wanted.fallback.on if wanted.fallback else (),
    )
    second, rules = _further_stages(settings, policy, stores, endpoints, limits)
    return Services(
        settings, policy, stores, judge, executor, endpoints, second=second, rules=rules, gate=gate
    )


def _further_stages(
    settings: Settings, policy: Policy, stores: Stores, endpoints: Endpoints, limits: ExecutorPolicy
) -> tuple[Executor | None, Executor | None]:
    """Build what stands behind and before the first judge of a cascade; nothing, where there is none."""
    wanted = policy.monitor.judge.cascade
    if wanted.model is None:
        return None, None
    if not uses_model(settings, policy):
        raise ConfigError(
            "monitor.yaml: judge.cascade.model: needs a first model; set judge.model and MONITOR_JUDGE_API_KEY"
        )
    base_url = wanted.base_url or policy.monitor.judge.base_url
    model = _model(settings, policy, endpoints, model=wanted.model, base_url=base_url, stage="second")
    rules = rules_of(settings, policy)
    second = Executor(
        model,
        stores.answers,
        policy.rubric.version,
        limits,
        gate=endpoints.at(base_url).gate,
        allowance=allowance_of(policy, stores.purse, rules, model=wanted.model),
    )
    return second, Executor(rules, Unkept(), policy.rubric.version, limits)


def uses_model(settings: Settings, policy: Policy) -> bool:
    """Tell whether a model judges, and not the rules."""
    wanted = policy.monitor.judge
    configured = wanted.model is not None and settings.judge_api_key is not None
    return wanted.backend == "llm" or (wanted.backend == "auto" and configured)


def build_judge(settings: Settings, policy: Policy, endpoints: Endpoints | None = None) -> Judge:
    """Choose the judge. In production a missing key is a refusal to start, never a silent fall to the rules."""
    wanted = policy.monitor.judge
    if uses_model(settings, policy):
        endpoints = endpoints or Endpoints(settings, wanted)
        return _model(
            settings, policy, endpoints, model=wanted.model or "", base_url=wanted.base_url, stage="first"
        )
    if wanted.backend == "auto" and settings.profile is Profile.PRODUCTION:
        raise ConfigError(
            "monitor.yaml: judge.backend: auto finds no LLM in the production profile; set judge.model and "
            "MONITOR_JUDGE_API_KEY, or say backend: rules if the offline rules are what you want"
        )
    return rules_of(settings, policy)


def fallback_of(settings: Settings, policy: Policy, endpoints: Endpoints) -> Judge | None:
    """Build who judges where the first judge gives nothing; its judgments have a version of their own."""
    wanted = policy.monitor.judge.fallback
    if wanted is None:
        return None
    if wanted.backend == "rules":
        # A stage of its own: the cascade's rules judge the same targets, and one id has one record.
        return rules_of(settings, policy, stage="fallback")
    return _model(
        settings,
        policy,
        endpoints,
        model=wanted.model or "",
        base_url=wanted.base_url or policy.monitor.judge.base_url,
        stage="fallback",
    )


def rules_of(settings: Settings, policy: Policy, *, stage: str = "rules") -> Judge:
    """Build the offline judge."""
    region = policy.monitor.intake.phone_region
    judge = RuleJudge(policy.rubric, in_event(policy), stage=stage, region=region)
    return consulting(settings, policy, judge, passages=False)


def _model(
    settings: Settings,
    policy: Policy,
    endpoints: Endpoints,
    *,
    model: str,
    base_url: str | None,
    stage: str,
) -> Judge:
    endpoint = endpoints.at(base_url)
    # The SDK takes a second to import; the rules and the command line do without it.
    from monitor.adapters.openai_judge import OpenAIJudge  # noqa: PLC0415

    wanted = policy.monitor.judge
    judge = OpenAIJudge(
        policy.rubric,
        in_event(policy),
        model=model,
        endpoint=endpoint,
        stage=stage,
        timeout_seconds=wanted.timeout_seconds,
        deadline_seconds=wanted.deadline_seconds,
        max_attempts=wanted.max_attempts,
        temperature=wanted.temperature,
        max_tokens=wanted.max_tokens,
        max_tokens_field=wanted.max_tokens_field,
        ability=wanted.ability,
        presentation=wanted.presentation,
        scoring=wanted.scoring,
        threshold=wanted.probability_threshold,
        thresholds=wanted.probability_thresholds,
        price=wanted.prices.get(model),
    )
    return consulting(settings, policy, judge, passages=True)


def sampling_store(settings: Settings, policy: Policy) -> RedisSampling:
    """Wire what the sampler remembers."""
    keys = Keys(settings.namespace, policy.monitor.windows.shards)
    return RedisSampling(
        blocking_client(settings.redis),
        keys,
        remember_hours=policy.sampling.remember_hours,
        census_days=policy.monitor.windows.retention_days,
    )


def blocking_heartbeats(settings: Settings, policy: Policy) -> BlockingHeartbeats:
    """Wire the signs of life of a process without a loop."""
    return BlockingHeartbeats(
        blocking_client(settings.redis), Keys(settings.namespace, policy.monitor.windows.shards)
    )
