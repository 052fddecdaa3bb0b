"""What evaluation jumps by and what a person may have erased: the twin and the real thing alike."""

import pytest

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import Scope
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import WindowStore
from tests.judgments import HOUR, NOON, a_judgment
from tests.servers.valkey import valkey, valkey_server  # noqa: F401 - fixtures

POLICY = WindowPolicy(shards=3)
BAD = {"safety": 1, "actionability": 2}


@pytest.fixture(params=["memory", "valkey", "valkey_cluster"])
def store(request: pytest.FixtureRequest) -> WindowStore:
    if request.param == "memory":
        return MemoryWindowStore(POLICY)
    return RedisWindows(request.getfixturevalue(request.param), Keys("test", POLICY.shards), POLICY)


async def test_the_beginnings_of_all_scopes_are_known_in_their_order(store: WindowStore) -> None:
    """An evaluator that missed one would jump over a failing window."""
    assert await store.begins() == ()

    await store.apply(
        [
            a_judgment("c1", at=NOON + HOUR),
            a_judgment("c2", at=NOON),
            a_judgment("c3", at=NOON),
            a_judgment("c4", at=NOON - HOUR, kind=TargetKind.TURN, judge_version="j2"),
        ],
        now=NOON,
    )

    assert await store.begins() == (NOON - HOUR, NOON, NOON + HOUR)


async def test_a_forgotten_conversation_has_no_cases_and_all_its_figures(store: WindowStore) -> None:
    """Words are a person's, figures are not."""
    judgments = [a_judgment("c1", scores=BAD), a_judgment("c2", scores=BAD)]
    turn = a_judgment("c1", scores=BAD, kind=TargetKind.TURN)
    await store.apply([*judgments, turn], now=NOON)
    units = await store.units()

    assert await store.forget("c1") == 4

    left = await store.worst(Scope.of(judgments[0]), NOON, NOON + HOUR)
    assert {case.conversation_id for case in left} == {"c2"}
    assert await store.worst(Scope.of(turn), NOON, NOON + HOUR) == ()
    assert await store.units() == units
    assert await store.forget("c1") == 0
    assert await store.forget("never-came") == 0
