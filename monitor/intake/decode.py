"""Bytes in, an event or the reason why there is none out.

Two depths: `glimpse()` reads only what sampling needs, `decode()` validates everything and is paid for the few.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from pydantic import ValidationError

from monitor.intake.event import (
    CONVERSATION_EVENT,
    EVENT_TYPES,
    NO_SIGNAL_SAID,
    EndEvent,
    FeedbackEvent,
    SummaryEvent,
    TurnEvent,
    Value,
    WholeConversationEvent,
    is_another_model,
)

AnyEvent = TurnEvent | WholeConversationEvent | EndEvent | FeedbackEvent | SummaryEvent


class Fault(StrEnum):
    """Why bytes did not become an event."""

    UNDECODABLE = "undecodable"
    INVALID = "invalid"
    OVERSIZE = "oversize"


class Rejected(Value):
    """Bytes that are no event, and what to do about it."""

    fault: Fault
    reason: str


# Checked while it is decoded: what this path checks in Python is paid on every event. The bounds are those of
# the full event, so that what passes here is only refused later for what is not read here.
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Attribute = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class SignalsGlimpse(msgspec.Struct, gc=False):
    """The signals, undecorated."""

    thumb: Literal["up", "down"] | None = None
    escalated: bool = False
    fallback: bool = False
    refused: bool = False


class ServedGlimpse(msgspec.Struct, gc=False):
    """What sampling and the census need of the serving configuration."""

    model_asked: _Attribute | None = None
    model_answered: _Attribute | None = None
    prompt_hash: _Attribute | None = None


NO_SIGNALS = SignalsGlimpse()
"""What an event without signals has; by far the most, so the hot path knows it by identity."""
_UNKNOWN_SERVED = ServedGlimpse()


class Glimpse(msgspec.Struct, gc=False):
    """The fields that sampling, the census and the clock read; named here and nowhere else."""

    event_id: _Id
    conversation_id: _Id
    type: Literal["turn", "conversation", "end", "feedback", "summary"]
    occurred_at: Annotated[datetime, msgspec.Meta(tz=True)]
    turn_index: Annotated[int, msgspec.Meta(ge=0)] | None = None
    assistant: _Attribute = "default"
    environment: Literal["production", "staging", "shadow"] = "production"
    tenant: _Attribute | None = None
    intent: _Attribute | None = None
    channel: _Attribute | None = None
    language: _Attribute | None = None
    signals: SignalsGlimpse = msgspec.field(default_factory=lambda: NO_SIGNALS)
    served_by: ServedGlimpse = msgspec.field(default_factory=lambda: _UNKNOWN_SERVED)
    messages: msgspec.Raw = msgspec.Raw(b"")

    @property
    def fell_back(self) -> bool:
        """Tell whether another model answered than the one asked for, or the producer says so."""
        served = self.served_by
        return self.signals.fallback or is_another_model(served.model_asked, served.model_answered)


class ClockGlimpse(msgspec.Struct, gc=False):
    """A clock marker on the sampler's path."""

    time: datetime


class _OnlyType(msgspec.Struct, gc=False):
    type: str = ""


_glimpse = msgspec.json.Decoder(Glimpse).decode
_clock = msgspec.json.Decoder(ClockGlimpse).decode
_only_type = msgspec.json.Decoder(_OnlyType).decode
_FIRST_YEAR, _LAST_YEAR = 1, 9999
"""In these years a moment may have no equal in UTC."""
_CURES = {
    "$.occurred_at": "; write it like 2026-01-31T12:00:00Z",
    "$.type": f"; it is one of {', '.join(EVENT_TYPES)}",
}


def glimpse(raw: bytes, *, max_bytes: int) -> Glimpse | ClockGlimpse | Rejected:
    """Read what sampling needs of one event."""
    if len(raw) > max_bytes:
        return Rejected(
            fault=Fault.OVERSIZE,
            reason=f"{len(raw)} bytes, more than intake.max_event_bytes ({max_bytes}); "
            "send it in turns, or raise the limit",
        )
    try:
        seen = _glimpse(raw)
    except msgspec.ValidationError as error:
        return _clock_or_rejected(raw, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Rejected(fault=Fault.UNDECODABLE, reason=f"not JSON: {error}")
    except RecursionError:
        return Rejected(fault=Fault.UNDECODABLE, reason="not JSON that can be read: nested too deeply")
    if not _FIRST_YEAR < seen.occurred_at.year < _LAST_YEAR:
        return Rejected(fault=Fault.INVALID, reason="occurred_at: lies outside the calendar")
    says_nothing = seen.type == "feedback" and seen.signals == NO_SIGNALS
    return Rejected(fault=Fault.INVALID, reason=f"signals: {NO_SIGNAL_SAID}") if says_nothing else seen


def _clock_or_rejected(raw: bytes, complaint: str) -> ClockGlimpse | Rejected:
    # Markers are rare, so the common event does not pay for telling them apart.
    try:
        if _only_type(raw).type == "clock":
            marker = _clock(raw)
            if marker.time.tzinfo is not None:
                return ClockGlimpse(time=marker.time.astimezone(UTC))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        pass  # the first complaint says more
    cure = next((cure for sign, cure in _CURES.items() if sign in complaint), "")
    return Rejected(fault=Fault.INVALID, reason=complaint + cure)


def decode(raw: bytes) -> AnyEvent | Rejected:
    """Validate one event in full; never raises for what the bytes hold."""
    try:
        return CONVERSATION_EVENT.validate_json(raw)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        fault = Fault.UNDECODABLE if faults[0]["type"] == "json_invalid" else Fault.INVALID
        lines = [f"{'.'.join(str(p) for p in f['loc'])}: {f['msg']}" for f in faults[:5]]
        return Rejected(fault=fault, reason="; ".join(lines))
