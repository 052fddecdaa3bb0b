"""Acks in order: the queue alone, in any order of events."""

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents.acks import Held, OrderedAcks

PARTITIONS = st.integers(0, 2)
LIMIT_SECONDS = 5  # of a test on fakes; none needs a tenth of it


@dataclass(frozen=True)
class Delivery:
    """One delivery of the event at an offset; after a rebalance the same offset comes as another one."""

    partition: int
    offset: int
    life: int


class Group(RuleBasedStateMachine):
    """A consumer group as Kafka keeps it: after a rebalance each partition goes on from its last commit."""

    def __init__(self) -> None:
        super().__init__()
        self.generation = 1
        self.life = 0
        self.now = 0.0
        self.committed: defaultdict[int, int] = defaultdict(int)
        self.next_offset: defaultdict[int, int] = defaultdict(int)
        self.handled: set[tuple[int, int]] = set()
        self.acked: list[Delivery] = []
        self.released: list[Delivery] = []
        self.in_hand: list[Held[Delivery]] = []
        self.acks: OrderedAcks[Delivery] = OrderedAcks(
            ack=self._ack, release=self.released.append, current_generation=lambda: self.generation
        )

    def _ack(self, delivery: Delivery) -> None:
        assert delivery.life == self.life, "nothing of an old generation is acked"
        for offset in range(delivery.offset + 1):
            assert (delivery.partition, offset) in self.handled, "no ack passes an undone event"
        self.acked.append(delivery)
        self.committed[delivery.partition] = delivery.offset + 1

    def _take(self, delivery: Delivery, generation: int) -> None:
        self.now += 1
        held = self.acks.take(delivery, partition=delivery.partition, generation=generation, now=self.now)
        self.in_hand.append(held)

    @rule(partition=PARTITIONS)
    def take(self, partition: int) -> None:
        self._take(Delivery(partition, self.next_offset[partition], self.life), self.generation)
        self.next_offset[partition] += 1

    @rule(partition=PARTITIONS, offset=st.integers(0, 5))
    def take_one_that_slipped_through_a_rebalance(self, partition: int, offset: int) -> None:
        self._take(Delivery(partition, offset, life=-1), self.generation - 1)

    @precondition(lambda self: self.in_hand)
    @rule(data=st.data())
    def finish_any(self, data: st.DataObject) -> None:
        """Any of them: early, late, from before a rebalance, or for the second time."""
        self._finish(data.draw(st.sampled_from(self.in_hand)))

    def _finish(self, held: Held[Delivery]) -> None:
        self.handled.add((held.event.partition, held.event.offset))
        self.acks.finish(held)

    @rule(generation=st.integers(1, 3))
    def rebalance(self, generation: int) -> None:
        """Change the generation; to any other number, for a group made anew counts from 1 again."""
        if generation == self.generation:
            return
        self.generation = generation
        self.life += 1
        self.next_offset = self.committed.copy()

    @invariant()
    def what_is_settled_is_settled_once(self) -> None:
        settled = [*self.acked, *(one for one in self.released if one.life >= 0)]
        assert len(settled) == len(set(settled))

    @invariant()
    def a_done_prefix_is_acked_at_once(self) -> None:
        open_heads: dict[int, int] = {}
        for held in self.in_hand:
            if held.event.life == self.life and not held.done:
                open_heads.setdefault(held.event.partition, held.event.offset)
        for held in self.in_hand:
            head = open_heads.get(held.event.partition, held.event.offset + 1)
            if held.event.life == self.life and held.event.offset < head:
                assert held.event in self.acked

    @invariant()
    def the_oldest_undone_is_known(self) -> None:
        undone = [held.taken_at for held in self.in_hand if held.event.life == self.life and not held.done]
        assert self.acks.oldest_taken_at() == min(undone, default=None)

    def teardown(self) -> None:
        for held in self.in_hand:
            self._finish(held)
        current = {held.event for held in self.in_hand if held.event.life == self.life}
        assert current <= set(self.acked), "everything done is acked in the end"
        self.acks.drop()
        assert {held.event for held in self.in_hand} == {*self.acked, *self.released}


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
