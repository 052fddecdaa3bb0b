"""The whole hop NOTIFY on a real Valkey under a storm: bounded messages, nothing lost, what was held back counted.

Only the clock is the test's. The shipped routes decide who is told.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import pytest
import redis.asyncio

from monitor.adapters.memory import MemoryPublisher
from monitor.adapters.memory_alerts import MemoryReceiver
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_groups import RedisGroups
from monitor.adapters.redis_keys import Keys
from monitor.alerting.alert import Alert, AlertState, Transition, changed
from monitor.alerting.group import GROUPS_MAX
from monitor.alerting.notification import ALERTS_MAX, GroupNotification, NotificationReason, Status
from monitor.alerting.receiver import Delivered, Notification, Undelivered
from monitor.alerting.routing import RoutingPolicy
from monitor.detection.finding import FindingKind
from monitor.hops.notify import Notify
from monitor.policy import load_policy
from tests.groups import SECOND, a_firing, routing
from tests.judgments import HOUR, MINUTE, NOON

FINDINGS = 2000
KEYS = Keys("storm")
PAGER_AND_CHAT = """
route:
  receiver: b
  routes:
    - {matchers: [finding=delivery], receiver: b}
    - {matchers: [severity=page], receiver: a, group_by: [assistant]}
"""


def storm(number: int) -> dict[str, str]:
    return {
        "assistant": f"bot{number % 4}",
        "environment": "production",
        "dimension": "safety",
        "severity": "page",
        "segment": f"intent={number}",
    }


class House:
    """One store, any number of notifiers, and a clock that only the test moves."""

    def __init__(
        self, client: redis.asyncio.Redis, policy: RoutingPolicy, receivers: tuple[str, ...]
    ) -> None:
        self.client = client
        self.policy = policy
        self.now = NOON
        self.alerts = RedisAlerts(client, KEYS)
        self.groups = RedisGroups(client, KEYS)
        self.published = MemoryPublisher()
        self.receivers = {name: MemoryReceiver(name) for name in receivers}
        self.known: dict[str, Alert] = {}

    async def start(self) -> None:
        await self.alerts.start()
        await self.groups.start()

    def notifier(self) -> Notify:
        """Return a notifier that has just been started: it knows nothing but what is stored."""
        return Notify(
            alerts=RedisAlerts(self.client, KEYS),
            groups=RedisGroups(self.client, KEYS),
            receivers=self.receivers,
            routing=self.policy,
            publisher=self.published,
            prefix="",
            now=lambda: self.now,
        )

    async def fire(self, *labels: Mapping[str, str]) -> None:
        for one in labels:
            await self._commit(self._fired(one))

    async def resolve(self, labels: Mapping[str, str]) -> None:
        alert = self.known[a_firing(labels).fingerprint]
        over = {"state": AlertState.RESOLVED, "resolved_at": self.now}
        await self._commit(changed(alert, self.now, "over", notify=True, **over))

    async def run(self, span: timedelta, *notifiers: Notify, every: timedelta = SECOND) -> None:
        """Let the notifiers tick at the same moments, at once."""
        end = self.now + span
        while self.now < end:
            await asyncio.gather(*(one() for one in notifiers))
            self.now += every

    def told(self, receiver: str) -> list[GroupNotification]:
        """Return what a receiver was told, a double once: it has the same id."""
        return list({one.id: one for one in self.receivers[receiver].told}.values())

    def recorded(self) -> set[str]:
        return {Notification.model_validate_json(one.value or b"").id for one in self.published.sent}

    def _fired(self, labels: Mapping[str, str]) -> Transition:
        found = a_firing(labels, at=self.now).alert
        before = self.known.get(found.fingerprint)
        version = before.version if before else 0
        alert = found.model_copy(update={"version": version, "state": AlertState.PENDING})
        return changed(alert, self.now, "fails", notify=True, state=AlertState.FIRING, fired_at=self.now)

    async def _commit(self, transition: Transition) -> None:
        assert await self.alerts.commit(transition)
        self.known[transition.alert.fingerprint] = transition.alert


@pytest.fixture
async def shipped(valkey: redis.asyncio.Redis) -> House:
    house = House(valkey, load_policy().routing, ("console",))
    await house.start()
    return house


@pytest.fixture
async def pager(valkey: redis.asyncio.Redis) -> House:
    house = House(valkey, routing(PAGER_AND_CHAT), ("a", "b"))
    await house.start()
    return house


async def test_a_storm_with_two_notifiers_and_a_restart_is_few_messages_and_loses_none(
    shipped: House,
) -> None:
    """2,000 findings in a minute, one of them on all traffic; one notifier is killed in the middle of its work."""
    one, other = shipped.notifier(), shipped.notifier()
    everything = storm(0) | {"segment": "*"}
    await shipped.fire(everything)
    for second in range(0, 60, 5):
        begin, end = (FINDINGS * at // 60 for at in (second, second + 5))
        await shipped.fire(*map(storm, range(begin, end)))
        await asyncio.gather(one(), other())
        if second == 30:
            killed = asyncio.create_task(other())
            await asyncio.sleep(0.01)
            killed.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await killed
            other = shipped.notifier()
        shipped.now += 5 * SECOND
    await shipped.run(11 * MINUTE, one, other, every=100 * SECOND)

    told = shipped.told("console")
    latest = {group.group_labels["assistant"]: group for group in told}
    assert len(told) <= 12
    assert max(Counter(each.id for each in shipped.receivers["console"].told).values()) <= 2
    assert {name: group.firing for name, group in latest.items()} == {
        "bot0": 1,
        "bot1": 500,
        "bot2": 500,
        "bot3": 500,
    }
    assert all(len(group.alerts) + group.truncated == group.firing for group in told)
    assert all(len(group.alerts) <= ALERTS_MAX for group in told)
    # What was muted is counted by the next message of its group.
    await shipped.fire(storm(0) | {"dimension": "policy"})
    await shipped.run(6 * MINUTE, one, other, every=100 * SECOND)
    assert (shipped.told("console")[-1].firing, shipped.told("console")[-1].suppressed) == (2, 500)
    # The topic has every change, and nothing waits.
    assert len(shipped.recorded()) == FINDINGS + 2
    assert await shipped.groups.waiting_count() == 0
    assert await shipped.alerts.outbox(1) == ()
    assert len(await shipped.groups.groups()) <= GROUPS_MAX


async def test_an_alert_that_flaps_for_an_hour_is_told_at_most_once_an_interval(pager: House) -> None:
    """Sixty firings and sixty ends are a dozen messages, and the last of them is the truth."""
    one, other = pager.notifier(), pager.notifier()
    for _ in range(60):
        await pager.fire(storm(1))
        await pager.run(40 * SECOND, one, other, every=10 * SECOND)
        await pager.resolve(storm(1))
        await pager.run(20 * SECOND, one, other, every=10 * SECOND)
    await pager.run(6 * MINUTE, one, other, every=30 * SECOND)

    told = pager.told("a")
    assert 2 <= len(told) <= 13
    assert told[-1].status is Status.RESOLVED


async def test_a_clock_that_jumps_tells_once_and_loses_nothing(pager: House) -> None:
    """Two days ahead is one reminder; a year back keeps nobody waiting for a year."""
    notifier = pager.notifier()
    await pager.fire(storm(1))
    await pager.run(MINUTE, notifier, every=10 * SECOND)
    pager.now += 48 * HOUR
    await pager.run(2 * MINUTE, notifier, every=10 * SECOND)
    assert [one.reason for one in pager.told("a")] == [NotificationReason.FIRST, NotificationReason.REPEAT]

    pager.now -= timedelta(days=365)
    await notifier()
    await pager.fire(storm(5))
    await pager.run(6 * MINUTE, pager.notifier(), every=10 * SECOND)

    assert [one.firing for one in pager.told("a")] == [1, 1, 2]
    assert await pager.groups.waiting_count() == 0


async def test_a_pager_that_is_down_for_an_hour_hears_each_message_once(pager: House) -> None:
    """What waited comes in its order when it is back, and meanwhile somebody else hears that it is down."""
    down = Undelivered(receiver="a", reason="HTTP 503", retry=True)
    device = pager.receivers["a"]
    device.answer = down
    begin: datetime = pager.now
    await pager.fire(storm(1), storm(2))
    await pager.run(30 * MINUTE, pager.notifier(), every=20 * SECOND)
    await pager.fire(storm(5))
    await pager.run(30 * MINUTE, pager.notifier(), every=20 * SECOND)
    assert FindingKind.DELIVERY in {one.alerts[0].alert.kind for one in pager.told("b")}
    tried = len(device.told)
    assert tried < 60, "it is left alone between tries"

    device.answer = Delivered(receiver="a")
    await pager.run(15 * MINUTE, pager.notifier(), every=20 * SECOND)

    after = device.told[tried:]
    of = {
        name: [one.firing for one in after if one.group_labels["assistant"] == name]
        for name in ("bot1", "bot2")
    }
    assert of == {"bot1": [1, 2], "bot2": [1]}
    assert max(Counter(one.id for one in after).values()) == 1
    assert all(one.at < begin + HOUR for one in after)
    assert await pager.groups.waiting_count() == 0
    assert pager.told("b")[-1].status is Status.RESOLVED
