"""Which documents an answer is held against: those the event names, as they were when the answer was given."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from monitor.intake.event import Moment, Reference, Value


class Document(Value):
    """One reference document as it was when it was fetched."""

    id: str
    text: str
    version: str
    valid_from: Moment | None = None
    """Since when it is in force; None for always."""

    @classmethod
    def of(
        cls, doc_id: str, text: str, version: str | None = None, valid_from: datetime | None = None
    ) -> "Document":
        """Build a document; without a version of its own it gets the hash of its text."""
        return cls(id=doc_id, text=text, version=version or digest(text), valid_from=valid_from)


def digest(text: str) -> str:
    """Return the hash of a document's text, 12 hex digits."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


class HttpReferencesPolicy(BaseModel):
    """An endpoint that has the documents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, Field(pattern=r"^https?://.*\{id\}")]
    token_variable: str | None = None
    ttl_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    attempts: Annotated[int, Field(ge=1, le=5)] = 2


class ReferencesPolicy(BaseModel):
    """Where documents come from, and how much of them is read and shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Annotated[tuple[Literal["event", "folder", "http"], ...], Field(min_length=1)] = (
        "event",
        "folder",
        "http",
    )
    grounded: tuple[str, ...] = ("factual_correctness", "policy_adherence")
    max_chars: Annotated[int, Field(ge=1_000, le=2_000_000)] = 200_000
    passage_chars: Annotated[int, Field(ge=2_000, le=200_000)] = 12_000
    http: HttpReferencesPolicy | None = None


class ReferenceSource(Protocol):
    """Where documents are looked up by id."""

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return the documents that are known; an unknown id is simply not among them."""
        ...


class Gap(StrEnum):
    """Why there is no document; the later in this list, the more it says."""

    UNKNOWN = "unknown"
    NOT_IN_FORCE = "not_in_force"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    UNAVAILABLE = "unavailable"


class NoDocument(Value):
    """A document that is not there, and why."""

    id: str
    gap: Gap
    reason: str


class DocumentSource(Protocol):
    """Whoever has documents in versions. What is not there is a value; it raises only for bugs."""

    async def fetch(
        self, reference: Reference, *, at: datetime, version: str | None = None
    ) -> Document | NoDocument:
        """Return the version in force at a time, or exactly the version that is named."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class EventReferences:
    """Documents that came with their text in the event itself."""

    def __init__(self, *, max_chars: int) -> None:
        """Bound what is taken from an event; what is cut is said at the cut."""
        self._max_chars = max_chars

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return the documents whose text is in the event; a judge behind `Consulting` needs no others."""
        return tuple(
            Document.of(one.id, shortened(one.text, self._max_chars), one.version)
            for one in references
            if one.text is not None
        )

    async def fetch(
        self, reference: Reference, *, at: datetime, version: str | None = None
    ) -> Document | NoDocument:
        """Return the text of the event; it is the version that the event says, whatever the time."""
        del at
        if reference.text is None or (version is not None and version != reference.version):
            return NoDocument(id=reference.id, gap=Gap.UNKNOWN, reason="its text is not in the event")
        text = shortened(reference.text, self._max_chars)
        return Document.of(reference.id, text, reference.version)

    async def close(self) -> None:
        """Hold nothing."""


class Chain:
    """Several sources, the first that has a document wins."""

    def __init__(self, sources: Sequence[DocumentSource]) -> None:
        """Take the sources in the order in which they are asked."""
        self._sources = tuple(sources)

    async def fetch(
        self, reference: Reference, *, at: datetime, version: str | None = None
    ) -> Document | NoDocument:
        """Return the first document found; else the gap that says most."""
        gaps = []
        for source in self._sources:
            found = await source.fetch(reference, at=at, version=version)
            if isinstance(found, Document):
                return found
            gaps.append(found)
        order = list(Gap)
        if not gaps:
            return NoDocument(id=reference.id, gap=Gap.UNKNOWN, reason="there is no source of documents")
        # Of two that say as much the later source's: that the event has no text is no news.
        return max(reversed(gaps), key=lambda one: order.index(one.gap))

    async def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            await source.close()


def in_force(versions: Sequence[Document], *, at: datetime) -> Document | None:
    """Return the version of a document that was in force at a time; None before the first."""
    known = [one for one in versions if one.valid_from is None or one.valid_from <= at]
    return max(known, key=lambda one: (one.valid_from is not None, one.valid_from), default=None)


def shortened(text: str, max_chars: int) -> str:
    """Return a text within its limit; the cut says itself."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}\n[cut here: {len(text) - max_chars} more characters]"
