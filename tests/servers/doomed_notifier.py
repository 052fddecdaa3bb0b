"""A notifier that kills itself by SIGKILL at a named point of a round: what a `kill -9` does, at the worst moment.

Run as `python -m tests.servers.doomed_notifier POINT PORT ROUTING`, with a Valkey's port, the routing as JSON and the
receivers' secrets in the environment. Without a point ("never") it goes on until nothing waits, and ends with 0.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

import redis.asyncio

from agents.receivers import build_receivers
from agents.services import wall_now
from monitor.adapters.memory import MemoryPublisher
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_groups import RedisGroups
from monitor.adapters.redis_keys import Keys
from monitor.alerting.receiver import Delivered
from monitor.alerting.routing import RoutingPolicy
from monitor.hops.notify import Notify
from monitor.settings import Settings

POINTS = ("announced", "sent", "recorded")
"""Groups and outbox are written; a receiver has it and the outbox does not know; one entry is finished, others wait."""
KEYS = Keys("kill")
ROUNDS_MAX = 200
PAUSE_SECONDS = 0.05


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _doom(point: str, groups: Any, receivers: Any) -> None:
    commit, finish = groups.commit_group, groups.finish_notifications

    async def committing(change: Any) -> bool:
        done = bool(await commit(change))
        if point == "announced" and done and change.notification is not None:
            _die()
        return done

    async def finishing(ids: Any) -> None:
        await finish(ids)
        if point == "recorded" and ids:
            _die()

    groups.commit_group, groups.finish_notifications = committing, finishing
    for receiver in receivers.values():
        deliver = receiver.deliver

        async def delivering(notification: Any, deliver: Any = deliver) -> Any:
            answer = await deliver(notification)
            if point == "sent" and isinstance(answer, Delivered):
                _die()
            return answer

        receiver.deliver = delivering


async def main(point: str, port: int, routing: RoutingPolicy) -> None:
    """Notify until the point comes, or nothing waits any more."""
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    alerts, groups = RedisAlerts(client, KEYS), RedisGroups(client, KEYS)
    await alerts.start()
    await groups.start()
    receivers = build_receivers(routing, Settings())
    _doom(point, groups, receivers)
    notify = Notify(
        alerts=alerts,
        groups=groups,
        receivers=receivers,
        routing=routing,
        publisher=MemoryPublisher(),
        prefix="",
        now=wall_now,
    )
    quiet = 0
    for _ in range(ROUNDS_MAX):
        attempts = await notify()
        quiet = quiet + 1 if not attempts and not await groups.waiting_count() else 0
        if quiet > 2:
            break
        await asyncio.sleep(PAUSE_SECONDS)
    for receiver in receivers.values():
        await receiver.close()
    await client.aclose()
    raise SystemExit(0 if quiet else 1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), RoutingPolicy.model_validate(json.loads(sys.argv[3]))))
