"""The outbox with time as an argument: order, pauses, an hour of silence, giving up, and two notifiers at once."""

from datetime import datetime, timedelta

import pytest

from monitor.adapters.memory_alerts import MemoryAlertStore, MemoryReceiver
from monitor.adapters.memory_groups import MemoryGroupStore
from monitor.alerting.alert import AlertState
from monitor.alerting.delivery import PER_ROUND, Round, deliver_waiting, next_due
from monitor.alerting.group import Group, GroupChange
from monitor.alerting.notification import GroupNotification, WaitingNotification
from monitor.alerting.receiver import Delivered, Delivery, Pace, Undelivered
from monitor.alerting.trouble import record_trouble
from monitor.detection.finding import FindingKind
from tests.judgments import HOUR, MINUTE, NOON
from tests.notifications import a_group, an_alert

SECOND = timedelta(seconds=1)
START = a_group().at
DOWN = Undelivered(receiver="pager", reason="HTTP 503", retry=True)
REFUSED = Undelivered(receiver="pager", reason="HTTP 400", retry=False)


class House:
    """An outbox with two receivers, and a clock that only the test moves."""

    def __init__(self) -> None:
        self.alerts = MemoryAlertStore()
        self.groups = MemoryGroupStore()
        self.pager = MemoryReceiver("pager", pace=Pace(first_seconds=30, most_seconds=600))
        self.console = MemoryReceiver("console")
        self.now = START
        self.versions: dict[str, int] = {}

    async def put(self, notification: GroupNotification) -> None:
        version = self.versions.get(notification.group_id, 0) + 1
        self.versions[notification.group_id] = version
        group = Group(
            id=notification.group_id,
            version=version,
            route="{}",
            receiver=notification.receiver,
            key=notification.group_key,
            labels=notification.group_labels,
            next_at=self.now,
        )
        assert await self.groups.commit_group(GroupChange(group=group, notification=notification))

    async def round(self) -> Round:
        done = await deliver_waiting(
            self.groups,
            {"pager": self.pager, "console": self.console},
            now=self.now,
            give_up_after=timedelta(hours=24),
        )
        await record_trouble(self.alerts, self.groups, done, now=self.now, alert_after=10 * MINUTE)
        return done

    async def run(self, span: timedelta, *, every: timedelta = SECOND) -> None:
        end = self.now + span
        while self.now < end:
            await self.round()
            self.now += every

    async def trouble(self) -> tuple[AlertState, str] | None:
        found = [one for one in await self.alerts.all() if one.kind is FindingKind.DELIVERY]
        return (found[0].state, found[0].finding.reason) if found else None

    def told(self) -> list[str]:
        return [one.id for one in self.pager.told]


def to_pager(version: int = 1, group: str = "g1", *, resolved: bool = False, at: datetime = START) -> object:
    return a_group(
        an_alert(resolved=resolved), version=version, group=group, receiver="pager", after=at - START
    )


async def put(house: House, *notifications: object) -> None:
    for one in notifications:
        await house.put(one)  # type: ignore[arg-type]


async def test_what_is_delivered_leaves_and_is_not_sent_again() -> None:
    """At least once, and once where nothing goes wrong."""
    house = House()
    await put(house, to_pager())

    await house.run(5 * SECOND)

    assert house.told() == ["g1-1"]
    assert await house.groups.waiting_count() == 0
    assert await house.trouble() is None


async def test_a_receiver_down_for_an_hour_loses_nothing_and_is_not_hammered() -> None:
    """Nobody is paged twice for it, the other route hears of it, and the order of a group stays."""
    house = House()
    house.pager.answer = DOWN
    await put(house, to_pager(1), to_pager(1, "g2"), to_pager(1, "g3"))
    await put(house, a_group(receiver="console", group="c"))
    await house.run(30 * MINUTE)
    await put(house, to_pager(2, resolved=True, at=house.now))
    await house.run(30 * MINUTE)
    tries = len(house.pager.told)
    assert len(house.console.told) == 1
    state, reason = await house.trouble() or (None, "")
    assert state is AlertState.FIRING
    assert "3 notifications wait, the oldest for 10 min: HTTP 503" in reason

    house.pager.told.clear()
    house.pager.answer = Delivered(receiver="pager")
    await house.run(11 * MINUTE)

    assert sorted(house.told()) == ["g1-1", "g1-2", "g2-1", "g3-1"]
    assert house.told().index("g1-1") < house.told().index("g1-2")
    assert 10 < tries < 40
    assert await house.groups.waiting_count() == 0
    assert (await house.trouble() or (None,))[0] is AlertState.RESOLVED


async def test_a_resolve_never_overtakes_its_trigger() -> None:
    """PagerDuty would drop the resolve, open the incident after it, and keep it open for ever."""
    house = House()
    house.pager.answer = DOWN
    await put(house, to_pager(1))
    await house.round()
    await put(house, to_pager(2, resolved=True, at=house.now + SECOND))
    house.pager.answer = Delivered(receiver="pager")

    house.now += 2 * SECOND
    await house.round()
    assert house.told() == ["g1-1"]
    await house.run(MINUTE)

    assert house.told() == ["g1-1", "g1-1", "g1-2"]


async def test_a_receivers_own_wish_for_a_pause_is_heard() -> None:
    """Retry-After comes from whoever knows."""
    house = House()
    house.pager.answer = Undelivered(receiver="pager", reason="HTTP 429", retry=True, retry_after_seconds=120)
    await put(house, to_pager())
    await house.round()
    house.pager.answer = Delivered(receiver="pager")

    await house.run(119 * SECOND)
    assert len(house.pager.told) == 1
    await house.run(3 * SECOND)
    assert len(house.pager.told) == 2


async def test_a_refusal_is_given_up_at_once_and_told_by_another_route() -> None:
    """F9: delivery failure itself alerts. Never a 400 twice."""
    house = House()
    house.pager.answer = REFUSED
    await put(house, to_pager())

    await house.run(10 * SECOND)

    assert len(house.pager.told) == 1
    assert await house.groups.waiting_count() == 0
    state, reason = await house.trouble() or (None, "")
    assert state is AlertState.FIRING
    assert reason == (
        "1 notifications given up (HTTP 400): g1-1 (firing: safety misses its gate for bot (production))"
    )


async def test_one_poisonous_message_does_not_stop_the_others() -> None:
    """A service that answers 500 to one body is not down."""

    class Picky(MemoryReceiver):
        async def deliver(self, notification: GroupNotification) -> Delivery:
            await super().deliver(notification)
            return DOWN if notification.group_id == "poison" else Delivered(receiver="pager")

    house = House()
    house.pager = Picky("pager")
    await put(house, to_pager(1, "poison"), *(to_pager(1, f"g{n}") for n in range(5)))

    await house.round()

    assert sorted(house.told()) == ["g0-1", "g1-1", "g2-1", "g3-1", "g4-1", "poison-1"]
    assert await house.groups.waiting_count() == 1


async def test_what_nobody_took_for_a_day_is_given_up_and_said() -> None:
    """Stated, counted and told; and the outbox does not grow for ever."""
    house = House()
    house.pager.answer = DOWN
    await put(house, to_pager())

    await house.run(23 * HOUR, every=MINUTE)
    assert await house.groups.waiting_count() == 1
    await house.run(2 * HOUR, every=MINUTE)

    assert await house.groups.waiting_count() == 0
    assert "1 notifications given up (HTTP 503)" in (await house.trouble() or ("", ""))[1]


async def test_two_notifiers_at_once_send_doubles_under_one_id() -> None:
    """The receiver tells the double by its id; nothing is lost between them."""
    house = House()
    await put(house, *(to_pager(1, f"g{n}") for n in range(5)))
    seen = await house.groups.waiting(house.now, 100)
    await house.round()
    other = House()
    other.groups, other.alerts, other.pager = house.groups, house.alerts, house.pager
    for one in seen:
        assert await other.pager.deliver(one.notification) == Delivered(receiver="pager")
        await other.groups.finish_notifications([one.id])
        await other.groups.postpone(one)

    assert sorted(house.told()) == sorted([f"g{n}-1" for n in range(5)] * 2)
    assert await house.groups.waiting_count() == 0


async def test_a_round_is_bounded() -> None:
    """A storm must not keep one round going for an hour."""
    house = House()
    await put(house, *(to_pager(1, f"g{n:03}") for n in range(50)))

    assert len((await house.round()).attempts) == PER_ROUND
    await house.run(5 * SECOND)
    assert len(set(house.told())) == 50


async def test_a_receiver_that_left_the_configuration_is_reported() -> None:
    """Its notifications would wait for ever."""
    house = House()
    await put(house, a_group(receiver="gone"))

    done = await house.round()

    assert [attempt.given_up for attempt in done.unknown] == [True]
    assert await house.groups.waiting_count() == 0
    assert await house.trouble() is None


async def test_a_kill_before_the_record_gives_up_once_more_and_loses_no_alert() -> None:
    """The alert is written before the entry is let go of."""
    house = House()
    house.pager.answer = REFUSED
    await put(house, to_pager())
    await deliver_waiting(
        house.groups, {"pager": house.pager}, now=house.now, give_up_after=timedelta(hours=24)
    )
    assert await house.groups.waiting_count() == 1

    await house.round()

    assert len(house.pager.told) == 2
    assert await house.trouble() is not None


@pytest.mark.parametrize(
    ("attempts", "least", "most"), [(0, 22, 38), (1, 45, 75), (9, 450, 750), (99, 450, 750)]
)
def test_pauses_double_up_to_a_limit_and_are_spread(attempts: int, least: float, most: float) -> None:
    """A thousand notifications must not come back in one second."""
    pace = Pace(first_seconds=30, most_seconds=600)
    pauses = {
        (next_due(one, DOWN, pace, now=NOON) - NOON).total_seconds()
        for one in (
            WaitingNotification(
                notification=a_group(group=f"g{n}", receiver="pager"), attempts=attempts, due_at=NOON
            )
            for n in range(50)
        )
    }

    assert least <= min(pauses) < max(pauses) <= most
    assert len(pauses) > 40


def test_no_receiver_may_ask_for_a_day() -> None:
    """A wrong clock in a Retry-After must not silence the pager."""
    asked = Undelivered(receiver="pager", reason="HTTP 429", retry=True, retry_after_seconds=86_400)
    waiting = WaitingNotification(notification=a_group(), due_at=NOON)

    assert next_due(waiting, asked, Pace(), now=NOON) == NOON + HOUR
