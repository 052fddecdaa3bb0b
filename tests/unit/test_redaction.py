import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.intake.event import CONVERSATION_EVENT
from monitor.intake.redaction import PLACEHOLDER, mask_event, mask_json, mask_text


def masked(text: str, region: str = "US") -> str:
    return mask_text(text, key="c1", region=region)


def an_event(**changes: Any) -> Any:
    event = {
        "event_id": "e1",
        "conversation_id": "c1",
        "type": "turn",
        "occurred_at": "2026-01-05T12:00:00Z",
        "messages": [{"role": "user", "content": "hi"}],
    }
    return CONVERSATION_EVENT.validate_python(event | changes)


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        ("write to bob.smith+x@mail.example.co.uk please", "bob.smith+x@mail.example.co.uk", "EMAIL"),
        ("my card is 4111 1111 1111 1111, ok?", "4111 1111 1111 1111", "CARD"),
        ("card 5555-5555-5555-4444", "5555-5555-5555-4444", "CARD"),
        ("amex 378282246310005.", "378282246310005", "CARD"),
        ("IBAN DE89 3704 0044 0532 0130 00 is mine", "DE89 3704 0044 0532 0130 00", "IBAN"),
        ("GB29NWBK60161331926819", "GB29NWBK60161331926819", "IBAN"),
        ("call (202) 555-0143 now", "(202) 555-0143", "PHONE"),
        ("+44 20 7946 0958", "+44 20 7946 0958", "PHONE"),
        ("you can call me at 2025550143", "2025550143", "PHONE"),
        ("ssn 536-90-4399", "536-90-4399", "ID"),
        ("NIE X1234567L", "X1234567L", "ID"),
        ("codice RSSMRA85T10A562S", "RSSMRA85T10A562S", "ID"),
        ("cpf 111.444.777-35", "111.444.777-35", "ID"),
        ("from 192.168.0.17 yesterday", "192.168.0.17", "IP"),
        ("ip 2001:db8::ff00:42:8329", "2001:db8::ff00:42:8329", "IP"),
    ],
)
def test_personal_data_is_masked_by_its_kind(text: str, secret: str, kind: str) -> None:
    result = masked(text)

    assert secret not in result
    assert f"[{kind}_" in result


@pytest.mark.parametrize(
    "text",
    [
        "order TH-48213 and ticket RT-2096",
        "order number 2025550143",
        "$1,299.00 plus 1299 dollars is 2,598",
        "delivered 2026-03-10 15:30:22, due 03/24/2026",
        "tracking 1Z999AA10123456784 and 9400110200881234567890",
        "flight HAT079 departs at 10:00:00 for $345",
        "card ending in 9734",
        "4111 1111 1111 1112 fails the check digit",
        "version 1.2.3.4 and v10.0.19.1",
        "std::vector and a::b",
        "5-7 business days, 24/7, 100%",
        "https://x.example/status/4111111111111111",
        "gift_card_3112961 and credit_card_6198952",
    ],
)
def test_order_numbers_money_dates_and_the_like_survive(text: str) -> None:
    """A transcript without its facts cannot be judged."""
    assert masked(text) == text


def test_the_same_value_has_the_same_placeholder_in_one_conversation_only() -> None:
    """Turns arrive separately, so sameness must come from the value, without any state."""
    one = mask_text("I am bob@example.com", key="c1")
    again = mask_text("still BOB@example.com", key="c1")
    elsewhere = mask_text("I am bob@example.com", key="c2")

    assert one.split()[-1] == again.split()[-1]
    assert one != elsewhere


@pytest.mark.parametrize("zero", ["\uff10", "\u0660", "\u0966"])
def test_digits_of_other_scripts_are_digits(zero: str) -> None:
    """Full-width, Arabic or Devanagari: a card is a card, and what is none stops no event."""
    written = "".join(chr(ord(zero) + int(digit)) for digit in "4111111111111111")

    assert masked(f"card {written}, ok") == masked("card 4111111111111111, ok")
    assert masked(f"code {written[:15]}") == f"code {written[:15]}"


def test_two_spellings_of_a_phone_are_one_value() -> None:
    assert masked("(202) 555-0143") == masked("+1 202-555-0143")


def test_a_phone_without_country_code_needs_the_right_region() -> None:
    assert masked("030 901820", region="DE").startswith("[PHONE_")
    assert masked("030 901820", region="US") == "030 901820"


def test_tool_arguments_stay_valid_json() -> None:
    call = {
        "id": "1",
        "name": "pay",
        "arguments": '{"card": 4111111111111111, "to": "bob\\u0040example.com", "n": 3}',
    }
    event = an_event(messages=[{"role": "assistant", "content": None, "tool_calls": [call]}])

    arguments = mask_event(event).messages[0].tool_calls[0].arguments

    read = json.loads(arguments)
    assert read["n"] == 3
    assert read["card"].startswith("[CARD_")
    assert read["to"].startswith("[EMAIL_")


def test_a_key_given_twice_hides_nothing() -> None:
    assert "bob@example.com" not in mask_json('{"a": "bob@example.com", "a": "x"}', key="c1")


def test_invalid_arguments_are_masked_as_text() -> None:
    """The judge has to see that they are invalid, so they are not repaired."""
    assert mask_json('{"to": "bob@example.com"', key="c1").startswith('{"to": "[EMAIL_')


def test_arguments_without_personal_data_stay_byte_for_byte() -> None:
    arguments = '{ "order_id":"TH-1",  "n": 1.50 }'

    assert mask_json(arguments, key="c1") == arguments


def test_an_event_without_personal_data_is_the_same_object() -> None:
    event = an_event()

    assert mask_event(event) is event


def test_every_type_of_event_is_masked() -> None:
    mail = {"role": "user", "content": "bob@example.com"}
    summary = an_event(
        type="summary",
        sections=[{"key": "s", "text": "He is bob@example.com"}],
        transcript=[mail],
        messages=None,
    )
    for event in (an_event(messages=[mail]), an_event(type="conversation", messages=[mail]), summary):
        result = mask_event(event)
        assert "bob@" not in result.model_dump_json()
        assert type(result) is type(event)
    assert mask_event(an_event(type="end")).type == "end"


def test_ids_and_attributes_are_not_touched() -> None:
    event = an_event(
        conversation_id="bob@example.com", messages=[{"role": "user", "content": "x@example.com"}]
    )

    assert mask_event(event).conversation_id == "bob@example.com"


@given(st.text(alphabet="0123456789 -.@abc[](){}:,+/ID_", max_size=80))
def test_masking_twice_is_masking_once(text: str) -> None:
    """A redelivered or replayed event must read the same."""
    once = masked(text)

    assert masked(once) == once


@given(
    st.recursive(
        st.text(max_size=20) | st.integers() | st.none(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    )
)
def test_masked_json_is_json(value: Any) -> None:
    json.loads(mask_json(json.dumps(value), key="c1"))


def test_placeholders_are_recognised_with_and_without_a_number() -> None:
    assert PLACEHOLDER.fullmatch("[EMAIL]")
    assert PLACEHOLDER.fullmatch(masked("bob@example.com"))
