"""What every alert store must do: the twin and the real thing alike."""

import asyncio

import pytest
import redis.asyncio

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_groups import RedisGroups
from monitor.adapters.redis_keys import Keys
from monitor.alerting.alert import AlertState
from monitor.alerting.deciding import commented
from monitor.alerting.forgetting import FORGOTTEN, without_words_of
from monitor.alerting.group import Group, GroupChange
from monitor.alerting.life import advance
from monitor.alerting.store import AlertStore
from monitor.detection.exception import GateException
from monitor.detection.finding import Outcome, Persistence
from tests.alerts import a_finding, step
from tests.judgments import HOUR, MINUTE, NOON
from tests.notifications import a_group, an_evidence
from tests.servers.valkey import absent_valkey


@pytest.fixture(params=["memory", "valkey"])
def store(request: pytest.FixtureRequest) -> AlertStore:
    if request.param == "memory":
        return MemoryAlertStore(resolved_max=2)
    return RedisAlerts(request.getfixturevalue("valkey"), Keys("test"), resolved_max=2)


class TestAlertStore:
    async def test_forgetting_reaches_what_waits_for_the_topic(self, store: AlertStore) -> None:
        """The broker may be away for hours, and what waits for it holds quotations."""
        transition = step(None, a_finding())
        alert = transition.alert.model_copy(update={"evidence": an_evidence()})
        assert await store.commit(transition.model_copy(update={"alert": alert}))

        assert await store.forget("c-0") == 1

        [entry] = await store.outbox(10)
        evidence = entry.alert.evidence
        assert evidence is not None
        assert [case.reason for case in evidence.cases[:2]] == [FORGOTTEN, "promise 1"]
        assert await store.forget("c-0") == 0
        await store.finish([entry.id])
        assert await store.forget("c-1") == 0

    async def test_a_committed_alert_comes_back_as_it_was(self, store: AlertStore) -> None:
        """Nothing of an alert may be lost between two evaluations."""
        fired = step(None, a_finding())

        assert await store.commit(fired)
        assert await store.get(fired.alert.fingerprint) == fired.alert
        assert await store.all() == (fired.alert,)
        assert await store.get("unknown") is None

    async def test_of_two_leaders_one_wins(self, store: AlertStore) -> None:
        """Leadership is not fenced: both may decide, one may write, and people hear it once."""
        fired = step(None, a_finding())

        won = await asyncio.gather(store.commit(fired), store.commit(fired))

        assert sorted(won) == [False, True]
        assert len(await store.outbox(10)) == 1

    async def test_a_transition_from_an_old_version_is_refused(self, store: AlertStore) -> None:
        """It was decided on a state that is not there any more."""
        fired = step(None, a_finding())
        await store.commit(fired)
        resolved = step(fired.alert, a_finding(Outcome.PASS), NOON + HOUR)
        await store.commit(resolved)

        assert not await store.commit(resolved)
        assert not await store.commit(fired)
        assert await store.get(fired.alert.fingerprint) == resolved.alert

    async def test_states_choose_what_is_listed(self, store: AlertStore) -> None:
        """Open alerts are read at each evaluation; the history is not."""
        firing, other = step(None, a_finding()), step(None, a_finding(dimension="actionability"))
        await store.commit(firing)
        await store.commit(other)
        await store.commit(step(other.alert, a_finding(Outcome.PASS, dimension="actionability"), NOON + HOUR))

        assert [a.fingerprint for a in await store.all([AlertState.FIRING])] == [firing.alert.fingerprint]
        assert [a.fingerprint for a in await store.all([AlertState.RESOLVED])] == [other.alert.fingerprint]
        assert await store.all([AlertState.PENDING]) == ()
        assert len(await store.all()) == 2

    async def test_a_resolved_alert_that_fails_again_is_one_alert(self, store: AlertStore) -> None:
        """One fingerprint, one row, whatever its state."""
        fired = step(None, a_finding())
        resolved = step(fired.alert, a_finding(Outcome.PASS), NOON + HOUR)
        again = step(resolved.alert, a_finding(), NOON + 2 * HOUR)
        for transition in (fired, resolved, again):
            assert await store.commit(transition)

        assert await store.all() == (again.alert,)
        assert again.alert.version == 3

    async def test_of_the_resolved_only_the_newest_are_kept(self, store: AlertStore) -> None:
        """Everything has a limit."""
        names = ("a", "b", "c")
        for hour, name in enumerate(names):
            fired = step(None, a_finding(dimension=name), NOON + hour * HOUR)
            await store.commit(fired)
            await store.commit(
                step(fired.alert, a_finding(Outcome.PASS, dimension=name), NOON + hour * HOUR + MINUTE)
            )

        assert {alert.labels["dimension"] for alert in await store.all()} == {"b", "c"}

    async def test_the_outbox_hands_out_the_oldest_first_until_they_are_finished(
        self, store: AlertStore
    ) -> None:
        """A notification leaves when it is told, never because it was read."""
        transitions = [step(None, a_finding(dimension=name)) for name in ("x", "a", "m")]
        for transition in transitions:
            await store.commit(transition)

        assert [entry.id for entry in await store.outbox(2)] == [t.id for t in transitions[:2]]
        await store.finish([transitions[0].id])
        await store.finish([transitions[0].id])
        assert [entry.id for entry in await store.outbox(10)] == [t.id for t in transitions[1:]]
        assert (await store.outbox(1))[0].alert == transitions[1].alert

    async def test_a_silent_transition_tells_nobody(self, store: AlertStore) -> None:
        """A pending alert is bookkeeping."""
        pending = advance(None, a_finding(), now=NOON, persistence=Persistence())
        assert pending is not None

        assert await store.commit(pending)
        assert await store.outbox(10) == ()

    async def test_an_exception_replaces_the_one_of_the_same_alert(self, store: AlertStore) -> None:
        """Its end is moved by signing again, and the evaluator sees one."""
        first = GateException(gate="safety", owner="j", reason="r", until=NOON, alert="a")
        later = first.model_copy(update={"until": NOON + HOUR})
        other = first.model_copy(update={"alert": "b"})
        for one in (other, first, later):
            await store.put_exception(one)

        assert await store.exceptions() == (later, other)

    async def test_what_people_do_is_on_record(self, store: AlertStore) -> None:
        """It tells no receiver, and yet stands on the alerts topic."""
        fired = step(None, a_finding())
        await store.commit(fired)
        said = commented(fired.alert, by="j", at=NOON, text="seen")

        assert await store.commit(said)
        assert [entry.id for entry in await store.outbox(10)] == [fired.id, said.id]
        assert await store.get(fired.alert.fingerprint) == said.alert

    async def test_a_boundary_is_claimed_once(self, store: AlertStore) -> None:
        """Two leaders run one boundary; the second learns that it was second."""
        assert await store.evaluated_through() is None
        assert await store.claim_evaluation(NOON, None)
        assert not await store.claim_evaluation(NOON, None)
        assert await store.claim_evaluation(NOON + HOUR, NOON)
        assert await store.evaluated_through() == NOON + HOUR


async def test_an_absent_server_is_said_in_our_words() -> None:
    """The pipeline waits for StoreUnavailable, not for a library's exceptions."""
    client = absent_valkey()
    alerts = RedisAlerts(client, Keys("test"))
    with pytest.raises(StoreUnavailable):
        await alerts.all()
    with pytest.raises(StoreUnavailable):
        await alerts.outbox(1)
    await client.aclose()


async def test_forgetting_leaves_no_word_in_any_key(valkey: redis.asyncio.Redis) -> None:
    """Asked of the bytes themselves: the alert, the topic's outbox and a message that failed once."""
    alerts, groups = RedisAlerts(valkey, Keys("test")), RedisGroups(valkey, Keys("test"))
    transition = step(None, a_finding())
    alert = transition.alert.model_copy(update={"evidence": an_evidence()})
    await alerts.commit(transition.model_copy(update={"alert": alert}))
    group = Group(id="g1", version=1, route="{}", receiver="hook", key="{}", labels={}, next_at=NOON)
    await groups.commit_group(GroupChange(group, a_group(alert)))
    [waiting] = await groups.waiting(NOON + 24 * HOUR, 10)
    await groups.postpone(waiting.model_copy(update={"attempts": 1}))
    assert len([key for key, content in (await held(valkey)).items() if b"promise 3" in content]) == 3

    erased = without_words_of(alert, "c-3")
    assert erased is not None
    assert await alerts.commit(erased)
    assert await alerts.forget("c-3") + await groups.forget("c-3") == 2

    after = await held(valkey)
    assert [key for key, content in after.items() if b"promise 3" in content] == []
    assert any(b"promise 4" in content for content in after.values()), "the others keep theirs"


async def held(valkey: redis.asyncio.Redis) -> dict[bytes, bytes]:
    return {
        key: repr(await valkey.hgetall(key)).encode()
        async for key in valkey.scan_iter()
        if await valkey.type(key) == b"hash"
    }
