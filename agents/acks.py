"""Acks in the order of the offsets: events done in any order in, acks of each partition's done prefix out.

Faust commits past an event that is not acked, so no event may be acked while an earlier one is open. And an
ack counts only in the generation of the consumer group that delivered the event: after a rebalance what was
not committed comes again, here or elsewhere, and an ack from before would jump over it.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, TypeVar

E = TypeVar("E")


@dataclass(slots=True, eq=False)
class Held(Generic[E]):
    """One event in hand. `OrderedAcks` alone marks it done."""

    event: E
    partition: Hashable
    generation: int
    taken_at: float
    done: bool = field(default=False, init=False)


class OrderedAcks(Generic[E]):
    """The events in hand, one queue a partition, all of the current generation.

    Each is acked or released in the end, and once: released are those that nobody here may ack any more.
    A generation is only ever compared for equality: a group that is made anew starts again at 1.
    """

    def __init__(
        self,
        *,
        ack: Callable[[E], object],
        release: Callable[[E], object],
        current_generation: Callable[[], int],
    ) -> None:
        self._ack = ack
        self._release = release
        self._current_generation = current_generation
        self._generation = current_generation()
        self._queues: defaultdict[Hashable, deque[Held[E]]] = defaultdict(deque)

    def take(self, event: E, *, partition: Hashable, generation: int, now: float) -> Held[E]:
        """Hold an event; call it in the order of the offsets. One of another generation is released."""
        self._drop_if_regenerated()
        held = Held(event, partition, generation, taken_at=now)
        if generation == self._generation:
            self._queues[partition].append(held)
        else:
            self._release(event)
        return held

    def finish(self, held: Held[E]) -> None:
        """Mark an event done and ack what is now done without a gap. Calling it twice does nothing."""
        self._drop_if_regenerated()
        held.done = True
        queue = self._queues.get(held.partition)
        while queue and queue[0].done:
            self._ack(queue.popleft().event)

    def drop(self) -> None:
        """Release all events in hand: they are delivered again."""
        queues, self._queues = self._queues, defaultdict(deque)
        for held in chain.from_iterable(queues.values()):
            self._release(held.event)

    def unacked(self) -> int:
        """Count the events in hand, done or not, that wait for an ack."""
        self._drop_if_regenerated()
        return sum(map(len, self._queues.values()))

    def oldest_taken_at(self) -> float | None:
        """Tell when the longest held event was taken. It is an undone one: a done head has been acked."""
        self._drop_if_regenerated()
        return min((queue[0].taken_at for queue in self._queues.values() if queue), default=None)

    def _drop_if_regenerated(self) -> None:
        generation = self._current_generation()
        if generation != self._generation:
            self.drop()
            self._generation = generation
