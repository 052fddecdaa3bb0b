"""The classifier for conversations whose events carry no intent."""

import json
from typing import Any

import msgspec
import pytest

from monitor.intake.intents import UNKNOWN, IntentClassifier, IntentPolicy

POLICY = IntentPolicy(
    keywords={"refund": ("refund", "money back"), "shipping": ("parcel", "deliver"), "empty": ()}
)
CLASSIFIER = IntentClassifier(POLICY)


def of(messages: Any) -> str:
    return CLASSIFIER.of_raw_messages(msgspec.Raw(json.dumps(messages).encode()))


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("I want a REFUND", "refund"),
        ("can I have my money back?", "refund"),
        ("when is it delivered", "shipping"),
        ("the parcel, and a refund", "refund"),
        ("undeliverable", UNKNOWN),
        ("hello", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_first_intent_in_the_files_order_with_a_word_in_the_text_wins(text: str, intent: str) -> None:
    """The order is the only priority there is; a word counts from its beginning."""
    assert CLASSIFIER.of_text(text) == intent


def test_words_are_words_and_no_patterns() -> None:
    """Whoever writes `c++` or `a.b` in a file means the signs."""
    classifier = IntentClassifier(IntentPolicy(keywords={"code": ("c++ (old)", "a.b")}))

    assert classifier.of_text("my C++ (old) build") == "code"
    assert classifier.of_text("axb") == UNKNOWN


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    """A pasted log must not cost time on the path that every event takes."""
    assert CLASSIFIER.of_text("x" * 1990 + " refund") == "refund"
    assert CLASSIFIER.of_text("x" * 2000 + " refund") == UNKNOWN


def test_the_version_is_that_of_the_words() -> None:
    """Changed words change the strata, and that must show."""
    assert IntentClassifier(POLICY).version == CLASSIFIER.version
    assert IntentClassifier(IntentPolicy(keywords={"refund": ("refund",)})).version != CLASSIFIER.version


class TestUndecodedMessages:
    def test_the_first_user_message_decides(self) -> None:
        """What the assistant says, or the user later, is no stratum: it would depend on the answer."""
        assert (
            of(
                [
                    {"role": "system", "content": "refund"},
                    {"role": "user", "content": "my parcel"},
                    {"role": "assistant", "content": "a refund?"},
                    {"role": "user", "content": "refund"},
                ]
            )
            == "shipping"
        )

    def test_parts_and_other_names_are_read_as_the_full_decode_reads_them(self) -> None:
        """The sampler's stratum and the conversation's must be one."""
        parts = [{"type": "image_url", "image_url": {}}, {"type": "text", "text": "my parcel"}]

        assert of([{"role": "human", "content": parts}]) == "shipping"

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"{",
            b"{}",
            b"[]",
            b"[1]",
            b'[{"role": 7}]',
            b'[{"role": "user"}]',
            b'[{"role": "user", "content": null}]',
            b'[{"role": "user", "content": 7}]',
            b'[{"role": "user", "content": ["refund"]}]',
            b'[{"role": "user", "content": "\xff refund"}]',
            b'[{"role": "user", "content": "\\ud800 refund"}]',
            b'[{"role": "user", "content": ' + b"[" * 3000 + b"]" * 3000 + b"}]",
        ],
    )
    def test_what_cannot_be_read_is_unknown(self, raw: bytes) -> None:
        """The sampler sees everything that the world sends, and must see the next message too."""
        assert CLASSIFIER.of_raw_messages(msgspec.Raw(raw)) == UNKNOWN

    def test_without_words_nothing_is_read(self) -> None:
        """By default there are none, and then it may cost nothing."""
        classifier = IntentClassifier(IntentPolicy())

        assert classifier.of_raw_messages(msgspec.Raw(b"not even JSON")) == UNKNOWN
