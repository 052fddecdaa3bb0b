"""The stage SHADOW: a judge on trial, in a process of its own, so that it can neither delay nor stop the live one."""

from functools import partial
from typing import Any

from agents.consume import Progress, each
from agents.inbound import inbound, patiently
from agents.metering import metered
from agents.services import Services, build_judge, build_services
from monitor.hops.shadow import ShadowHop
from monitor.judging.shadow import SHADOW
from monitor.metrics import Metrics
from monitor.policy import ConfigError, Policy, shadow_of
from monitor.publishing import Publisher
from monitor.settings import Settings
from monitor.topics import JUDGE_REQUESTS


def shadow_services(settings: Settings, policy: Policy) -> Services:
    """Wire the shadow's judge, limits and budget; raises ConfigError where there is none, or the live one twice."""
    wanted = shadow_of(policy)
    if wanted is None:
        raise ConfigError("monitor.yaml: judge.shadow: missing; the stage shadow has no judge to run")
    live = build_judge(settings, policy).identity
    services = build_services(settings, wanted, account=SHADOW)
    if services.judge.identity.version == live.version:
        raise ConfigError(
            "monitor.yaml: judge.shadow: it is the live judge over again; give it another model, rubric or settings"
        )
    return services


def attach(app: Any, services: Services, publisher: Publisher, *, prefix: str, metrics: Metrics) -> Progress:
    """Attach the agent to an app; return what health reads."""
    judge = services.policy.monitor.judge
    if judge.shadow is None:
        raise ConfigError("monitor.yaml: judge.shadow: missing; the stage shadow has no judge to run")
    hop = ShadowHop(
        executor=services.executor,
        cohort=judge.shadow.cohort,
        publisher=publisher,
        prefix=prefix,
        now=services.now,
    )
    progress = Progress()
    gate = services.gate
    if gate is not None:
        progress.holds = lambda: gate.holding
    topic = app.topic(prefix + JUDGE_REQUESTS, key_serializer="raw", value_serializer="raw")

    async def handle(event: Any) -> None:
        await patiently(SHADOW, metered(metrics, SHADOW, partial(hop, inbound(event))))

    async def shadow(stream: Any) -> None:
        ready = None if gate is None else gate.opened
        await each(app, stream, handle, concurrency=judge.concurrency, progress=progress, ready=ready)

    app.agent(topic, name=SHADOW)(shadow)
    return progress
