"""What every change log must do: the twin and the real thing alike."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from monitor.adapters.memory_changes import MemoryChanges
from monitor.adapters.redis_changes import RedisChanges
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.alerting.changes import Aspect, ChangeLog, Sighting, changes_near, sightings_of
from monitor.intake.event import ChangeEvent, ChangeKind, Environment
from tests.judgments import HOUR, NOON, a_failure, a_judgment
from tests.servers.valkey import absent_valkey


@pytest.fixture(params=["memory", "valkey"])
def log(request: pytest.FixtureRequest) -> ChangeLog:
    if request.param == "memory":
        return MemoryChanges(events_max=10, sightings_max=4)
    return RedisChanges(request.getfixturevalue("valkey"), Keys("test"), events_max=10, sightings_max=4)


def a_change(name: str, at: datetime = NOON, *, assistant: str | None = None, **more: object) -> ChangeEvent:
    return ChangeEvent.model_validate(
        {
            "event_id": name,
            "kind": ChangeKind.DEPLOY,
            "occurred_at": at,
            "title": name,
            "assistant": assistant,
        }
        | more
    )


def a_sighting(
    value: str, first: datetime, last: datetime | None = None, *, aspect: Aspect = Aspect.PROMPT
) -> Sighting:
    return Sighting(
        assistant="bot",
        environment=Environment.PRODUCTION,
        aspect=aspect,
        value=value,
        first_at=first,
        last_at=last or first,
    )


async def near(log: ChangeLog, onset: datetime = NOON) -> tuple[Sequence[str], Sequence[str]]:
    found = await changes_near(
        log, assistant="bot", environment=Environment.PRODUCTION, onset=onset, until=onset + HOUR
    )
    return [event.event_id for event in found.events], [one.value for one in found.sightings]


class TestChangeLog:
    async def test_an_event_that_comes_twice_is_kept_once(self, log: ChangeLog) -> None:
        """A deployment pipeline repeats what it was not sure to have said."""
        await log.record([a_change("a"), a_change("b", NOON + HOUR)])
        await log.record([a_change("a"), a_change("b", NOON - HOUR)])

        assert [event.event_id for event in await log.events(NOON - HOUR, NOON)] == ["b", "a"]
        assert await log.events(NOON + HOUR, NOON + 2 * HOUR) == ()

    async def test_the_oldest_events_go_first(self, log: ChangeLog) -> None:
        """A pipeline that announces every commit must not fill the memory."""
        await log.record([a_change(f"{n:02}", NOON + n * HOUR) for n in range(15)])

        kept = await log.events(NOON, NOON + 100 * HOUR)
        assert [event.event_id for event in kept] == [f"{n:02}" for n in range(5, 15)]

    async def test_the_first_sighting_is_the_earliest_whatever_the_order(self, log: ChangeLog) -> None:
        """Partitions drift apart, and a replay of old traffic comes late."""
        await log.sight([a_sighting("old=1", NOON)])
        await log.sight([a_sighting("old=1", NOON + HOUR)])
        await log.sight([a_sighting("old=1", NOON - HOUR)])

        [one] = await log.sightings("bot", Environment.PRODUCTION)
        assert one == a_sighting("old=1", NOON - HOUR, NOON + HOUR)
        assert await log.sightings("bot", Environment.STAGING) == ()

    async def test_what_still_serves_never_becomes_new_again(self, log: ChangeLog) -> None:
        """A hash that changes with each call must not push out the prompt that serves everybody."""
        await log.sight([a_sighting("serves", NOON - 100 * HOUR, NOON + 100 * HOUR)])
        await log.sight([a_sighting(f"noise {n}", NOON + n * HOUR) for n in range(20)])

        kept = await log.sightings("bot", Environment.PRODUCTION)
        assert [one.value for one in kept] == ["serves", "noise 17", "noise 18", "noise 19"]

    async def test_the_first_value_of_all_is_no_change(self, log: ChangeLog) -> None:
        """On its first day a monitor would call everything new."""
        await log.sight([a_sighting("first", NOON - 2 * HOUR), a_sighting("second", NOON - HOUR)])
        await log.sight([a_sighting("x", NOON - HOUR, aspect=Aspect.INDEX)])

        assert (await near(log))[1] == ["second"]

    async def test_changes_are_those_of_the_assistant_near_the_onset(self, log: ChangeLog) -> None:
        """Another team's deployment is no suspect, an announcement for all is."""
        await log.record(
            [
                a_change("mine", NOON - HOUR, assistant="bot"),
                a_change("everybody's", NOON - 2 * HOUR),
                a_change("another's", NOON - HOUR, assistant="other"),
                a_change("staging's", NOON - HOUR, environment="staging"),
                a_change("last week's", NOON - 100 * HOUR),
                a_change("later", NOON + 2 * HOUR),
            ]
        )

        assert (await near(log))[0] == ["everybody's", "mine"]

    async def test_nothing_is_nothing(self, log: ChangeLog) -> None:
        """Most batches hold no change at all."""
        await log.record([])
        await log.sight([])
        assert await near(log) == ([], [])


def test_records_show_their_configuration() -> None:
    """A failure of the judge was served by a configuration as well."""
    seen = sightings_of([a_judgment("a", at=NOON + HOUR), a_failure("b"), a_judgment("c", prompt_hash="new")])

    assert [(one.aspect, one.value, one.first_at, one.last_at) for one in seen] == [
        (Aspect.PROMPT, "aa11", NOON, NOON + HOUR),
        (Aspect.JUDGE, "rules (j1)", NOON, NOON + HOUR),
        (Aspect.RUBRIC, "r1", NOON, NOON + HOUR),
        (Aspect.PROMPT, "new", NOON, NOON),
    ]


async def test_an_absent_server_is_said_in_our_words() -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = absent_valkey()
    changes = RedisChanges(client, Keys("test"))
    with pytest.raises(StoreUnavailable):
        await changes.events(NOON, NOON)
    with pytest.raises(StoreUnavailable):
        await changes.sightings("bot", Environment.PRODUCTION)
    await client.aclose()
