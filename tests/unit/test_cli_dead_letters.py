"""What dead letters show, and where they go back to."""

import json
from datetime import timedelta

import pytest

from monitor.adapters.kafka_admin import Held
from monitor.cli.dead_letters import letters_of, matching, values_of
from monitor.hops.retry import NoWayBack, way_back
from monitor.intake.dead_letter import DeadLetter, Position, dead_letter
from monitor.judging.judgment import JudgeRequest
from monitor.publishing import Outgoing
from tests.conversations import NOON, a_conversation, a_request, assistant, user

SECRET = b"my card is 4111 1111 1111 1111"


def a_letter(stage: str = "sample", topic: str = "conversation-events", **fields: object) -> DeadLetter:
    given = {
        "fault": "invalid",
        "reason": "not JSON",
        "value": SECRET,
        "key": b"c1",
        "headers": [("a", b"1")],
    }
    given |= {"position": Position(topic=topic, partition=2, offset=17), "now": NOON}
    return dead_letter(stage=stage, **(given | fields))  # type: ignore[arg-type]


def held(letter: DeadLetter | None, letter_id: str = "", value: bytes | None = None) -> Held:
    if letter is not None:
        letter_id, value = letter.id, letter.model_dump_json().encode()
    return Held("dead-letters", 0, 0, 0, letter_id.encode(), value, ())


@pytest.mark.parametrize(
    ("stage", "topic"),
    [
        ("sample", "conversation-events"),
        ("sample", "summary-events"),
        ("assemble", "sampled-events"),
        ("judge", "judge-requests"),
        ("aggregate", "judgments"),
    ],
)
def test_a_letter_goes_back_as_it_was(stage: str, topic: str) -> None:
    """The stage decides on the same bytes, key, headers and partition, so its ids recognise a repetition."""
    back = way_back(a_letter(stage, f"ns.{topic}"), prefix="ns.", now=NOON)

    assert back == Outgoing(f"ns.{topic}", b"c1", SECRET, 2, (("a", b"1"),))


@pytest.mark.parametrize(
    ("stage", "topic"), [("judge", "judgments"), ("notify", "alerts"), ("sample", "other")]
)
def test_a_letter_never_goes_where_its_stage_does_not_read(stage: str, topic: str) -> None:
    """A forged or foreign letter must not write into any topic it names."""
    assert isinstance(way_back(a_letter(stage, topic), prefix="", now=NOON), NoWayBack)


def test_an_expired_request_is_asked_anew() -> None:
    """With the time of the first asking it would only expire again; the judgment's id does not change."""
    request = a_request(a_conversation([user("hi"), assistant("hello")]))
    letter = a_letter("judge", "judge-requests", value=request.model_dump_json().encode(), fault="expired")

    back = way_back(letter, prefix="", now=NOON + timedelta(days=3))

    assert isinstance(back, Outgoing)
    assert back.value is not None
    again = JudgeRequest.model_validate_json(back.value)
    assert again.requested_at == NOON + timedelta(days=3)
    assert again.target == request.target
    assert again.conversation == request.conversation


def test_what_is_listed_never_holds_the_value() -> None:
    """Dead letters hold raw bytes of users."""
    reason = "1 validation error\nid\n  bad [type=x, input_value='my card is 4111', input_type=str]"
    [kept] = letters_of([held(a_letter(reason=reason))])

    shown = json.dumps(values_of(kept))

    assert "4111" not in shown
    assert '"bytes": 30' in shown
    assert "validation error" in shown


def test_a_letter_that_was_retried_is_done_until_it_comes_again() -> None:
    """`retry --all` twice must not send it twice, and a new failure at the same place must show."""
    letter = a_letter()
    retried = [held(letter), held(None, letter.id)]

    assert [one.retried for one in letters_of(retried)] == [True]
    assert [one.retried for one in letters_of([*retried, held(letter)])] == [False]


def test_what_is_no_letter_is_named_and_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """One broken entry must not hide the others."""
    assert len(letters_of([held(None, "x", b"{"), held(a_letter())])) == 1
    assert "no dead letter" in capsys.readouterr().err


def test_letters_are_chosen_by_stage_and_fault() -> None:
    """A retry after a fix concerns one fault."""
    one = letters_of([held(a_letter(fault="oversize"))])

    assert matching(one, None, None) == matching(one, "sample", "oversize") == one
    assert matching(one, "judge", None) == matching(one, None, "invalid") == []
