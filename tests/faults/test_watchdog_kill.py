"""A whole deployment with a dead man's switch: one process is killed, and the switch hears nothing more."""

import asyncio
import signal
import time
from pathlib import Path

import pytest
import yaml

from agents.supervisor import Deployment
from monitor.policy import default_config, load_policy
from monitor.settings import load_settings
from tests.servers.fake_http import FakeHttp

# A minute of waiting for sessions to end: with the other kills that `make faults` runs.
pytestmark = [pytest.mark.embedded, pytest.mark.faults, pytest.mark.timeout(240)]

STALE_SECONDS = 20
START_LIMIT_SECONDS = 90


async def test_killing_a_process_makes_the_switch_fall_silent(tmp_path: Path) -> None:
    """The sampler dies, everything else goes on, and nothing else would ever say so."""
    async with FakeHttp(path="/switch").serving() as switch:
        config = tmp_path / "config"
        config.mkdir()
        routing = yaml.safe_load((default_config() / "routing.yaml").read_text(encoding="utf-8"))
        routing["receivers"]["switch"] = {"type": "webhook", "url": switch.url}
        routing["watchdog"] = {"receiver": "switch", "every_seconds": 5, "stale_seconds": STALE_SECONDS}
        (config / "routing.yaml").write_text(yaml.safe_dump(routing), encoding="utf-8")
        settings = load_settings(
            namespace="watched", config=config, data_dir=tmp_path / "data", log_level="warning"
        )
        deployment = Deployment(
            settings,
            load_policy(config),
            embedded_kafka=True,
            embedded_redis=True,
            log_folder=tmp_path / "logs",
        )
        await asyncio.to_thread(deployment.__enter__)
        try:
            heard = await until_heard(switch, START_LIMIT_SECONDS)
            assert {fields["Idempotency-Key"].partition("-")[0] for fields, _ in heard} == {"watchdog"}

            sampler = next(child for child in deployment._children if child.name == "sample")
            sampler.process.send_signal(signal.SIGKILL)
            await asyncio.sleep(STALE_SECONDS + 6)
            before = len(switch.came)
            await asyncio.sleep(15)

            assert len(switch.came) == before
        finally:
            await asyncio.to_thread(deployment.stop)


async def until_heard(switch: FakeHttp, limit_seconds: float) -> list[tuple[dict[str, str], bytes]]:
    deadline = time.monotonic() + limit_seconds
    while len(switch.came) < 2 and time.monotonic() < deadline:  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(0.2)
    assert len(switch.came) >= 2
    return list(switch.came)
