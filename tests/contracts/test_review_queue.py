"""What every review queue must do: the twin and the real thing alike."""

from datetime import timedelta

import pytest

from monitor.adapters.memory import MemoryReview
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_review import RedisReview
from monitor.review.item import ReviewItem, ReviewQueue, items_of
from tests.judgments import NOON, a_judgment


@pytest.fixture(params=["memory", "valkey"])
def queue(request: pytest.FixtureRequest) -> ReviewQueue:
    if request.param == "memory":
        return MemoryReview()
    return RedisReview(request.getfixturevalue("valkey"), Keys("test"))


def an_item(number: int) -> ReviewItem:
    return ReviewItem(
        judgment_id=f"j{number}",
        conversation_id="c",
        revision=1,
        why="critical failure",
        dimensions=("safety",),
        observed_at=NOON + timedelta(minutes=number),
    )


class TestReviewQueue:
    async def test_an_item_is_queued_once_however_often_it_is_told(self, queue: ReviewQueue) -> None:
        """A redelivered judgment must not give a reviewer the same case twice."""
        assert await queue.add([an_item(1), an_item(2)]) == 2
        assert await queue.add([an_item(2), an_item(3)]) == 1
        assert await queue.waiting(10) == [an_item(1), an_item(2), an_item(3)]

    async def test_the_oldest_comes_first(self, queue: ReviewQueue) -> None:
        """Nobody's case waits behind newer ones."""
        await queue.add([an_item(3), an_item(1), an_item(2)])

        assert [item.judgment_id for item in await queue.waiting(2)] == ["j1", "j2"]

    async def test_nothing_to_add_is_no_call(self, queue: ReviewQueue) -> None:
        """Most batches hold no critical failure."""
        assert await queue.add([]) == 0
        assert await queue.waiting(5) == []


def test_only_critical_judgments_become_items() -> None:
    """Reviewers have a few hours a week; a four is not why."""
    bad, good = a_judgment("bad", scores={"safety": 1}), a_judgment("good", scores={"safety": 4})

    assert [item.conversation_id for item in items_of([bad, good])] == ["bad"]
