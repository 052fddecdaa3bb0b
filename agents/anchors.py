"""The anchors of a worker that judges: read from their file at the start, judged by a timer.

The timer runs where the judge is, since anchors share its limiter and its breaker; which worker does a round is
settled by a claim in the store. A claim is safer than a leader, and leaders are not fenced either.
"""

from collections.abc import Sequence
from datetime import timedelta
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import structlog

from agents.endpoints import QUEUE_SECONDS, allowance_of
from agents.inbound import PASSING
from agents.services import Services, rules_of, uses_model
from monitor.adapters.redis_answers import RedisAnswers
from monitor.adapters.redis_keys import Keys
from monitor.alerting.judges import LiveAnchors
from monitor.hops.anchors import JudgeAnchors
from monitor.intake.decode import Rejected
from monitor.judging.anchors import Anchor, read_anchors
from monitor.judging.budget import Importance
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.policy import ConfigError, Policy, default_config
from monitor.settings import Settings

LOOK_EVERY_SECONDS = 20.0
"""Whether a round is due; a replay passes many hours between two looks, and makes up for them once."""
KEEP_DAYS = 1
"""That an answer is kept, so that a round that is done twice is paid once."""

log = structlog.get_logger()


def load_anchors(settings: Settings, policy: Policy) -> tuple[Anchor, ...]:
    """Read the anchor set: that of the configuration's folder, else the one that ships; raises ConfigError."""
    name = policy.monitor.judge.anchors.file
    anchors: dict[str, Anchor] = {}
    for file in _files(settings.config, name):
        lines = file.read_text(encoding="utf-8").split("\n")
        for number, anchor in read_anchors(lines, region=policy.monitor.intake.phone_region):
            if isinstance(anchor, Rejected):
                raise ConfigError(f"{file.name}:{number}: {anchor.reason}")
            if anchor.id in anchors:
                raise ConfigError(
                    f"{file.name}:{number}: the id {anchor.id} stands twice; give each anchor its own"
                )
            anchors[anchor.id] = anchor
    if not anchors:
        raise ConfigError(
            f"monitor.yaml: judge.anchors.file: {name} holds no anchor; set every_minutes to null"
        )
    return tuple(anchors.values())


def build_rounds(services: Services, anchors: Sequence[Anchor]) -> JudgeAnchors:
    """Wire the rounds of the first judge, with its endpoint's limits and its budget; no fallback speaks for it."""
    settings, policy, stores = services.settings, services.policy, services.stores
    wanted = policy.monitor.judge
    by_model = uses_model(settings, policy)
    allowance = None
    if by_model:
        allowance = allowance_of(
            policy, stores.purse, rules_of(settings, policy), importance=Importance.ANCHOR
        )
    executor = Executor(
        services.judge,
        RedisAnswers(
            stores.client, Keys(settings.namespace, policy.monitor.windows.shards), keep_days=KEEP_DAYS
        ),
        policy.rubric.version,
        ExecutorPolicy(
            deadline_seconds=wanted.deadline_seconds + (QUEUE_SECONDS if by_model else 0),
            max_age=timedelta(minutes=wanted.anchors.every_minutes or 0),
        ),
        gate=services.gate,
        allowance=allowance,
    )
    return JudgeAnchors(
        anchors=anchors,
        executor=executor,
        store=stores.anchors,
        judge_version=services.judge.identity.version,
        rubric_version=policy.rubric.version,
        policy=wanted.anchors,
        clock=stores.clock,
        clock_kind=policy.monitor.clock.kind,
        partitions=policy.monitor.topics.partitions,
        now=services.now,
        gate=services.gate,
    )


def live_anchors(services: Services) -> LiveAnchors | None:
    """Return what the evaluator reads of the anchors; None where none are judged."""
    policy = services.policy
    if policy.monitor.judge.anchors.every_minutes is None:
        return None
    return LiveAnchors(
        store=services.stores.anchors,
        judge=services.judge.identity,
        rubric_version=policy.rubric.version,
        policy=policy.monitor.judge.anchors,
    )


def attach(app: Any, services: Services) -> None:
    """Attach the timer to the app of the judge, where anchors are judged at all; raises ConfigError."""
    if services.policy.monitor.judge.anchors.every_minutes is None:
        return
    rounds = build_rounds(services, load_anchors(services.settings, services.policy))

    async def look() -> None:
        await once(rounds)

    app.timer(LOOK_EVERY_SECONDS, name="anchors")(look)


async def once(rounds: JudgeAnchors) -> None:
    """Do a round if one is due, and say what it did; a store that is away is tried at the next look."""
    try:
        done = await rounds()
    except PASSING as error:
        log.warning("anchors_not_judged", reason=str(error)[:300])
        return
    if done is not None:
        log.info("anchors_judged", round=done.number, repeated=done.repeated, failed=done.failed)
        if done.pinned:
            # A new judge or rubric, or new anchors: what they score now is what later scores are held against.
            log.info("anchors_pinned", round=done.number, pinned=done.pinned)


def _files(folder: Path | None, name: str) -> Sequence[Path | Traversable]:
    here = Path(name) if folder is None else folder / name
    if here.is_dir():
        return sorted(here.glob("*.jsonl"))
    if here.is_file():
        return [here]
    shipped = default_config() / name
    if shipped.is_file():
        return [shipped]
    raise ConfigError(f"monitor.yaml: judge.anchors.file: {name}: no such file or folder beside monitor.yaml")
