"""The port through which hops send on; a message is sent when the broker has it, not before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class PublishError(Exception):
    """The broker did not take a message in time; nothing is acked, so it will be sent again."""


@dataclass(frozen=True)
class Outgoing:
    """One message to send."""

    topic: str
    key: bytes
    value: bytes | None
    partition: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Publisher(Protocol):
    """Whoever sends to Kafka."""

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send in order and return when all are confirmed; raises PublishError."""
        ...
