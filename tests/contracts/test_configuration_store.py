"""What every registry of configurations must do: the twin and the real thing alike."""

from datetime import datetime

import pytest

from monitor.adapters.memory_configurations import MemoryConfigurations
from monitor.adapters.redis_configurations import RedisConfigurations
from monitor.adapters.redis_keys import Keys
from monitor.detection.registry import (
    VARIOUS,
    ConfigurationPolicy,
    ConfigurationStore,
    Registered,
    Served,
    sights_of,
)
from monitor.intake.event import Environment, ServedBy
from monitor.judging.health import HOUR
from monitor.judging.judgment import Record
from monitor.judging.rubric import TargetKind
from tests.judgments import MINUTE, NOON, a_failure, a_judgment

POLICY = ConfigurationPolicy()


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> ConfigurationStore:
    if request.param == "memory":
        return MemoryConfigurations(fields_max=3)
    # Its function is loaded by the first call that misses it.
    return RedisConfigurations(request.getfixturevalue("valkey"), Keys("test"), fields_max=3)


def served(prompt: str, conversation: str, at: datetime = NOON, *, rate: float | None = 1.0) -> Record:
    by = ServedBy(model_asked="big", model_answered="big-0613", prompt_hash=prompt)
    judgment = a_judgment(conversation, at=at, rate=rate)
    return type(judgment).model_validate(dict(judgment) | {"served_by": by})


def named(prompt: str) -> Served:
    values = (
        ("model_asked", "big"),
        ("model_answered", "big-0613"),
        ("prompt_hash", prompt),
        ("retrieval_version", ""),
    )
    return Served("support-bot", Environment.PRODUCTION, values)


def an_entry(prompt: str, *, at: datetime = NOON, by: str = "j.doe") -> Registered:
    return Registered(
        assistant="support-bot", values={"model_asked": "big", "prompt_hash": prompt}, by=by, at=at
    )


class TestConfigurations:
    async def test_an_entry_that_comes_again_replaces_itself(self, store: ConfigurationStore) -> None:
        """An offline evaluation runs again and again; the last word counts, and once."""
        first, again, other = an_entry("a"), an_entry("a", by="ci", at=NOON + HOUR), an_entry("b")
        await store.register([first, other])
        await store.register([again])
        await store.register([])

        assert await store.registered() == (other, again)
        assert (await store.remove(other.id), await store.remove(other.id)) == (True, False)
        assert await store.registered() == (again,)

    async def test_a_conversation_counts_once_an_hour_and_configuration(
        self, store: ConfigurationStore
    ) -> None:
        """Every hop is at least once, and several judges may judge one conversation."""
        for _ in range(3):
            await store.count(sights_of([served("a", "c-1", rate=0.25)], POLICY))
        await store.count(sights_of([served("a", "c-2"), served("b", "c-1")], POLICY))
        await store.count([])

        found = await store.served(NOON, NOON + HOUR)

        assert found == {named("a"): (2, 5.0), named("b"): (1, 1.0)}

    async def test_only_the_hours_asked_for_are_read(self, store: ConfigurationStore) -> None:
        """An hour that is touched is read whole."""
        await store.count(sights_of([served("a", "c-1"), served("a", "c-2", NOON - 2 * HOUR)], POLICY))

        assert await store.served(NOON - HOUR, NOON) == {}
        assert await store.served(NOON - 61 * MINUTE, NOON + MINUTE) == {named("a"): (2, 2.0)}

    async def test_configurations_beyond_the_bound_are_counted_under_one_name(
        self, store: ConfigurationStore
    ) -> None:
        """A hash that changes with each call must not fill the memory, and must not stay unseen."""
        await store.count(sights_of([served(f"p{n}", f"c-{n}") for n in range(20)], POLICY))

        found = await store.served(NOON, NOON + HOUR)

        assert found.pop(Served("support-bot", Environment.PRODUCTION, VARIOUS)).n == 17
        assert len(found) == 3


def test_only_conversations_that_stand_for_somebody_are_counted() -> None:
    """A turn is not a conversation, and one that was promoted in its middle has no weight. A failure was served."""
    turn = a_judgment("c-1", kind=TargetKind.TURN)
    partial = a_judgment("c-2", rate=None)
    failure = a_failure("c-3", prompt_hash="z")

    (sight,) = sights_of([turn, partial, failure], POLICY)

    assert dict(sight.served.values)["prompt_hash"] == "z"
