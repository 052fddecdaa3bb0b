"""A model that is changed behind its name, on a real endpoint and a real Redis: its judge is told of, nothing else."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis.asyncio
from pydantic import SecretStr

from agents.anchors import build_rounds, live_anchors, load_anchors
from agents.services import Services, build_services
from monitor.alerting.alert import AlertState
from monitor.clock import ClockKind
from monitor.detection.finding import FindingKind
from monitor.pipeline import Pipeline
from monitor.policy import load_policy
from monitor.settings import Settings
from tests.events import HOUR, MINUTE, NOON
from tests.judgments import a_judgment
from tests.servers.stub_judge import StubJudge, serving
from tests.world import IDENTITY, World

COUNT = 24


class Shifting(StubJudge):
    """Scores all answers 5, and those on safety a point less once it has drifted."""

    drifted = False

    def score(self, prompt: str, name: str) -> int:
        del prompt
        return 4 if self.drifted and name == "safety" else 5


@pytest.fixture
async def stub() -> AsyncIterator[Shifting]:
    async with serving(Shifting()) as found:
        assert isinstance(found, Shifting)
        yield found


@pytest.fixture
async def services(stub: Shifting, tmp_path: Path, valkey: redis.asyncio.Redis) -> AsyncIterator[Services]:
    lines = [
        {
            "id": f"a{number}",
            "messages": [
                {"role": "user", "content": f"Question {number}?"},
                {"role": "assistant", "content": f"Answer {number}."},
            ],
        }
        for number in range(COUNT)
    ]
    (tmp_path / "anchors.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "monitor.yaml").write_text(
        f"judge: {{backend: llm, model: stub, base_url: '{stub.url}', anchors: {{per_round: {COUNT}}}}}\n"
    )
    port = valkey.connection_pool.connection_kwargs["port"]
    settings = Settings(
        _env_file=None,
        namespace="drift",
        config=tmp_path,
        judge_api_key=SecretStr("key"),
        redis=f"redis://127.0.0.1:{port}/0",
    )
    found = build_services(settings, load_policy(tmp_path))
    await found.stores.start()
    yield found
    await found.close()


async def test_a_drift_of_the_judge_is_told_and_no_quality_alert_comes_of_the_anchors(
    stub: Shifting, services: Services
) -> None:
    """Whoever is on call must not look for a fault of the assistant."""
    world = World(clock=ClockKind.WALL)
    services.now = lambda: world.now
    rounds = build_rounds(services, load_anchors(services.settings, services.policy))
    live = live_anchors(services)
    assert live is not None
    pipeline = Pipeline(replace(world.ports, anchors=live), world.policy, world.sender)
    for quarter in range(4 * 7):
        world.now = NOON + quarter * 15 * MINUTE
        stub.drifted = quarter >= 4 * 3
        batch = [
            a_judgment(f"c-{quarter}-{number}", at=world.now, judge_version=IDENTITY.version)
            for number in range(20)
        ]
        await world.windows.apply(batch, now=world.now)
        await rounds()
        await pipeline.evaluate()

    assert stub.drawn["ok"] == 7 * COUNT
    (alert,) = await world.alerts.all()
    assert (alert.kind, alert.state) == (FindingKind.JUDGE, AlertState.FIRING)
    assert "points on safety since 2026-03-10 15:00 UTC" in alert.finding.reason
    assert {figure.name for figure in alert.finding.figures} == {"shift of safety"}

    known = await live.read(NOON + 7 * HOUR)
    assert {name: shift.n for name, shift in known.shifts.items()}["safety"] == COUNT
    assert -1 < known.shifts["safety"].mean < -0.5
    assert all(shift.mean == 0 for name, shift in known.shifts.items() if name != "safety")
    # The anchors are no traffic.
    assert await services.stores.windows.scopes() == ()
    assert await services.stores.conversations.funnel() == {}
