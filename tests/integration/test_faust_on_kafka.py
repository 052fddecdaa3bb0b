"""Faust with our acks on a real Apache Kafka: join, rebalance, commits, leader, and the ways to die.

Each scenario runs once, in workers of their own, and several tests look at what it left behind.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import ConsumerGroupState

from tests.integration.acks_group import COMMIT_INTERVAL_SECONDS, WAIT_LIMIT_SECONDS, Group
from tests.servers.apache_kafka import ApacheKafka

pytestmark = pytest.mark.kafka

TAKEOVER_LIMIT_SECONDS = 10  # the session of 3 s, a rebalance, and two busy cores


@pytest.fixture(scope="module")
def group_of(
    apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Group]]:
    groups: list[Group] = []

    def make(name: str, *, partitions: int = 1) -> Group:
        groups.append(Group(apache_kafka, name, tmp_path_factory.mktemp(name), partitions))
        return groups[-1]

    yield make
    for group in groups:
        group.close()


# --- two workers, and the end of the leader


@dataclass
class LostLeader:
    """What happened when the leader of two workers was killed."""

    group: Group
    before: Counter[str]
    killed_at: float
    leader: str
    survivor: str


@pytest.fixture(scope="module")
def lost_leader(group_of: Callable[..., Group]) -> LostLeader:
    group = group_of("two-workers", partitions=4)
    for number in range(40):
        group.send(f"first-{number}", partition=number % 4)
    group.start("a")
    group.wait_until(lambda: not group.lost())
    release = group.folder / "release"
    for partition in range(4):
        group.send(f"in-hand-{partition}", partition=partition, held_in={"a": str(release)})
    group.wait_until(lambda: len(group.facts("held")) == 4)
    group.start("b")
    # The other has asked to join, and the calls are under way.
    group.wait_until(lambda: group.state() is ConsumerGroupState.PREPARING_REBALANCING)
    release.touch()
    group.wait_for_partitions("b", 2)
    group.wait_for_partitions("a", 2)
    for number in range(40):
        group.send(f"shared-{number}", partition=number % 4)
    group.wait_until(lambda: not group.lost())
    before = group.handled()

    leader = group.facts("leader")[-1].worker
    survivor = "b" if leader == "a" else "a"
    for partition in range(4):
        group.send(f"dying-{partition}", partition=partition, slow_in={leader: 60})
        for number in range(10):
            group.send(f"behind-{partition}-{number}", partition=partition)
    dying = {f"dying-{partition}" for partition in range(4)}
    group.wait_until(lambda: group.lost() < dying)
    group.workers[leader].kill()
    killed_at = time.monotonic()
    group.wait_for_partitions(survivor, 4)
    for number in range(40):
        group.send(f"after-{number}", partition=number % 4)
    group.wait_until(lambda: not group.lost())
    group.wait_until(lambda: group.facts("leader")[-1].worker == survivor)
    return LostLeader(group, before, killed_at, leader, survivor)


def test_two_workers_share_the_partitions(lost_leader: LostLeader) -> None:
    """Scaling out must take work off the first worker."""
    shared = {name: lost_leader.group.handled(worker=name) for name in ("a", "b")}

    assert all(any(event.startswith("shared") for event in handled) for handled in shared.values())


def test_a_join_does_nothing_twice(lost_leader: LostLeader) -> None:
    """A deploy must not pay for each judgment under way a second time: the rebalance waits for the calls."""
    in_hand = [one for one in lost_leader.group.facts("handled") if one.which.startswith("in-hand")]
    joined = lost_leader.group.facts("assigned", worker="b")[0]

    assert {one.worker for one in in_hand} == {"a"}
    assert joined.at > max(one.at for one in in_hand)
    assert set(lost_leader.before.values()) == {1}


def test_the_leader_is_one_of_them_and_moves_when_it_dies(lost_leader: LostLeader) -> None:
    """Alerts are evaluated by one worker, and the death of that one must not silence them."""
    ticks = lost_leader.group.facts("leader")

    assert {one.worker for one in ticks if one.at < lost_leader.killed_at} == {lost_leader.leader}
    after = [one for one in ticks if one.at > lost_leader.killed_at + 0.1]
    assert {one.worker for one in after} == {lost_leader.survivor}
    assert after[0].at - lost_leader.killed_at < TAKEOVER_LIMIT_SECONDS


def test_the_survivor_takes_all_over_and_nothing_is_lost(lost_leader: LostLeader) -> None:
    """What the dead worker had in hand comes again; what it had not committed may come twice."""
    taken = [one for one in lost_leader.group.facts("assigned") if one.at > lost_leader.killed_at]

    assert taken[0].at - lost_leader.killed_at < TAKEOVER_LIMIT_SECONDS
    assert lost_leader.group.lost() == set()


def test_commits_are_seen_from_outside(lost_leader: LostLeader) -> None:
    """Lag is read from the broker; it must come to zero when the work is done."""
    group = lost_leader.group
    per_partition = len(group.sent) // 4

    group.wait_until(lambda: group.committed() == dict.fromkeys(range(4), per_partition))


# --- kill -9 with a slow event in hand and quick ones done behind it


@pytest.fixture(scope="module")
def killed_behind_a_slow_event(group_of: Callable[..., Group]) -> tuple[Group, dict[int, int]]:
    """Kill a worker whose slow event stands at another place in each partition; return its last commits."""
    group = group_of("slow-event", partitions=3)
    for partition in (1, 2):
        for number in range(5):
            group.send(f"early-{partition}-{number}", partition=partition)
    group.start("doomed")
    group.wait_until(lambda: group.committed() == {1: 5, 2: 5})
    for number in range(2):
        group.send(f"before-{number}", partition=2)
    for partition in range(3):
        group.send(f"slow-{partition}", partition=partition, slow_in={"doomed": 60})
    for partition in range(3):
        for number in range(20):
            group.send(f"quick-{partition}-{number}", partition=partition)
    slow = {f"slow-{partition}" for partition in range(3)}
    group.wait_until(lambda: group.lost() == slow)
    time.sleep(4 * COMMIT_INTERVAL_SECONDS)
    committed = group.committed()
    group.workers["doomed"].kill()
    group.start("heir")
    group.wait_until(lambda: sum(group.committed().values()) == len(group.sent))
    return group, committed


@pytest.mark.parametrize(
    ("partition", "commit"),
    [
        pytest.param(0, None, id="at-offset-0"),
        pytest.param(1, 5, id="at-the-committed-offset"),
        pytest.param(2, 7, id="behind-the-committed-offset"),
    ],
)
def test_kill_9_loses_no_slow_event(
    killed_behind_a_slow_event: tuple[Group, dict[int, int]], partition: int, commit: int | None
) -> None:
    """Faust alone commits past it in each of the three places, and then it is gone."""
    group, committed = killed_behind_a_slow_event

    assert committed.get(partition) == commit
    assert group.handled(worker="heir")[f"slow-{partition}"] == 1
    assert group.lost() == set()


# --- other ways to end


def test_sigterm_waits_for_the_calls_under_way(group_of: Callable[..., Group]) -> None:
    """A deploy must neither lose nor repeat what is being judged."""
    group = group_of("sigterm")
    group.send("quick", partition=0)
    for number in range(3):
        group.send(f"slow-{number}", partition=0, slow_in={"first": 3})
    worker = group.start("first")
    group.wait_until(lambda: group.handled()["quick"])
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(WAIT_LIMIT_SECONDS) == 0
    assert group.handled() == Counter(group.sent)
    assert group.committed() == {0: 4}


def test_sigterm_does_not_wait_for_a_call_that_hangs(group_of: Callable[..., Group]) -> None:
    """The orchestrator's patience ends in SIGKILL; until then the partition would be nobody's."""
    group = group_of("hanging")
    for event_id in ("quick", "hangs", "behind"):
        group.send(event_id, partition=0, slow_in={"first": 3600} if event_id == "hangs" else {})
    worker = group.start("first", stop_limit_seconds=1)
    group.wait_until(lambda: group.handled()["behind"])
    worker.send_signal(signal.SIGTERM)

    assert worker.wait(WAIT_LIMIT_SECONDS) == 0
    assert group.committed() == {0: 1}


def test_a_handler_that_raises_ends_the_worker_and_its_event_comes_again(
    group_of: Callable[..., Group],
) -> None:
    """Faust would ack the event; a worker that went on without it would lose it or stall its partition."""
    group = group_of("raising")
    for event_id in ("before", "raises", "behind"):
        group.send(event_id, partition=0, raise_in=["buggy"] if event_id == "raises" else [])
    worker = group.start("buggy")

    assert worker.wait(WAIT_LIMIT_SECONDS) == 1
    assert group.committed() == {0: 1}
    assert "a secret of the payload" not in group.log_path("buggy").read_text()

    group.start("fixed")
    group.wait_until(lambda: group.committed() == {0: 3})
    assert group.lost() == set()


def test_batches_are_flushed_on_an_idle_topic(group_of: Callable[..., Group]) -> None:
    """Nothing comes after the last event of the evening to push it through."""
    group = group_of("batches")
    for number in range(10):
        group.send(f"one-{number}", partition=0)
    group.start("batching", batch_size=4, linger_seconds=0.3)
    group.wait_until(lambda: group.committed() == {0: 10})

    assert [one.which for one in group.facts("batch")] == ["4", "4", "2"]
    assert [one.which for one in group.facts("handled")] == group.sent
