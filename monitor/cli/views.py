"""What people look at, read from the stores; blocking, each call on a loop of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from agents.services import Stores, build_stores, sampling_store
from monitor.alerting.alert import Alert
from monitor.conversations.store import Explained
from monitor.funnel import Funnel, funnel
from monitor.judging.judgment import Record
from monitor.policy import Policy
from monitor.review.item import ReviewItem
from monitor.settings import Settings
from monitor.windows.bucket import Scope
from monitor.windows.window import Window, window

T = TypeVar("T")


class Views:
    """Reads of one deployment."""

    def __init__(self, settings: Settings, policy: Policy) -> None:
        """Take where the deployment's stores live."""
        self._policy = policy
        self._sampling = sampling_store(settings, policy)
        self._stores = build_stores(settings, policy)
        # One loop for all questions: the client's connections belong to the loop that opened them.
        self._runner = asyncio.Runner()
        self._ask(lambda stores: stores.start())

    def funnel(self) -> Funnel:
        """Return what became of all events."""
        return funnel(self._sampling.funnel(), self._ask(lambda stores: stores.conversations.funnel()))

    def evaluated_through(self) -> datetime | None:
        """Return the last boundary that was evaluated."""
        return self._ask(lambda stores: stores.alerts.evaluated_through())

    def alerts(self) -> tuple[Alert, ...]:
        """Return all alerts that are kept."""
        return self._ask(lambda stores: stores.alerts.all())

    def review(self, limit: int) -> list[ReviewItem]:
        """Return what waits for people, the oldest first."""
        return self._ask(lambda stores: stores.review.waiting(limit))

    def explain(self, conversation_id: str) -> Explained[Record]:
        """Return all that is known of one conversation."""
        return self._ask(lambda stores: stores.conversations.explain(conversation_id))

    def units(self) -> int:
        """Return how many (conversation, dimension) the kept buckets count."""
        return self._ask(lambda stores: stores.windows.units())

    def windows(self, start: datetime, end: datetime) -> Sequence[tuple[Scope, Window]]:
        """Return the window of each scope."""

        async def read(stores: Stores) -> list[tuple[Scope, Window]]:
            return [
                (scope, window(await stores.windows.buckets(scope, start, end), start, end))
                for scope in await stores.windows.scopes()
            ]

        return self._ask(read)

    def newest(self) -> datetime | None:
        """Return the stream's time as far as it has been aggregated, None on the wall's clock."""
        times = self._ask(lambda stores: stores.clock.read("aggregate"))
        return min(times.values()) if times else None

    def close(self) -> None:
        """Let go of all connections."""
        with self._runner:
            self._runner.run(self._stores.close())

    def _ask(self, question: Callable[[Stores], Coroutine[Any, Any, T]]) -> T:
        return self._runner.run(question(self._stores))
