"""A judge request in; the shadow's record out, if the request is of its cohort. A failure is no dead letter."""

from pydantic import ValidationError

from monitor.hops.inbound import Inbound, Now
from monitor.judging.cascade import Recording
from monitor.judging.judgment import JudgeRequest
from monitor.judging.shadow import ShadowCohort, shadow_request, shadowed
from monitor.publishing import Outgoing, Publisher
from monitor.topics import ARCHIVE, JUDGMENTS


class ShadowHop:
    """The hop beside that from judge requests to judgments, of a consumer group of its own."""

    def __init__(
        self, *, executor: Recording, cohort: ShadowCohort, publisher: Publisher, prefix: str, now: Now
    ) -> None:
        """Take the shadow's executor and what it is to see."""
        self._executor = executor
        self._cohort = cohort
        self._publisher = publisher
        self._judgments = prefix + JUDGMENTS
        self._archive = prefix + ARCHIVE
        self._now = now

    async def __call__(self, message: Inbound) -> None:
        """Judge one request, if it is of the cohort, and send its record on; markers are the live judge's to pass."""
        if message.is_marker:
            return
        try:
            request = JudgeRequest.model_validate_json(message.value)
        except ValidationError:
            # The live judge's hop buries it.
            return
        if not self._cohort.has(request):
            return
        asked = shadow_request(request, self._cohort)
        record = shadowed(await self._executor.record_of(asked, now=self._now))
        name, value = record.target.conversation_id, record.model_dump_json().encode()
        key = f"{name}/j/{record.judgment_id}".encode()
        partition = message.position.partition
        await self._publisher.publish(
            [
                Outgoing(self._judgments, name.encode(), value, partition),
                Outgoing(self._archive, key, value, partition),
            ]
        )
