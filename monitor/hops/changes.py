"""Change events in, the change log out, each event once in effect."""

from collections.abc import Sequence

from pydantic import ValidationError

from monitor.alerting.gathering import Background
from monitor.hops.inbound import Burial, Inbound, Now, complaint
from monitor.intake.event import ChangeEvent
from monitor.publishing import Publisher
from monitor.topics import DEAD_LETTERS

HOP = "changes"


class RecordChanges:
    """The hop from announcements to what evidence names first."""

    def __init__(self, *, background: Background, publisher: Publisher, prefix: str, now: Now) -> None:
        """Take the ports."""
        self._log = background.changes
        self._burial = Burial(publisher, prefix + DEAD_LETTERS, now)

    async def __call__(self, batch: Sequence[Inbound]) -> None:
        """Keep a batch; what is no change event goes to the dead letters with its reason."""
        events = []
        for message in batch:
            if message.is_marker:
                continue
            try:
                events.append(ChangeEvent.model_validate_json(message.value))
            except ValidationError as error:
                reason = f"no change event: {complaint(error)}"
                await self._burial.bury(HOP, message, fault="invalid", reason=reason)
        if self._log is not None:
            await self._log.record(events)
