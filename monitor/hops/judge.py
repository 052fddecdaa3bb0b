"""A judge request in, its record out: to the judgments, the archive and, when it failed, the dead letters."""

from pydantic import ValidationError

from monitor.hops.inbound import Burial, Inbound, Now, complaint, marker
from monitor.judging.cascade import Cascade, second_request
from monitor.judging.executor import Executor
from monitor.judging.judgment import FailureKind, JudgeFailure, JudgeRequest, Judgment, Place, Record
from monitor.publishing import Outgoing, Publisher
from monitor.topics import ARCHIVE, DEAD_LETTERS, JUDGE_REQUESTS, JUDGMENTS


class JudgeHop:
    """The hop from judge requests to judgments."""

    def __init__(
        self,
        *,
        executor: Executor,
        publisher: Publisher,
        prefix: str,
        now: Now,
        cascade: Cascade | None = None,
    ) -> None:
        """Take the executor, which never pays twice and never raises for a judge's sake; or a cascade of several."""
        self._executor = executor
        self._cascade = cascade
        self._requests = prefix + JUDGE_REQUESTS
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
        beside: tuple[Record, ...] = ()
        if self._cascade is None:
            record: Record = await self._executor.record_of(request, now=self._now)
        else:
            record, beside = await self._cascade.records_of(request, now=self._now)
        # What was thinned out is stood for by what was kept; judged later by hand it would count twice.
        if isinstance(record, JudgeFailure) and record.kind is not FailureKind.THINNED:
            reason = f"{record.kind}: {record.reason}"
            await self._burial.bury("judge", message, fault=record.outcome, reason=reason)
        partition = message.position.partition
        sent = [out for one in (*beside, record) for out in self._out(one, partition)]
        await self._publisher.publish([*sent, *self._next(request, record, partition)])

    def _out(self, record: Record, partition: int) -> tuple[Outgoing, ...]:
        conversation_id = record.target.conversation_id
        value = record.model_dump_json().encode()
        archived = f"{conversation_id}/j/{record.judgment_id}".encode()
        return (
            Outgoing(self._judgments, conversation_id.encode(), value, partition),
            Outgoing(self._archive, archived, value, partition),
        )

    def _next(self, request: JudgeRequest, record: Record, partition: int) -> tuple[Outgoing, ...]:
        """Ask the next stage of a cascade; asked twice, it answers once, by its judgment's id."""
        phase = record.phase
        first = phase is not None and phase.place is Place.FIRST and phase.asked
        if not first or not isinstance(record, Judgment):
            return ()
        asked = second_request(request, record, now=self._now())
        key = request.target.conversation_id.encode()
        return (Outgoing(self._requests, key, asked.model_dump_json().encode(), partition),)

    async def pass_marker(self, message: Inbound) -> None:
        """Send a clock marker on; to be called when all before it on its partition is done."""
        mark = await self._burial.watermark("judge", message)
        if mark is not None:
            await self._publisher.publish([marker(self._judgments, message.position.partition, mark.times)])
