"""A judge on trial: it sees its cohort, counts in series of its own, and can neither speak nor replace the live one."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.services import build_judge
from agents.shadow import shadow_services
from agents.worker import build_stage
from monitor.adapters.memory import MemoryAnswers
from monitor.adapters.memory_health import MemoryHealth
from monitor.alerting.judges import findings_of
from monitor.cli.main import app
from monitor.clock import ClockKind
from monitor.hops.inbound import Inbound
from monitor.hops.shadow import ShadowHop
from monitor.intake.dead_letter import Position
from monitor.intake.event import Environment
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.health import HealthPolicy
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import (
    DimensionScore,
    FailureKind,
    JudgeFailure,
    JudgeIdentity,
    JudgeRequest,
    Phase,
    Place,
)
from monitor.judging.rubric import TargetKind
from monitor.judging.shadow import ShadowCohort
from monitor.policy import ConfigError, load_policy, shadow_of
from monitor.settings import Settings
from tests.conversations import a_conversation, a_request, assistant, user
from tests.events import HOUR, MINUTE, NOON
from tests.world import IDENTITY, FakeJudge, World, mark

ALL = ShadowCohort(share=1.0)
TRIAL = JudgeIdentity(stage="first", backend="fake", version="trial", model_asked="next")


class Steady(FakeJudge):
    """Gives one score to all, or fails."""

    def __init__(self, score: int | None, identity: JudgeIdentity = IDENTITY) -> None:
        super().__init__()
        self.identity = identity
        self._score = score

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        if self._score is None:
            return NotScored(kind=FailureKind.UNAVAILABLE, reason="down")
        return Scored(scores=(DimensionScore(dimension="safety", score=self._score, reason="steady"),))


def asked(number: int = 0, **changes: object) -> JudgeRequest:
    conversation = a_conversation([user("Open?"), assistant("Yes.")], id=f"c{number}")
    request = a_request(conversation)
    return JudgeRequest.model_validate(
        dict(request) | {"rate": 0.5, "observed_at": NOON, "requested_at": NOON} | changes
    )


def inbound(request: JudgeRequest) -> Inbound:
    position = Position(topic="judge-requests", partition=1, offset=0)
    key = request.target.conversation_id.encode()
    return Inbound(position, key, request.model_dump_json().encode())


def a_trial(world: World, judge: Steady, cohort: ShadowCohort = ALL) -> ShadowHop:
    limits = ExecutorPolicy(deadline_seconds=5, max_age=HOUR)
    return ShadowHop(
        executor=Executor(judge, MemoryAnswers(), world.policy.rubric.version, limits),
        cohort=cohort,
        publisher=world.sender,
        prefix="",
        now=lambda: world.now,
    )


async def after_a_bad_afternoon(*, live: int, trial: int | None) -> World:
    """Judge three hours of traffic by both judges, and evaluate each quarter."""
    world = World(clock=ClockKind.WALL, judge=Steady(live))
    hop = a_trial(world, Steady(trial, TRIAL))
    await world.pipeline.evaluate()
    for quarter in range(12):
        world.now = at = NOON + quarter * 15 * MINUTE
        done = len(world.on("judgments"))
        for number in range(quarter * 15, quarter * 15 + 15):
            request = asked(number, observed_at=at, requested_at=at)
            await hop(inbound(request))
            await world.pipeline.judge(inbound(request))
        await world.pipeline.aggregate(world.on("judgments")[done:])
        await world.pipeline.evaluate()
    return world


async def test_a_shadow_that_finds_everything_critical_alerts_nobody() -> None:
    """Only the live judge speaks; and where that one finds it, people are told."""
    quiet = await after_a_bad_afternoon(live=5, trial=1)
    told = await after_a_bad_afternoon(live=1, trial=5)

    assert {scope.judge_version for scope in await quiet.windows.scopes()} == {IDENTITY.version, "trial"}
    # Nor does it look like a change of what is served.
    seen = await quiet.changes.sightings("default", Environment.PRODUCTION)
    assert not any("trial" in one.value for one in seen)
    assert any(IDENTITY.version in one.value for one in seen)
    assert await quiet.alerts.all() == ()
    assert await quiet.review.waiting(10) == []
    assert await told.alerts.all()


async def test_a_shadow_that_fails_is_neither_a_dead_letter_nor_a_ticket() -> None:
    """Its failures are shown with it, and cost nobody's sleep."""
    world = await after_a_bad_afternoon(live=5, trial=None)
    failures = [one for one in world.records() if isinstance(one, JudgeFailure)]
    health = MemoryHealth()
    await health.add([(NOON, one) for one in failures])

    assert len(failures) == 180
    assert world.on("dead-letters") == []
    assert await findings_of(health, HealthPolicy(), now=NOON + HOUR) == []
    assert await world.alerts.all() == ()


async def test_its_records_are_its_own_and_decide_no_outcome() -> None:
    """They stand for what its draw left out, in the topic of judgments and in the archive."""
    world = World()
    hop = a_trial(world, Steady(4, TRIAL), ShadowCohort(share=0.99))
    [number] = [number for number in range(2) if ShadowCohort(share=0.99).has(asked(number))][:1]
    await hop(inbound(asked(number, event_ids=("e1",))))

    [record] = world.records()
    assert (record.judge.stage, record.judge.version, record.event_ids) == ("shadow", "trial", ())
    assert record.rate == pytest.approx(0.5 * 0.99)
    assert record.phase == Phase(place=Place.SHADOW)
    [archived] = world.on("archive")
    assert archived.key == f"c{number}/j/{record.judgment_id}".encode()
    assert archived.position.partition == 1


def test_a_cohort_is_a_share_of_the_conversations_and_a_larger_one_only_adds() -> None:
    """Two trials of one cohort must see the same, and a raised share must not lose pairs."""
    few, more = ({n for n in range(2000) if ShadowCohort(share=share).has(asked(n))} for share in (0.1, 0.3))
    other = {n for n in range(2000) if ShadowCohort(name="other", share=0.1).has(asked(n))}

    assert 150 < len(few) < 250
    assert few < more
    assert few != other


async def test_it_takes_nothing_but_its_cohort() -> None:
    """Neither other intents, nor single turns, nor second opinions, nor what is no request."""
    world, judge = World(), Steady(4, TRIAL)
    hop = a_trial(world, judge, ShadowCohort(share=1.0, match={"intent": ("returns",)}))
    conversation = a_conversation([user("Open?"), assistant("Yes.")])
    await hop(inbound(asked()))
    await hop(mark(NOON))
    await hop(Inbound(Position(topic="judge-requests", partition=0, offset=0), b"", b"{"))

    everything = a_trial(world, judge)
    await everything(inbound(a_request(conversation, turn=0)))
    await everything(inbound(asked(phase=Phase(place=Place.SECOND))))

    assert judge.requests == []
    assert world.published.sent == []
    assert ShadowCohort(share=1.0, targets=tuple(TargetKind)).has(a_request(conversation, turn=0))


def policy_of(folder: Path, judge: str) -> tuple[Settings, Path]:
    folder.mkdir(exist_ok=True)
    (folder / "monitor.yaml").write_text(f"judge: {{{judge}}}\n", encoding="utf-8")
    return Settings(_env_file=None, config=folder, judge_api_key="k"), folder


async def test_its_version_is_the_one_it_would_have_as_the_live_judge(tmp_path: Path) -> None:
    """So its series go on when it is made the live one, and the monitor is not blind for a week."""
    settings, folder = policy_of(
        tmp_path / "before",
        "backend: llm, model: a, temperature: 0.2, fallback: {backend: rules}, cascade: {model: big}, "
        "shadow: {model: b, presentation: single, budget: {tokens_per_day: 5}}",
    )
    services = shadow_services(settings, load_policy(folder))
    later, promoted = policy_of(
        tmp_path / "after", "backend: llm, model: b, temperature: 0.2, presentation: single"
    )

    live = build_judge(later, load_policy(promoted))

    assert services.judge.identity.version == live.identity.version
    wanted = services.policy.monitor.judge
    assert (wanted.fallback, wanted.cascade.model, wanted.budget.tokens_per_day) == (None, None, 5)
    assert services.second is None
    await services.close()


def test_the_live_judge_over_again_is_no_trial(tmp_path: Path) -> None:
    """It would be paid twice, and enter the series of the live one."""
    settings, folder = policy_of(tmp_path, "backend: llm, model: a, shadow: {concurrency: 2}")
    with pytest.raises(ConfigError, match=r"judge\.shadow: it is the live judge over again"):
        shadow_services(settings, load_policy(folder))

    _, folder = policy_of(tmp_path, "backend: rules")
    with pytest.raises(ConfigError, match=r"judge\.shadow: missing"):
        shadow_services(settings, load_policy(folder))


def test_a_rubric_on_trial_is_another_judge(tmp_path: Path) -> None:
    settings, folder = policy_of(tmp_path, "backend: rules, shadow: {backend: rules, rubric: next.yaml}")
    (folder / "next.yaml").write_text(
        "dimensions: [{name: charm, question: Is it charming, anchors: {5: a, 4: b, 3: c, 2: d, 1: e}}]"
    )
    policy = load_policy(folder)
    wanted = shadow_of(policy)

    assert wanted is not None
    assert wanted.rubric.names == ("charm",)
    assert build_judge(settings, wanted).identity.version != build_judge(settings, policy).identity.version


async def test_its_process_is_its_own_and_its_end_silences_no_watchdog(tmp_path: Path) -> None:
    """A trial that dies must cost the live judge nothing, not even its sign of life."""
    settings, folder = policy_of(tmp_path, "backend: rules, shadow: {backend: rules, rubric: next.yaml}")
    (folder / "next.yaml").write_text(
        "dimensions: [{name: charm, question: Is it charming, anchors: {5: a, 4: b, 3: c, 2: d, 1: e}}]"
    )
    settings = settings.model_copy(update={"data_dir": tmp_path / "data"})
    services = shadow_services(settings, load_policy(folder))
    stage = build_stage("shadow", services, {})
    together = CliRunner().invoke(app, ["work", "judge", "shadow"])

    assert list(stage.app.agents) == ["shadow"]
    assert stage.app.conf.id == f"{settings.namespace}-shadow"
    assert stage.living_name is None
    assert together.exit_code == 2
    assert "shadow runs in a process of its own" in " ".join(together.stderr.split())
    await services.close()
