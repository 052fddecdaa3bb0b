"""Alerts in Redis, all in one slot: a transition and its entry in the outbox are one server-side step."""

from collections.abc import Awaitable, Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from monitor.adapters.redis_functions import UNAVAILABLE, Client, Functions, StoreUnavailable
from monitor.adapters.redis_keys import Keys
from monitor.alerting.alert import OPEN, Alert, AlertState, Transition
from monitor.alerting.forgetting import told_without_words_of
from monitor.alerting.receiver import Notification
from monitor.alerting.store import notification_of
from monitor.detection.exception import GateException

ATTEMPTS = 5
"""Tries to win a compare-and-set against another who forgets."""
RESOLVED_MAX = 1000
"""Resolved alerts kept, the newest; they tell flapping and fill the history that people see."""


class RedisAlerts:
    """The port `AlertStore` on Redis or Valkey."""

    def __init__(self, client: Client, keys: Keys, *, resolved_max: int = RESOLVED_MAX) -> None:
        """Take a client that answers in bytes; `start()` loads the functions."""
        self._client = client
        self._functions = Functions(client, "cm_alerts")
        self._resolved_max = resolved_max
        self._open = keys.alerts("open")
        self._resolved = keys.alerts("resolved")
        self._by_time = keys.alerts("resolved_at")
        self._outbox = keys.alerts("outbox")
        self._order = keys.alerts("outbox", "order")
        self._sequence = keys.alerts("outbox", "sequence")
        self._boundary = keys.alerts("evaluated_through")
        self._exceptions = keys.alerts("exceptions")

    async def start(self) -> None:
        """Load the server-side functions."""
        await self._functions.load()

    async def get(self, fingerprint: str) -> Alert | None:
        """Return one alert."""
        for key in (self._open, self._resolved):
            text = await _answered(self._client.hget(key, fingerprint))
            if text is not None:
                return _alert(text)
        return None

    async def all(self, states: Collection[AlertState] | None = None) -> tuple[Alert, ...]:
        """Return the alerts in these states, ordered by fingerprint."""
        wanted = set(AlertState if states is None else states)
        texts: list[bytes] = []
        if wanted & set(OPEN):
            texts += await _answered(self._client.hvals(self._open))
        if AlertState.RESOLVED in wanted:
            texts += await _answered(self._client.hvals(self._resolved))
        alerts = (_alert(text) for text in texts)
        return tuple(sorted((a for a in alerts if a.state in wanted), key=lambda alert: alert.fingerprint))

    async def commit(self, transition: Transition) -> bool:
        """Write a transition and its outbox entry, if the version before it is still stored."""
        alert = transition.alert
        notification = notification_of(transition)
        done = await self._functions.call(
            "cm_alerts_commit",
            [self._open, self._resolved, self._by_time, self._outbox, self._order, self._sequence],
            [
                alert.fingerprint,
                transition.expected_version,
                alert.model_dump_json(),
                alert.state,
                transition.at.timestamp(),
                self._resolved_max,
                notification.id if notification else "",
                notification.model_dump_json() if notification else "",
            ],
        )
        return bool(done)

    async def outbox(self, limit: int) -> tuple[Notification, ...]:
        """Return the oldest unfinished notifications."""
        reply = await self._functions.call("cm_alerts_outbox", [self._outbox, self._order], [limit])
        return tuple(map(Notification.model_validate_json, reply))

    async def finish(self, entry_ids: Sequence[str]) -> None:
        """Take notifications out of the outbox."""
        if entry_ids:
            await self._functions.call("cm_alerts_finish", [self._outbox, self._order], list(entry_ids))

    async def forget(self, conversation_id: str) -> int:
        """Erase a conversation's words in what waits; return in how many entries."""
        erased = 0
        for name in await _answered(self._client.hkeys(self._outbox)):
            for _ in range(ATTEMPTS):
                text = await _answered(self._client.hget(self._outbox, name))
                told = Notification.model_validate_json(text) if text else None
                after = told and told_without_words_of(told, conversation_id)
                if after is None:
                    break
                arguments = [name, text, after.model_dump_json()]
                if await self._functions.call("cm_alerts_rewrite", [self._outbox], arguments):
                    erased += 1
                    break
            else:
                raise StoreUnavailable("alerts: others keep changing what waits; try again")
        return erased

    async def exceptions(self) -> tuple[GateException, ...]:
        """Return what people signed for, ordered by alert."""
        texts = await _answered(self._client.hvals(self._exceptions))
        found = map(GateException.model_validate_json, texts)
        return tuple(sorted(found, key=lambda one: one.alert or ""))

    async def put_exception(self, exception: GateException) -> None:
        """Write an exception; it replaces the one of the same alert."""
        key = exception.alert or f"{exception.gate}/{exception.segment}"
        await _answered(self._client.hset(self._exceptions, key, exception.model_dump_json()))

    async def evaluated_through(self) -> datetime | None:
        """Return the last boundary whose evaluation is done."""
        text = await _answered(self._client.get(self._boundary))
        return datetime.fromisoformat(text.decode()) if text else None

    async def claim_evaluation(self, boundary: datetime, expected: datetime | None) -> bool:
        """Move the boundary on, if the expected one is still stored."""
        arguments = [_utc(boundary), _utc(expected) if expected else ""]
        return bool(await self._functions.call("cm_alerts_claim", [self._boundary], arguments))


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


@lru_cache(maxsize=4096)
def _alert(text: bytes) -> Alert:
    # An evaluation reads all open alerts, and few of them changed since the last one.
    _, _, alert = text.partition(b" ")
    return Alert.model_validate_json(alert)


async def _answered(answer: Awaitable[Any]) -> Any:
    try:
        return await answer
    except UNAVAILABLE as error:
        raise StoreUnavailable(f"alerts: {error}") from error
