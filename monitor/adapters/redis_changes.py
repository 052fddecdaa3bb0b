"""Changes in Redis: events by time, and first and last sightings in two sorted sets an assistant, all in one slot."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from monitor.adapters.redis_functions import Argument, Client, Functions, guarded
from monitor.adapters.redis_keys import Keys
from monitor.alerting.changes import Aspect, Sighting
from monitor.intake.event import ChangeEvent, Environment

EVENTS_MAX = 5000
"""Change events kept, the newest; it bounds memory against a pipeline that announces every commit."""
SIGHTINGS_MAX = 2000
"""Values kept of an assistant, those seen last; it bounds memory against a hash that changes with each call."""
FORGET_SECONDS = 120 * 86_400
"""An assistant without judged traffic for this long is forgotten; longer than any replay."""
READ_MAX = 1000
"""Change events read for one alert, the newest."""
Scored = list[tuple[bytes, float]]


class RedisChanges:
    """The port `ChangeLog`."""

    def __init__(
        self, client: Client, keys: Keys, *, events_max: int = EVENTS_MAX, sightings_max: int = SIGHTINGS_MAX
    ) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._keys = keys
        self._events_max = events_max
        self._sightings_max = sightings_max
        self._functions = Functions(client, "cm_changes")

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    async def record(self, events: Sequence[ChangeEvent]) -> None:
        """Keep change events by their ids."""
        if not events:
            return
        arguments: list[Argument] = [self._events_max]
        for event in events:
            arguments += [event.event_id, event.occurred_at.timestamp(), event.model_dump_json()]
        await self._functions.call(
            "cm_changes_record", [self._keys.changes("events"), self._keys.changes("order")], arguments
        )

    async def sight(self, sightings: Sequence[Sighting]) -> None:
        """Widen what is known."""
        by_assistant: dict[tuple[str, Environment], list[Argument]] = defaultdict(
            lambda: [self._sightings_max, FORGET_SECONDS]
        )
        for one in sightings:
            by_assistant[one.assistant, one.environment] += [
                f"{one.aspect}={one.value}",
                one.first_at.timestamp(),
                one.last_at.timestamp(),
            ]
        await self._functions.call_many(
            "cm_changes_sight",
            [(self._seen(*whose), arguments) for whose, arguments in by_assistant.items()],
        )

    async def events(self, start: datetime, end: datetime) -> tuple[ChangeEvent, ...]:
        """Return the change events in a stretch of time, oldest first."""
        with guarded("changes"):
            ids = cast(
                "list[bytes]",
                await self._client.zrevrangebyscore(
                    self._keys.changes("order"), end.timestamp(), start.timestamp(), start=0, num=READ_MAX
                ),
            )
            texts = await self._client.hmget(self._keys.changes("events"), ids) if ids else []
        found = [ChangeEvent.model_validate_json(text) for text in texts if text]
        return tuple(sorted(found, key=lambda event: (event.occurred_at, event.event_id)))

    async def sightings(self, assistant: str, environment: Environment) -> tuple[Sighting, ...]:
        """Return all that was seen of one assistant."""
        first, last = self._seen(assistant, environment)
        with guarded("changes"):
            begun = cast("Scored", await self._client.zrange(first, 0, -1, withscores=True))
            latest = cast("Scored", await self._client.zrange(last, 0, -1, withscores=True))
        ended = dict(latest)
        found = []
        for member, at in begun:
            aspect, _, value = member.decode().partition("=")
            found.append(
                Sighting(
                    assistant=assistant,
                    environment=environment,
                    aspect=Aspect(aspect),
                    value=value,
                    first_at=datetime.fromtimestamp(at, UTC),
                    last_at=datetime.fromtimestamp(ended.get(member, at), UTC),
                )
            )
        return tuple(sorted(found, key=lambda one: (one.first_at, one.aspect, one.value)))

    def _seen(self, assistant: str, environment: Environment) -> list[str]:
        # The environment is a closed set and stands first: an assistant's name may hold anything.
        return [
            self._keys.changes("first", environment, assistant),
            self._keys.changes("last", environment, assistant),
        ]
