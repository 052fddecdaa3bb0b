"""The two depths of reading an event, and how far they agree."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.intake.decode import ClockGlimpse, Fault, Glimpse, Rejected, decode, glimpse
from tests.events import NOON, an_event, raw

MAX_BYTES = 10_000
READ_BY_GLIMPSE = {
    "event_id",
    "conversation_id",
    "type",
    "occurred_at",
    "turn_index",
    "assistant",
    "environment",
    "tenant",
    "intent",
    "channel",
    "language",
    "signals",
}
IN_SERVED_BY = {"model_asked", "model_answered", "prompt_hash"}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**60, 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "production", "turn", "up", "down", "é\x00\x1f", "y" * 129, "z" * 257]),
    st.text(max_size=5),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(
        ["thumb", "escalated", "fallback", "refused", "model_asked", "prompt_hash", "text"]
    )
    return st.dictionaries(names, inner, max_size=3)


anything = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=2), objects(inner)), max_leaves=4
)
times = st.one_of(
    anything,
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
    st.sampled_from(["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.1234567Z", "0001-01-01T00:00:00+14:00"]),
)


fields: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["event_id", "conversation_id"], anything),
    "type": st.sampled_from(
        ["turn", "conversation", "end", "feedback", "summary", "clock", "other", 7, None]
    ),
    "occurred_at": times,
    **dict.fromkeys(
        ["turn_index", "assistant", "environment", "tenant", "intent", "channel", "language", "signals"],
        anything,
    ),
    "served_by": anything,
    "answered_at": times,
    "messages": anything,
    "references": anything,
    "time": times,
    "unknown": anything,
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an event with up to three fields that may be anything, or be missing."""
    event = an_event(kind=draw(st.sampled_from(["turn", "conversation", "end", "feedback", "summary"])))
    for name in draw(st.lists(st.sampled_from(list(fields)), max_size=3, unique=True)):
        if draw(st.integers(0, 5)):
            event[name] = draw(fields[name])
        else:
            event.pop(name, None)
    return event


@given(events())
@settings(max_examples=600, deadline=None)
def test_what_the_glimpse_takes_is_refused_later_only_for_what_it_does_not_read(
    event: dict[str, Any],
) -> None:
    """Else the sampler counts as sampled what can never be judged, and the census counts what is no event."""
    value = json.dumps(event).encode()
    seen, read = glimpse(value, max_bytes=MAX_BYTES), decode(value)

    if isinstance(seen, Glimpse) and isinstance(read, Rejected):
        for line in read.reason.split("; "):
            place = line.partition(": ")[0].split(".")
            # The union names the kind first.
            name = place[1] if len(place) > 1 else ""
            assert name not in READ_BY_GLIMPSE, read.reason
            if name == "served_by":
                assert len(place) > 2
                assert place[2] not in IN_SERVED_BY, read.reason


@given(events())
@settings(max_examples=300, deadline=None)
def test_what_both_read_they_read_alike(event: dict[str, Any]) -> None:
    """A decision is made on the one and explained by the other."""
    value = json.dumps(event).encode()
    seen, read = glimpse(value, max_bytes=MAX_BYTES), decode(value)
    if isinstance(seen, Rejected | ClockGlimpse) or isinstance(read, Rejected):
        return

    for name in READ_BY_GLIMPSE - {"signals", "occurred_at"}:
        assert getattr(seen, name) == getattr(read, name), name
    # One keeps nine digits' rounding, the other cuts them off.
    assert abs(seen.occurred_at - read.occurred_at) <= timedelta(microseconds=1)
    signals = read.signals
    assert (seen.signals.thumb, seen.signals.escalated) == (signals.thumb, signals.escalated)
    assert (seen.signals.fallback, seen.signals.refused) == (signals.fallback, signals.refused)
    assert seen.fell_back is (read.served_by.fell_back or signals.fallback)


@given(st.binary(max_size=60))
def test_no_bytes_make_either_raise(value: bytes) -> None:
    """One message that nobody can read must not stop all that are behind it."""
    assert isinstance(glimpse(value, max_bytes=MAX_BYTES), Rejected)
    assert isinstance(decode(value), Rejected)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b'"turn"',
        b'{"x":' + b"[" * 4000 + b"]" * 4000 + b"}",
        raw().replace(b"parcel", b"par\\ud800cel").replace(b"c1-turn-0", b"\\ud800"),
        raw().replace(b"c1-turn-0", b"\xff"),
    ],
    ids=["nothing", "no text", "half", "null", "list", "text", "too deep", "half a sign", "no UTF-8"],
)
def test_what_is_no_event_at_all_is_told_as_such(value: bytes) -> None:
    """It goes to the dead letters with a reason that a person understands."""
    for rejected in (glimpse(value, max_bytes=MAX_BYTES), decode(value)):
        assert isinstance(rejected, Rejected)
        assert rejected.fault in {Fault.UNDECODABLE, Fault.INVALID}
        assert rejected.reason
    whole = value in {b"null", b"[]", b'"turn"'}
    assert (glimpse(value, max_bytes=MAX_BYTES).fault is Fault.INVALID) is whole  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("event_id", ""),
        ("event_id", "x" * 257),
        ("conversation_id", 7),
        ("type", "message"),
        ("occurred_at", "yesterday"),
        ("occurred_at", "2026-01-31T12:00:00"),
        ("turn_index", -1),
        ("turn_index", "one"),
        ("environment", "prod"),
        ("assistant", None),
        ("tenant", ""),
        ("intent", "x" * 129),
        ("signals", {"thumb": "sideways"}),
        ("signals", []),
        ("served_by", {"prompt_hash": ""}),
    ],
)
def test_a_wrong_field_is_named_by_both(field: str, wrong: Any) -> None:
    """The producer has to find it."""
    value = json.dumps(an_event() | {field: wrong}).encode()
    for rejected in (glimpse(value, max_bytes=MAX_BYTES), decode(value)):
        assert isinstance(rejected, Rejected)
        assert rejected.fault is Fault.INVALID
        assert field in rejected.reason


@pytest.mark.parametrize("field", ["event_id", "conversation_id", "type", "occurred_at"])
def test_a_missing_field_is_named_by_both(field: str) -> None:
    """These four are all that is required."""
    event = an_event()
    del event[field]
    value = json.dumps(event).encode()

    for rejected in (glimpse(value, max_bytes=MAX_BYTES), decode(value)):
        assert isinstance(rejected, Rejected)
        assert field in rejected.reason


def test_a_reason_holds_no_word_of_the_message() -> None:
    """Reasons are logged and listed; what users wrote is not."""
    rejected = decode(raw(messages=[{"role": "user", "content": {"secret": "Quedlinburg"}}]))

    assert isinstance(rejected, Rejected)
    assert "Quedlinburg" not in rejected.reason


def test_an_event_over_the_limit_is_oversize_and_not_read() -> None:
    """The limit protects the memory; the reason names the setting and the way out."""
    value = raw()
    assert isinstance(glimpse(value, max_bytes=len(value)), Glimpse)

    rejected = glimpse(value, max_bytes=len(value) - 1)

    assert isinstance(rejected, Rejected)
    assert rejected.fault is Fault.OVERSIZE
    assert str(len(value)) in rejected.reason
    assert "intake.max_event_bytes" in rejected.reason


def test_a_feedback_that_says_nothing_is_refused_at_the_door() -> None:
    """It reads the signals, so it must know that there is none."""
    for signals in ({}, {"thumb": None}, {"escalated": False}):
        rejected = glimpse(raw(kind="feedback", signals=signals), max_bytes=MAX_BYTES)
        assert isinstance(rejected, Rejected)
        assert rejected.reason.startswith("signals: ")


class TestClockMarkers:
    def test_a_marker_is_told_from_an_event(self) -> None:
        """It moves the stream's clock and is counted nowhere."""
        marker = glimpse(
            json.dumps({"type": "clock", "time": "2026-03-10T13:00:00+01:00"}).encode(), max_bytes=MAX_BYTES
        )

        assert marker == ClockGlimpse(time=NOON)

    @pytest.mark.parametrize(
        "marker",
        [
            {"type": "clock"},
            {"type": "clock", "time": "2026-03-10T12:00:00"},
            {"type": "clock", "time": "noon"},
            {"type": "clock", "time": "0001-01-01T00:00:00+14:00"},
            {"type": "watch", "time": "2026-03-10T12:00:00Z"},
        ],
    )
    def test_a_marker_without_a_time_that_can_be_used_is_refused(self, marker: dict[str, str]) -> None:
        """A clock that was set wrong would close every conversation."""
        assert isinstance(glimpse(json.dumps(marker).encode(), max_bytes=MAX_BYTES), Rejected)
