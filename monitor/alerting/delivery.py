"""What waits in the outbox in, notifications at their receivers out; what failed waits for its next turn.

Sent at least once: an entry leaves the outbox only after its receiver said that it has it. A notifier that is killed
in between sends it again under the same id. The notifications of one group reach a receiver in their order, or a
late trigger would open again what a resolve had closed.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from monitor.alerting.group_store import GroupStore
from monitor.alerting.notification import WaitingNotification
from monitor.alerting.receiver import Delivered, Delivery, Pace, Receiver, Undelivered

WAITING_MAX = 5000
"""Waiting notifications that one round looks at; it bounds the memory of a round after a long outage."""
PER_ROUND = 20
"""Notifications for one receiver in one round; it bounds how long a slow one keeps a round going."""
FAILURES_MAX = 2
"""Different notifications that fail before a receiver counts as down; one alone may be the message's fault."""
_FAR = timedelta(days=365)


@dataclass(frozen=True)
class Attempt:
    """What came of trying one notification."""

    waiting: WaitingNotification
    delivery: Delivery
    given_up: bool = False
    """It left the outbox undelivered: refused, or too old to go on with."""


@dataclass(frozen=True)
class Round:
    """What came of one round."""

    attempts: tuple[Attempt, ...] = ()
    waiting: tuple[WaitingNotification, ...] = ()
    """What waits for another turn after it."""
    unknown: tuple[Attempt, ...] = ()
    """Notifications for receivers that the configuration does not have any more; they left the outbox."""


async def deliver_waiting(
    groups: GroupStore, receivers: Mapping[str, Receiver], *, now: datetime, give_up_after: timedelta
) -> Round:
    """Try what is due, each receiver by itself, so that one that is down holds up no other."""
    by_receiver: dict[str, list[WaitingNotification]] = defaultdict(list)
    unknown = []
    for one in await groups.waiting(now + _FAR, WAITING_MAX):
        if one.notification.receiver in receivers:
            by_receiver[one.notification.receiver].append(one)
        else:
            unknown.append(one)
    await groups.finish_notifications([one.id for one in unknown])
    done = await asyncio.gather(
        *(
            _deliver(groups, receivers[name], waiting, now=now, give_up_after=give_up_after)
            for name, waiting in sorted(by_receiver.items())
        )
    )
    return Round(
        tuple(attempt for attempts, _ in done for attempt in attempts),
        tuple(one for _, left in done for one in left),
        tuple(Attempt(one, _unknown(one.notification.receiver), given_up=True) for one in unknown),
    )


def next_due(waiting: WaitingNotification, failed: Undelivered, pace: Pace, *, now: datetime) -> datetime:
    """Return when a failed notification is tried again: when it was asked for, or after a doubling pause.

    The pause is spread by a hash of the id, so that a thousand notifications do not come back together.
    """
    if failed.retry_after_seconds is not None:
        return now + timedelta(
            seconds=min(max(failed.retry_after_seconds, 1.0), pace.retry_after_max_seconds)
        )
    pause = min(pace.first_seconds * 2.0 ** min(waiting.attempts, 30), pace.most_seconds)
    digest = hashlib.blake2b(f"{waiting.id}/{waiting.attempts}".encode(), digest_size=2).digest()
    return now + timedelta(seconds=pause * (0.75 + 0.5 * int.from_bytes(digest) / 65535))


def is_held(waiting: Iterable[WaitingNotification], now: datetime) -> bool:
    """Tell whether a receiver is left alone: different notifications failed of late, and none is due again."""
    failing = [one for one in waiting if one.attempts]
    return len(failing) >= FAILURES_MAX and all(one.due_at > now for one in failing)


def heads(waiting: Iterable[WaitingNotification]) -> list[WaitingNotification]:
    """Return the oldest notification of each group, those that have failed before first."""
    found: dict[str, WaitingNotification] = {}
    for one in sorted(waiting, key=_age):
        found.setdefault(one.notification.group_id, one)
    return sorted(found.values(), key=lambda one: (not one.attempts, one.due_at, _age(one)))


async def _deliver(
    groups: GroupStore,
    receiver: Receiver,
    waiting: Sequence[WaitingNotification],
    *,
    now: datetime,
    give_up_after: timedelta,
) -> tuple[list[Attempt], list[WaitingNotification]]:
    left = {one.id: one for one in waiting}
    attempts: list[Attempt] = []
    if is_held(waiting, now):
        return attempts, list(left.values())
    failed: set[str] = set()
    while len(attempts) < PER_ROUND and len(failed) < FAILURES_MAX:
        due = [one for one in heads(left.values()) if one.due_at <= now and one.id not in failed]
        if not due:
            break
        attempt = await _try(groups, receiver, due[0], now=now, give_up_after=give_up_after)
        attempts.append(attempt)
        if isinstance(attempt.delivery, Undelivered) and not attempt.given_up:
            failed.add(attempt.waiting.id)
            left[attempt.waiting.id] = attempt.waiting
        else:
            del left[attempt.waiting.id]
    return attempts, list(left.values())


async def _try(
    groups: GroupStore,
    receiver: Receiver,
    waiting: WaitingNotification,
    *,
    now: datetime,
    give_up_after: timedelta,
) -> Attempt:
    delivery = await receiver.deliver(waiting.notification)
    match delivery:
        case Delivered():
            await groups.finish_notifications([waiting.id])
            return Attempt(waiting, delivery)
        case Undelivered():
            over = not delivery.retry or now - waiting.notification.at >= give_up_after
            after = WaitingNotification(
                notification=waiting.notification,
                attempts=waiting.attempts + 1,
                due_at=next_due(waiting, delivery, receiver.pace, now=now),
                last_error=delivery.reason,
            )
            if over:
                return Attempt(after, delivery, given_up=True)
            await groups.postpone(after)
            return Attempt(after, delivery)
        case _:
            assert_never(delivery)


def _unknown(receiver: str) -> Undelivered:
    return Undelivered(receiver=receiver, reason="routing.yaml has no such receiver any more", retry=False)


def _age(waiting: WaitingNotification) -> tuple[datetime, str]:
    return (waiting.notification.at, waiting.id)
