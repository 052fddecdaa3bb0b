"""Whether an endpoint is called at all: how its calls ended in, a phase out. Time is seconds of any clock."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Phase(StrEnum):
    """Of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """One call at a time tries whether the endpoint is back."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When an endpoint counts as down."""

    failures_in_a_row: int = 5
    window_calls: int = 20
    """Half of so many last calls failed: down too, even if some came through."""
    open_seconds: float = 5.0
    open_max_seconds: float = 60.0
    """The pause doubles with each probe that fails, up to this."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state of one endpoint."""

    phase: Phase = Phase.CLOSED
    last: tuple[bool, ...] = ()
    """How the last calls ended, the newest at the end."""
    opened_at: float = 0.0
    open_seconds: float = 0.0
    probing: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """Whether a call may start; as a probe, or when to ask again (None: when the probe has ended)."""

    breaker: Breaker
    passes: bool
    probe: bool = False
    wait_seconds: float | None = None


def look(breaker: Breaker, *, now: float) -> Passage:
    """Tell whether a call may start now."""
    match breaker.phase:
        case Phase.CLOSED:
            return Passage(breaker, passes=True)
        case Phase.OPEN:
            left = breaker.opened_at + breaker.open_seconds - now
            if left > 0:
                return Passage(breaker, passes=False, wait_seconds=left)
            return Passage(replace(breaker, phase=Phase.HALF_OPEN, probing=True), passes=True, probe=True)
        case Phase.HALF_OPEN:
            if breaker.probing:
                return Passage(breaker, passes=False)
            return Passage(replace(breaker, probing=True), passes=True, probe=True)


def note(breaker: Breaker, policy: BreakerPolicy, *, ok: bool | None, probe: bool, now: float) -> Breaker:
    """Note how a call ended; None: it was given up by us, which says nothing about the endpoint."""
    match breaker.phase:
        case Phase.CLOSED:
            return breaker if ok is None else _closed(breaker, policy, ok=ok, now=now)
        case Phase.OPEN:
            # Calls from before the opening say nothing new.
            return breaker
        case Phase.HALF_OPEN:
            if not probe:
                return breaker
            if ok is None:
                return replace(breaker, probing=False)
            if ok:
                return Breaker()
            longer = min(policy.open_max_seconds, breaker.open_seconds * 2)
            return Breaker(phase=Phase.OPEN, opened_at=now, open_seconds=longer)


def _closed(breaker: Breaker, policy: BreakerPolicy, *, ok: bool, now: float) -> Breaker:
    last = (*breaker.last, ok)[-policy.window_calls :]
    failed_in_a_row = len(last) >= policy.failures_in_a_row and not any(last[-policy.failures_in_a_row :])
    half_failed = len(last) == policy.window_calls and last.count(False) * 2 >= policy.window_calls
    if failed_in_a_row or half_failed:
        return Breaker(phase=Phase.OPEN, opened_at=now, open_seconds=policy.open_seconds)
    return replace(breaker, last=last)
