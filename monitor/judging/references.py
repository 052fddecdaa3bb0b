"""Which documents an answer is held against: those the event names, and no others."""

import hashlib
from typing import Protocol

from monitor.intake.event import Reference, Value


class Document(Value):
    """One reference document as it was when it was fetched."""

    id: str
    text: str
    version: str

    @classmethod
    def of(cls, doc_id: str, text: str, version: str | None = None) -> "Document":
        """Build a document; without a version of its own it gets the hash of its text."""
        return cls(
            id=doc_id,
            text=text,
            version=version or hashlib.blake2b(text.encode(), digest_size=6).hexdigest(),
        )


class ReferenceSource(Protocol):
    """Where documents are looked up by id."""

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return the documents that are known; an unknown id is simply not among them."""
        ...
