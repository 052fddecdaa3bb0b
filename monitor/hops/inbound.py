"""What every hop is given and what it does with what it cannot take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pydantic import ValidationError

from monitor.clock import MARKER_HEADER, Watermark
from monitor.intake.dead_letter import Position, dead_letter
from monitor.publishing import Outgoing, Publisher


@dataclass(frozen=True)
class Inbound:
    """One message that a hop is given."""

    position: Position
    key: bytes
    value: bytes
    headers: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def is_marker(self) -> bool:
        """Tell whether this is a clock marker, which is no event."""
        return MARKER_HEADER in self.headers


class Now(Protocol):
    """Wall time, given from outside."""

    def __call__(self) -> datetime:
        """Return the present moment in UTC."""
        ...


def marker(topic: str, partition: int, times: Mapping[str, datetime]) -> Outgoing:
    """Build a clock marker for one partition."""
    return Outgoing(
        topic=topic,
        key=b"",
        value=Watermark(times=dict(times)).model_dump_json().encode(),
        partition=partition,
        headers=((MARKER_HEADER, b"1"),),
    )


def complaint(error: ValidationError) -> str:
    """Say what is wrong with a message without a word of it."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults[:5])


class Burial:
    """Sends what a hop could not take to the dead letters."""

    def __init__(self, publisher: Publisher, topic: str, now: Now) -> None:
        """Take the name of the topic of dead letters."""
        self._publisher = publisher
        self._topic = topic
        self._now = now

    async def bury(self, stage: str, message: Inbound, *, fault: str, reason: str) -> None:
        """Keep a message with its reason and bytes."""
        letter = dead_letter(
            stage=stage,
            fault=fault,
            reason=reason,
            position=message.position,
            key=message.key,
            value=message.value,
            headers=list(message.headers.items()),
            now=self._now(),
        )
        value = letter.model_dump_json().encode()
        await self._publisher.publish([Outgoing(self._topic, letter.id.encode(), value)])

    async def watermark(self, stage: str, message: Inbound) -> Watermark | None:
        """Read a clock marker; one that says no time is buried."""
        try:
            mark = Watermark.model_validate_json(message.value)
        except ValidationError as error:
            await self.bury(stage, message, fault="invalid", reason=f"no clock marker: {complaint(error)}")
            return None
        return mark
