"""What a stage could not take: its reason, where it came from, and the bytes, so that nothing is lost."""

import base64
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from monitor.intake.event import Moment

VALUE_MAX_BYTES = 600_000
"""Bytes kept of a value. In base64 it is a third longer, and a letter that no broker takes stops its partition."""
KEY_MAX_BYTES, HEADER_MAX_BYTES, HEADERS_MAX = 4096, 4096, 20
"""What is kept of keys and headers, for the same reason."""


def _from_base64(raw: object) -> object:
    return base64.b64decode(raw, validate=True) if isinstance(raw, str) else raw


Bytes = Annotated[
    bytes,
    BeforeValidator(_from_base64),
    PlainSerializer(lambda raw: base64.b64encode(raw).decode(), when_used="json"),
]
"""Bytes that travel as base64 in JSON; any byte survives."""


class Position(BaseModel):
    """Where a message stood in Kafka."""

    model_config = ConfigDict(frozen=True)

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class DeadLetter(BaseModel):
    """One message that a stage could not take; keyed by its source position."""

    model_config = ConfigDict(frozen=True)

    stage: str
    fault: str
    reason: str
    position: Position
    failed_at: Moment
    key: Bytes = b""
    value: Bytes = b""
    headers: tuple[tuple[str, Bytes], ...] = ()
    size: int = 0
    """Bytes that the value had at its source; more than are here if it was cut."""

    @property
    def is_cut(self) -> bool:
        """Tell whether the value is longer than what is kept of it; the rest is at its source."""
        return self.size > len(self.value)

    @property
    def id(self) -> str:
        """Return the key under which the letter is kept."""
        return str(self.position)


def dead_letter(
    *,
    stage: str,
    fault: str,
    reason: str,
    position: Position,
    value: bytes | None,
    key: bytes | None = None,
    headers: list[tuple[str, bytes]] | None = None,
    now: datetime,
) -> DeadLetter:
    """Build the letter of one message."""
    return DeadLetter(
        stage=stage,
        fault=fault,
        reason=reason[:2000],
        position=position,
        failed_at=now,
        key=(key or b"")[:KEY_MAX_BYTES],
        value=(value or b"")[:VALUE_MAX_BYTES],
        headers=tuple(
            (name, (held or b"")[:HEADER_MAX_BYTES]) for name, held in (headers or [])[:HEADERS_MAX]
        ),
        size=len(value or b""),
    )
