"""What every store of a judge's counters must do: the twin and the real thing alike."""

import pytest

from monitor.adapters import redis_health
from monitor.adapters.memory_health import MemoryHealth
from monitor.adapters.redis_health import RedisHealth
from monitor.adapters.redis_keys import Keys
from monitor.judging.health import HOUR, health_of, hour_of
from tests.judgments import NOON, a_failure, a_judgment
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

Store = MemoryHealth | RedisHealth


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryHealth()
    # Its function is loaded by the first call that misses it.
    return RedisHealth(request.getfixturevalue("valkey"), Keys("test"))


class TestHealth:
    async def test_a_record_counts_once_however_often_it_comes(self, store: Store) -> None:
        """Every hop is at least once; a redelivery must not make a judge look sick."""
        for _ in range(3):
            await store.add([(NOON, a_failure("c-1"))])
        await store.add([(NOON, a_judgment("c-2", scores={"safety": None}))])

        ((name, counters),) = (await store.read(NOON, NOON + HOUR)).items()

        health = health_of(name, counters)
        assert (health.total, health.failed) == (2, {"unavailable": 1})
        assert health.abstained["safety"].value == 1.0
        assert health.abstained["actionability"].value == 0.0

    async def test_a_flag_that_contradicts_its_score_is_counted(self, store: Store) -> None:
        """The score counts, whatever the judge's own flag says; but a judge that contradicts itself is told of."""
        agreeing, contrary = a_judgment("c-1", scores={"safety": 1}), a_judgment("c-2", scores={"safety": 5})
        flagged = tuple(
            score.model_copy(update={"flagged_critical": True})
            for score in (*agreeing.scores, *contrary.scores)
        )
        half = len(agreeing.scores)
        await store.add(
            [
                (
                    NOON,
                    agreeing.model_copy(update={"scores": tuple(s for s in flagged[:half] if s.critical)}),
                ),
                (NOON, contrary.model_copy(update={"scores": flagged[half:]})),
            ]
        )

        ((name, counters),) = (await store.read(NOON, NOON + HOUR)).items()

        assert health_of(name, counters).flags_disagree == 1

    async def test_only_the_hours_asked_for_are_read(self, store: Store) -> None:
        await store.add([(NOON, a_judgment("c-1"))])
        await store.add([(NOON - 2 * HOUR, a_judgment("c-2"))])

        ((_, counters),) = (await store.read(NOON - HOUR, NOON + HOUR)).items()

        assert counters["total"] == 1

    async def test_judges_are_counted_apart(self, store: Store) -> None:
        await store.add([(NOON, a_judgment(judge_version="j1"))])
        await store.add([(NOON, a_judgment(judge_version="j2"))])

        assert {name.split("|")[0] for name in await store.read(hour_of(NOON), NOON + HOUR)} == {"j1", "j2"}


async def test_prompt_hashes_beyond_the_bound_are_counted_as_other(
    valkey: object,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever deploys with a new hash each minute must not fill the memory."""
    monkeypatch.setattr(redis_health, "FIELDS_MAX", 12)
    store = RedisHealth(valkey, Keys("test"))
    await store.start()
    for number in range(30):
        refused = a_failure(f"c-{number}", prompt_hash=f"h{number}")
        await store.add([(NOON, refused.model_copy(update={"kind": "refused"}))])

    ((name, counters),) = (await store.read(NOON, NOON + HOUR)).items()

    health = health_of(name, counters)
    assert sum(health.held_back.values()) == 30
    assert len(health.held_back) <= 12
    assert health.held_back["other"] > 10
