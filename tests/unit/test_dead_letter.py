"""What a stage could not take, and the way of its bytes through JSON."""

from hypothesis import given
from hypothesis import strategies as st

from monitor.hops.retry import NoWayBack, way_back
from monitor.intake.dead_letter import (
    HEADER_MAX_BYTES,
    HEADERS_MAX,
    KEY_MAX_BYTES,
    VALUE_MAX_BYTES,
    DeadLetter,
    Position,
    dead_letter,
)
from monitor.publishing import Outgoing
from tests.events import NOON

POSITION = Position(topic="conversation-events", partition=3, offset=77)
BROKERS_LIMIT_BYTES = 1_000_000


def a_letter(
    value: bytes | None = b"{",
    *,
    key: bytes | None = b"c1",
    headers: list[tuple[str, bytes]] | None = None,
    reason: str = "not JSON",
) -> DeadLetter:
    return dead_letter(
        stage="sample",
        fault="undecodable",
        reason=reason,
        position=POSITION,
        value=value,
        key=key,
        headers=headers,
        now=NOON,
    )


@given(st.binary(), st.binary(), st.lists(st.tuples(st.text(max_size=5), st.binary()), max_size=3))
def test_any_bytes_survive_the_way_through_json(
    value: bytes, key: bytes, headers: list[tuple[str, bytes]]
) -> None:
    """A letter is sent again as it was; bytes that are no text are why it is one."""
    letter = a_letter(value, key=key, headers=headers)

    back = DeadLetter.model_validate_json(letter.model_dump_json())

    assert back == letter
    assert (back.value, back.key, list(back.headers)) == (value, key, headers)
    assert not back.is_cut


def test_a_letter_is_kept_by_where_it_came_from() -> None:
    """A message that is read again is the same letter."""
    assert a_letter().id == a_letter(b"other").id == "conversation-events/3/77"


def test_what_has_no_bytes_is_a_letter_too() -> None:
    """A tombstone on a topic of events."""
    letter = a_letter(None, key=None)

    assert (letter.value, letter.key, letter.headers, letter.is_cut) == (b"", b"", (), False)


def test_a_letter_is_never_larger_than_a_broker_takes() -> None:
    """A letter that is refused stops its partition for good; the rest is at its source, and it says so."""
    letter = a_letter(
        b"x" * 5_000_000,
        key=b"k" * 1_000_000,
        headers=[("h", b"x" * 100_000)] * 100,
        reason="r" * 1_000_000,
    )

    assert len(letter.model_dump_json()) < BROKERS_LIMIT_BYTES
    assert letter.is_cut
    assert letter.size == 5_000_000
    assert (len(letter.value), len(letter.key)) == (VALUE_MAX_BYTES, KEY_MAX_BYTES)
    assert len(letter.headers) == HEADERS_MAX
    assert {len(value) for _, value in letter.headers} == {HEADER_MAX_BYTES}
    assert DeadLetter.model_validate_json(letter.model_dump_json()).is_cut


def test_a_letter_that_was_cut_has_no_way_back() -> None:
    """Half an event sent again would be another event."""
    whole = way_back(a_letter(), prefix="", now=NOON)
    cut = way_back(a_letter(b"x" * 2 * VALUE_MAX_BYTES), prefix="", now=NOON)

    assert isinstance(whole, Outgoing)
    assert isinstance(cut, NoWayBack)
    assert str(2 * VALUE_MAX_BYTES) in cut.reason
