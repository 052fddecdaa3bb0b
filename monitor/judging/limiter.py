"""How many calls an endpoint is given: what it answered in, what may start now out. Time is seconds of any clock.

Additive increase and halving: every full round without a refusal raises the number of calls in flight, a 429
halves it, at most once in `HALVED_AT_MOST_EVERY_SECONDS`. Refusals in a row pause all calls for as long as the
endpoint asks, so that a limit that is really reached is not met by a storm; a single one makes only its own call wait.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

HALVED_AT_MOST_EVERY_SECONDS = 1.0
"""A burst of refusals is one message: halving for each would bring 64 calls down to one at once."""
REFUSALS_THAT_PAUSE = 3
"""In a row. At one 429 in ten by chance this happens once in a thousand calls."""
PAUSE_SECONDS, PAUSE_MAX_SECONDS = 1.0, 60.0
"""The pause where the endpoint names no time, and the longest that it may ask of all calls."""
RISE_SHARE = 1 / 16
"""Of the most calls in flight that one full round gives back."""
BURST_SHARE = 1 / 12
"""Of a minute's requests and tokens that may go at once: five seconds' worth."""


@dataclass(frozen=True, slots=True)
class LimiterPolicy:
    """What an endpoint may be given at most."""

    concurrency_max: int = 32
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Limiter:
    """The state of one endpoint."""

    limit: float
    in_flight: int
    refusals: int
    """In a row."""
    halved_at: float
    paused_until: float
    requests: float
    tokens: float
    """What may go at once now; below zero after a call that was larger than thought."""
    filled_at: float


class Answer(StrEnum):
    """What an endpoint did with a call, as far as limits are concerned."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Admission:
    """Started, or when to ask again; None: when a call in flight has ended."""

    limiter: Limiter
    started: bool
    wait_seconds: float | None = None


def new_limiter(policy: LimiterPolicy, *, now: float) -> Limiter:
    """Begin at the most calls in flight; the first refusal halves it."""
    return Limiter(
        limit=float(policy.concurrency_max),
        in_flight=0,
        refusals=0,
        halved_at=now - HALVED_AT_MOST_EVERY_SECONDS,
        paused_until=now,
        requests=_burst(policy.requests_per_minute),
        tokens=_burst(policy.tokens_per_minute),
        filled_at=now,
    )


def admit(limiter: Limiter, policy: LimiterPolicy, *, tokens: int, now: float) -> Admission:
    """Start one call of about so many tokens, or say when to ask again."""
    limiter = _filled(limiter, policy, now)
    if limiter.in_flight >= max(1, int(limiter.limit)):
        return Admission(limiter, started=False)
    waits = [
        limiter.paused_until - now,
        _wait(limiter.requests, 1.0, policy.requests_per_minute),
        _wait(limiter.tokens, float(tokens), policy.tokens_per_minute),
    ]
    if max(waits) > 0:
        return Admission(limiter, started=False, wait_seconds=max(waits))
    return Admission(
        replace(
            limiter,
            in_flight=limiter.in_flight + 1,
            requests=limiter.requests - (1 if policy.requests_per_minute else 0),
            tokens=limiter.tokens - (tokens if policy.tokens_per_minute else 0),
        ),
        started=True,
    )


def end(
    limiter: Limiter,
    policy: LimiterPolicy,
    answer: Answer,
    *,
    now: float,
    wait_seconds: float | None = None,
    tokens_over: int = 0,
) -> Limiter:
    """Note the end of a call; `tokens_over` is by how many tokens it was larger than thought."""
    was_full = limiter.in_flight >= int(limiter.limit)
    if policy.tokens_per_minute:
        limiter = replace(limiter, tokens=limiter.tokens - tokens_over)
    limiter = replace(limiter, in_flight=max(0, limiter.in_flight - 1))
    match answer:
        case Answer.TAKEN:
            step = max(1.0, policy.concurrency_max * RISE_SHARE) / max(1.0, limiter.limit)
            risen = min(float(policy.concurrency_max), limiter.limit + step) if was_full else limiter.limit
            return replace(limiter, limit=risen, refusals=0)
        case Answer.REFUSED:
            return _refused(limiter, now=now, wait_seconds=wait_seconds)
        case Answer.UNKNOWN:
            return limiter


def _refused(limiter: Limiter, *, now: float, wait_seconds: float | None) -> Limiter:
    refusals = limiter.refusals + 1
    if now - limiter.halved_at >= HALVED_AT_MOST_EVERY_SECONDS:
        limiter = replace(limiter, limit=max(1.0, limiter.limit / 2), halved_at=now)
    if refusals >= REFUSALS_THAT_PAUSE:
        told = PAUSE_SECONDS if wait_seconds is None else min(wait_seconds, PAUSE_MAX_SECONDS)
        limiter = replace(limiter, paused_until=max(limiter.paused_until, now + told))
    return replace(limiter, refusals=refusals)


def _filled(limiter: Limiter, policy: LimiterPolicy, now: float) -> Limiter:
    if not policy.requests_per_minute and not policy.tokens_per_minute:
        return limiter
    seconds = max(0.0, now - limiter.filled_at)
    return replace(
        limiter,
        requests=_more(limiter.requests, policy.requests_per_minute, seconds),
        tokens=_more(limiter.tokens, policy.tokens_per_minute, seconds),
        filled_at=max(now, limiter.filled_at),
    )


def _burst(a_minute: int | None) -> float:
    return max(1.0, a_minute * BURST_SHARE) if a_minute else 0.0


def _more(level: float, a_minute: int | None, seconds: float) -> float:
    return min(_burst(a_minute), level + a_minute / 60 * seconds) if a_minute else level


def _wait(level: float, wanted: float, a_minute: int | None) -> float:
    if not a_minute:
        return 0.0
    # A call larger than what may go at once goes when all of that is there.
    short = min(wanted, _burst(a_minute)) - level
    # Below a microsecond it is the rounding of the clock.
    return 0.0 if short <= 1e-6 * a_minute else short / a_minute * 60
