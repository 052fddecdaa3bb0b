"""A judge request in, its record out: to the judgments, the archive and, when it failed, the dead letters."""

from pydantic import ValidationError

from monitor.hops.inbound import Burial, Inbound, Now, complaint, marker
from monitor.judging.executor import Executor
from monitor.judging.judgment import JudgeFailure, JudgeRequest
from monitor.publishing import Outgoing, Publisher
from monitor.topics import ARCHIVE, DEAD_LETTERS, JUDGMENTS


class JudgeHop:
    """The hop from judge requests to judgments."""

    def __init__(self, *, executor: Executor, publisher: Publisher, prefix: str, now: Now) -> None:
        """Take the executor, which never pays twice and never raises for a judge's sake."""
        self._executor = executor
        self._publisher = publisher
        self._judgments = prefix + JUDGMENTS
        self._archive = prefix + ARCHIVE
        self._burial = Burial(publisher, prefix + DEAD_LETTERS, now)
        self._now = now

    async def __call__(self, message: Inbound) -> None:
        """Judge one request and send its record on; a failure is a record too, and can be retried by hand."""
        try:
            request = JudgeRequest.model_validate_json(message.value)
        except ValidationError as error:
            reason = f"no judge request: {complaint(error)}"
            await self._burial.bury("judge", message, fault="invalid", reason=reason)
            return
        record = await self._executor.record_of(request, now=self._now)
        if isinstance(record, JudgeFailure):
            reason = f"{record.kind}: {record.reason}"
            await self._burial.bury("judge", message, fault=record.outcome, reason=reason)
        conversation_id = request.target.conversation_id
        value = record.model_dump_json().encode()
        partition = message.position.partition
        archived = f"{conversation_id}/j/{record.judgment_id}".encode()
        await self._publisher.publish(
            [
                Outgoing(self._judgments, conversation_id.encode(), value, partition),
                Outgoing(self._archive, archived, value, partition),
            ]
        )

    async def pass_marker(self, message: Inbound) -> None:
        """Send a clock marker on; to be called when all before it on its partition is done."""
        mark = await self._burial.watermark("judge", message)
        if mark is not None:
            await self._publisher.publish([marker(self._judgments, message.position.partition, mark.times)])
