"""Signs of life of a process's stages: given while they make progress, withdrawn when they end in order."""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from monitor.adapters.redis_functions import StoreUnavailable
from monitor.adapters.redis_heartbeats import BlockingHeartbeats
from monitor.alerting.watchdog import STANDBY, Beat, Heartbeats
from monitor.settings import Settings

EVERY_SECONDS = 5.0
IN_HAND_MAX_SECONDS = 120.0
"""An event in hand for longer is no progress; above the deadline of a judgment, below the worker's own end."""
TICK_MAX_SECONDS = 60.0
"""A timer that has not succeeded for longer is no progress."""

log = structlog.get_logger()


def instance_of(settings: Settings) -> str:
    """Return the name of this process's place: it must be the same after a restart, and no other's."""
    return settings.instance or socket.gethostname()


class Ticks:
    """What health reads of a timer: when it last succeeded, and whether this process leads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: float | None = None

    def succeeded(self) -> None:
        """Note a tick that did all of its work."""
        self._last = self._monotonic()

    def seconds(self) -> float | None:
        """Tell how long ago that was; None if it never did."""
        return None if self._last is None else self._monotonic() - self._last


class Pulse:
    """The signs of life of one worker."""

    def __init__(self, heartbeats: Heartbeats, instance: str, now: Callable[[], datetime]) -> None:
        """Take the port, and under which name this process is known."""
        self._heartbeats = heartbeats
        self._instance = instance
        self._now = now
        self._given: set[str] = set()

    async def beat(self, names: Sequence[str]) -> None:
        """Give a sign of life for these stages; a stage that became another's, or a standby, is withdrawn."""
        at = self._now()
        try:
            await self._heartbeats.beat([Beat(stage=name, instance=self._instance, at=at) for name in names])
            for other in sorted(_counterparts(names) & self._given):
                await self._heartbeats.withdraw(other, self._instance)
        except StoreUnavailable as error:
            # The watchdog cannot read it either, and stays silent: that is what it is for.
            log.warning("no_heartbeat", reason=str(error)[:300])
            return
        self._given = (self._given | set(names)) - _counterparts(names)

    async def end(self) -> None:
        """Withdraw everything: this process ends in order."""
        with contextlib.suppress(StoreUnavailable):
            for name in sorted(self._given):
                await self._heartbeats.withdraw(name, self._instance)
        self._given.clear()


class SamplerPulse:
    """The sampler's signs of life, given from its loop, at most one every few seconds."""

    def __init__(
        self,
        heartbeats: BlockingHeartbeats,
        instance: str,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take where to give them."""
        self._heartbeats = heartbeats
        self._instance = instance
        self._now = now
        self._monotonic = monotonic
        self._next = float("-inf")

    def beat(self) -> None:
        """Give one if it is time; a store that is away is the loop's own trouble."""
        if self._monotonic() < self._next:
            return
        self._next = self._monotonic() + EVERY_SECONDS
        with contextlib.suppress(StoreUnavailable):
            self._heartbeats.beat(Beat(stage="sample", instance=self._instance, at=self._now()))

    def end(self) -> None:
        """Withdraw it."""
        with contextlib.suppress(StoreUnavailable):
            self._heartbeats.withdraw("sample", self._instance)


def living_name(name: str, *, in_hand_seconds: float, ticks: Ticks | None, leads: bool) -> str | None:
    """Return under which name a stage gives a sign of life; None if it makes no progress."""
    if ticks is None:
        return name if in_hand_seconds <= IN_HAND_MAX_SECONDS else None
    if not leads:
        return name + STANDBY
    since = ticks.seconds()
    return name if since is not None and since <= TICK_MAX_SECONDS else None


def _counterparts(names: Sequence[str]) -> set[str]:
    return {name.removesuffix(STANDBY) if name.endswith(STANDBY) else name + STANDBY for name in names}
