"""What every store of groups must do: the twin and the real thing alike."""

import asyncio

import pytest

from monitor.adapters.memory_groups import MemoryGroupStore
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_groups import RedisGroups
from monitor.adapters.redis_keys import Keys
from monitor.alerting.forgetting import FORGOTTEN
from monitor.alerting.group import Group, GroupChange
from monitor.alerting.group_store import GroupStore
from monitor.alerting.matchers import matcher
from monitor.alerting.notification import GroupNotification, NotificationReason, Status
from monitor.alerting.silence import Silence, a_silence, expired
from tests.judgments import HOUR, MINUTE, NOON
from tests.notifications import a_group as citing
from tests.notifications import an_alert
from tests.servers.valkey import absent_valkey

LATER = NOON + 24 * HOUR


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> GroupStore:
    if request.param == "memory":
        return MemoryGroupStore(silences_max=2)
    return RedisGroups(request.getfixturevalue("valkey"), Keys("test"), silences_max=2)


def a_group(group_id: str = "g", version: int = 1, **fields: object) -> Group:
    return Group.model_validate(
        {
            "id": group_id,
            "version": version,
            "route": "{}",
            "receiver": "a",
            "key": "{}:{}",
            "labels": {"assistant": "bot"},
            "next_at": NOON,
            **fields,
        }
    )


def a_notification(name: str = "n", *, at: int = 0) -> GroupNotification:
    return GroupNotification(
        id=name,
        group_id="g",
        group_key="{}:{}",
        group_labels={},
        receiver="a",
        status=Status.FIRING,
        reason=NotificationReason.FIRST,
        at=NOON + at * MINUTE,
    )


def silenced(author: str = "j.doe", *, hours: int = 1) -> Silence:
    return a_silence(
        (matcher('dimension=~"saf.*"'), matcher('team!="x y"')),
        author=author,
        reason="a new policy, known",
        starts_at=NOON,
        ends_at=NOON + hours * HOUR,
    )


class TestGroupStore:
    async def test_a_committed_group_comes_back_with_its_notification(self, store: GroupStore) -> None:
        """Its state without its message would be a message lost; the reverse one doubled."""
        change = GroupChange(a_group(members=("x",), told_at=NOON), a_notification())

        assert await store.commit_group(change)
        assert await store.groups() == (change.group,)
        [waiting] = await store.waiting(NOON, 10)
        assert waiting.notification == change.notification
        assert waiting.attempts == 0

    async def test_of_two_notifiers_one_wins(self, store: GroupStore) -> None:
        """Leadership is not fenced: both may decide, people hear it once."""
        changes = [GroupChange(a_group(), a_notification(name)) for name in ("one", "two")]

        won = await asyncio.gather(*(store.commit_group(change) for change in changes))

        assert sorted(won) == [False, True]
        assert await store.waiting_count() == 1

    async def test_a_change_from_an_old_version_is_refused(self, store: GroupStore) -> None:
        """It was decided on a state that is not there any more."""
        await store.commit_group(GroupChange(a_group()))

        assert not await store.commit_group(GroupChange(a_group()))
        assert not await store.commit_group(GroupChange(a_group(version=3)))
        assert await store.commit_group(GroupChange(a_group(version=2, next_at=NOON + HOUR)))
        assert [group.next_at for group in await store.groups()] == [NOON + HOUR]

    async def test_a_forgotten_group_is_gone_and_may_begin_anew(self, store: GroupStore) -> None:
        """Groups come and go with the values of their labels; only those with something to remember stay."""
        await store.commit_group(GroupChange(a_group("b")))
        await store.commit_group(GroupChange(a_group("a")))
        assert [group.id for group in await store.groups()] == ["a", "b"]

        assert await store.commit_group(GroupChange(a_group("a", version=2), forget=True))
        assert [group.id for group in await store.groups()] == ["b"]
        assert await store.commit_group(GroupChange(a_group("a")))

    async def test_what_is_not_due_waits(self, store: GroupStore) -> None:
        """A receiver that asked for patience is not asked again at once."""
        for number, name in enumerate(("late", "early")):
            change = GroupChange(a_group(name), a_notification(name, at=5 - number))
            await store.commit_group(change)

        assert [one.id for one in await store.waiting(NOON + HOUR, 10)] == ["early", "late"]
        assert [one.id for one in await store.waiting(NOON + HOUR, 1)] == ["early"]
        assert await store.waiting(NOON, 10) == ()

        first = (await store.waiting(NOON + HOUR, 1))[0]
        later = first.model_copy(update={"attempts": 1, "due_at": NOON + 2 * HOUR, "last_error": "503"})
        await store.postpone(later)
        assert [one.id for one in await store.waiting(NOON + HOUR, 10)] == ["late"]
        assert (await store.waiting(NOON + 3 * HOUR, 10))[1] == later
        assert await store.waiting_count() == 2

    async def test_a_finished_notification_stays_finished(self, store: GroupStore) -> None:
        """Of two notifiers the slower must not bring back what the faster has delivered."""
        await store.commit_group(GroupChange(a_group(), a_notification()))
        [waiting] = await store.waiting(NOON, 10)

        await store.finish_notifications([waiting.id, "unknown"])
        await store.finish_notifications([])
        await store.postpone(waiting)

        assert await store.waiting_count() == 0
        assert await store.waiting(NOON + HOUR, 10) == ()

    async def test_forgetting_reaches_what_waits_and_no_try_brings_it_back(self, store: GroupStore) -> None:
        """A receiver may be down for a day; a person's words must not wait for it."""
        told = citing(an_alert())
        await store.commit_group(GroupChange(a_group("g1", receiver="hook"), told))
        [before] = await store.waiting(LATER, 10)

        assert await store.forget("c-0") == 1
        await store.postpone(before.model_copy(update={"attempts": 1, "last_error": "503"}))

        [after] = await store.waiting(LATER, 10)
        assert (after.id, after.attempts, after.last_error) == (told.id, 1, "503")
        evidence = after.notification.alerts[0].alert.evidence
        assert evidence is not None
        words = {case.conversation_id: (case.reason, case.quotes) for case in evidence.cases}
        assert words["c-0"] == (FORGOTTEN, ())
        assert words["c-1"] == ("promise 1", ("promise 1",) * 3)
        assert await store.forget("c-0") == await store.forget("c-99") == 0

    async def test_a_silence_is_kept_until_long_after_its_end(self, store: GroupStore) -> None:
        """Whoever asks why nobody was told must still find who said so."""
        silence = silenced()
        await store.put_silence(silence)
        await store.put_silence(silence)
        assert await store.silences() == (silence,)

        over = expired(silence, NOON + 5 * MINUTE)
        await store.put_silence(over)
        assert await store.silences() == (over,)
        assert not over.is_active(NOON + 5 * MINUTE)

    async def test_silences_have_a_limit(self, store: GroupStore) -> None:
        """Everything has a limit; what ends first leaves first."""
        for hours in (3, 1, 2):
            await store.put_silence(silenced(hours=hours))

        assert [one.ends_at - NOON for one in await store.silences()] == [2 * HOUR, 3 * HOUR]


async def test_an_absent_server_is_said_in_our_words() -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = absent_valkey()
    groups = RedisGroups(client, Keys("test"))
    with pytest.raises(StoreUnavailable):
        await groups.groups()
    with pytest.raises(StoreUnavailable):
        await groups.waiting(NOON, 1)
    await client.aclose()
