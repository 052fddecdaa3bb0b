"""What every store of baselines must do: the twin and the real thing alike."""

from datetime import timedelta

import numpy as np
import pytest

from monitor.adapters.memory_baselines import MemoryBaselines
from monitor.adapters.redis_baselines import RedisBaselines
from monitor.adapters.redis_keys import Keys
from monitor.detection.baseline import BaselinePolicy
from monitor.detection.counts import SeriesCounts
from monitor.detection.pinning import BaselineStore, Pinned, pinned_of
from monitor.intake.event import Environment
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import OVERALL, Scope
from tests.judgments import NOON
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> BaselineStore:
    if request.param == "memory":
        return MemoryBaselines(kept_max=2)
    return RedisBaselines(request.getfixturevalue("valkey"), Keys("test"), kept_max=2)


def a_scope(judge_version: str = "j1") -> Scope:
    return Scope(
        assistant="support-bot",
        environment=Environment.PRODUCTION,
        target=TargetKind.CONVERSATION,
        judge_version=judge_version,
        rubric_version="r1",
    )


def a_pin(release: str, *, scope: Scope | None = None) -> Pinned:
    series = SeriesCounts(
        dimension="safety",
        segment=OVERALL,
        start=NOON - timedelta(days=7),
        bucket_minutes=15,
        columns=(("returns,web,en,-", "0.05"),),
        weights=np.array([20.0]),
        values=np.arange(1.0, 6.0),
        counts=np.tile(np.array([[0.0, 0.0, 1.0, 3.0, 6.0]]), (672, 1, 1)),
    )
    return pinned_of(scope or a_scope(), [series], release=release, at=NOON, by="jo", policy=BaselinePolicy())


class TestBaselines:
    async def test_a_baseline_comes_back_bit_by_bit_for_its_scope_only(self, store: BaselineStore) -> None:
        """Its id is the hash of all that it says; a figure that changes in the store makes another baseline."""
        pinned = a_pin("release 1")
        await store.pin(pinned)

        found = await store.current(a_scope().id)
        assert found == pinned
        assert found is not None
        assert found.baseline.id == pinned.baseline.id
        assert await store.current(a_scope("j2").id) is None

    async def test_the_newest_is_current_and_those_before_it_are_kept(self, store: BaselineStore) -> None:
        """People compare a release with the one before it."""
        pins = [a_pin(f"release {number}") for number in range(3)]
        for pinned in pins:
            await store.pin(pinned)

        assert await store.current(a_scope().id) == pins[2]
        assert await store.all() == (pins[2], pins[1])

    async def test_pinned_twice_it_is_one(self, store: BaselineStore) -> None:
        """A command that is repeated after a lost answer must not fill the history."""
        await store.pin(a_pin("release 1"))
        await store.pin(a_pin("release 1"))

        assert len(await store.all()) == 1

    async def test_every_scope_has_its_own(self, store: BaselineStore) -> None:
        """A new judge is a new scope, and the old judge's normal is none of it."""
        await store.pin(a_pin("release 1"))
        await store.pin(a_pin("release 1", scope=a_scope("j2")))

        assert {one.scope.judge_version for one in await store.all()} == {"j1", "j2"}
