"""A first user message in, an intent out: small, deterministic, and versioned by the words it is given."""

import hashlib
import re
from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field

UNKNOWN = "unknown"


class IntentPolicy(BaseModel):
    """Words by intent; the first intent, in the order of the file, with a word in the message wins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keywords: dict[Annotated[str, Field(min_length=1, max_length=128)], tuple[str, ...]] = {}


class _Raw(msgspec.Struct, gc=False):
    role: str = ""
    content: msgspec.Raw = msgspec.Raw(b"")


class _Part(msgspec.Struct, gc=False):
    text: str = ""


_messages = msgspec.json.Decoder(list[_Raw]).decode
_content = msgspec.json.Decoder(str | list[_Part] | None).decode
_USERS = frozenset({"user", "human"})
_READ_CHARACTERS = 2000
"""How much of a message is read: an intent stands at the beginning, and a long paste must not cost time."""


class IntentClassifier:
    """Finds the intent of a conversation whose events carry none."""

    def __init__(self, policy: IntentPolicy) -> None:
        """Compile the words; their hash is the classifier's version."""
        self.version = hashlib.blake2b(policy.model_dump_json().encode(), digest_size=6).hexdigest()
        self._rules = [
            (intent, re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")", re.IGNORECASE))
            for intent, words in policy.keywords.items()
            if words
        ]

    def of_text(self, text: str) -> str:
        """Return the intent of one user message, `unknown` where no word fits."""
        head = text[:_READ_CHARACTERS]
        return next((intent for intent, words in self._rules if words.search(head)), UNKNOWN)

    def of_raw_messages(self, raw: msgspec.Raw) -> str:
        """Return the intent of undecoded messages; anything unreadable is `unknown` here and judged by decode()."""
        if not self._rules or not bytes(raw):
            return UNKNOWN
        try:
            first = next((message for message in _messages(raw) if message.role in _USERS), None)
            content = _content(first.content) if first else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return UNKNOWN
        if isinstance(content, list):
            content = "\n".join(part.text for part in content)
        return self.of_text(content or "")
