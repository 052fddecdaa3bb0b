"""The one way to an endpoint: limiter and breaker of `judging`, with waiters in line. For one event loop."""

import asyncio
from collections import deque
from dataclasses import dataclass

from monitor.judging.breaker import Breaker, BreakerPolicy, Phase, look, note
from monitor.judging.limiter import Answer, LimiterPolicy, admit, end, new_limiter

LOOK_AGAIN_SECONDS = 0.25
"""How often a worker that takes nothing looks whether the endpoint is back."""


@dataclass(slots=True)
class Ticket:
    """One call under way."""

    tokens: int
    probe: bool
    ended: bool = False


_Place = tuple[int, asyncio.Future[Ticket]]


class EndpointGate:
    """The port `Gate`, and the slots of one endpoint; all judges of a process that ask it share it."""

    def __init__(self, limits: LimiterPolicy | None = None, breaker: BreakerPolicy | None = None) -> None:
        """Take the limits; nothing runs before the first call."""
        self._limits = limits or LimiterPolicy()
        self._breaks_at = breaker or BreakerPolicy()
        self._breaker = Breaker()
        self._limiter = new_limiter(self._limits, now=0.0)
        self._started = False
        self._line: deque[_Place] = deque()
        self._ahead: deque[_Place] = deque()
        """Further attempts: their deadline runs already, so they go before first ones."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def phase(self) -> Phase:
        """Return the phase of the breaker."""
        return self._breaker.phase

    @property
    def limit(self) -> float:
        """Return how many calls may be in flight now."""
        return self._limiter.limit

    @property
    def holding(self) -> bool:
        """Tell whether calls are held back: the endpoint is down, or has asked everyone to wait."""
        return self._held_for() > 0

    async def opened(self) -> None:
        """Return when calls may start; while the endpoint is down that is the time to take nothing."""
        # It is time that opens it, or another call's end: no event to wait for.
        while (left := self._held_for()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, LOOK_AGAIN_SECONDS))

    async def enter(self, tokens: int, *, again: bool = False) -> Ticket:
        """Wait in line for a slot, further attempts first, else first come first served; `leave` must follow."""
        line = self._ahead if again else self._line
        if not self._ahead and not line and (ticket := self._admitted(tokens)[0]):
            return ticket
        place: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        line.append((tokens, place))
        self._move()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave(place.result(), Answer.UNKNOWN, ok=None)
            raise

    def leave(
        self,
        ticket: Ticket,
        answer: Answer,
        *,
        ok: bool | None,
        wait_seconds: float | None = None,
        tokens: int | None = None,
    ) -> None:
        """Give the slot back with what the endpoint answered; a second time changes nothing."""
        if ticket.ended:
            return
        ticket.ended = True
        now = asyncio.get_running_loop().time()
        over = 0 if tokens is None else tokens - ticket.tokens
        self._limiter = end(
            self._limiter, self._limits, answer, now=now, wait_seconds=wait_seconds, tokens_over=over
        )
        self._breaker = note(self._breaker, self._breaks_at, ok=ok, probe=ticket.probe, now=now)
        self._move()

    def _held_for(self) -> float:
        now = asyncio.get_running_loop().time()
        paused = self._limiter.paused_until - now if self._started else 0.0
        match self._breaker.phase:
            case Phase.CLOSED:
                return max(0.0, paused)
            case Phase.OPEN:
                return max(0.0, paused, self._breaker.opened_at + self._breaker.open_seconds - now)
            case Phase.HALF_OPEN:
                return LOOK_AGAIN_SECONDS if self._breaker.probing else max(0.0, paused)

    def _admitted(self, tokens: int) -> tuple[Ticket | None, float | None]:
        now = asyncio.get_running_loop().time()
        if not self._started:
            self._limiter, self._started = new_limiter(self._limits, now=now), True
        passage = look(self._breaker, now=now)
        if not passage.passes:
            return None, passage.wait_seconds
        admission = admit(self._limiter, self._limits, tokens=tokens, now=now)
        self._limiter = admission.limiter
        if not admission.started:
            return None, admission.wait_seconds
        self._breaker = passage.breaker
        return Ticket(tokens, passage.probe), None

    def _move(self) -> None:
        """Let in whoever may go; where only time is in the way, come back by then."""
        while line := self._ahead or self._line:
            tokens, place = line[0]
            if not place.done():
                ticket, wait = self._admitted(tokens)
                if ticket is None:
                    self._come_back(wait)
                    return
                place.set_result(ticket)
            line.popleft()

    def _come_back(self, wait: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait is not None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._move)

    def close(self) -> None:
        """Forget the timer; a later call would set a new one."""
        self._come_back(None)
