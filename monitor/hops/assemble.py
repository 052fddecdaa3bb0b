"""Kept events in; judge requests at each turn and at each close, the archive, and clock markers out."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from monitor.clock import ClockKind, ClockStore
from monitor.conversations import assembly
from monitor.conversations.bounds import bounded
from monitor.conversations.conversation import Conversation, Turn
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, ConversationStore, TakenIn, Taking
from monitor.detection.settling import AwaitedStore, asked_of
from monitor.hops.inbound import Burial, Inbound, Now, marker
from monitor.intake.decode import Rejected, decode
from monitor.intake.intents import IntentClassifier
from monitor.intake.redaction import mask_event
from monitor.judging.judgment import JudgeRequest, Record, Target
from monitor.judging.rubric import TargetKind
from monitor.publishing import Outgoing, Publisher
from monitor.sampling.sampler import DECISION_HEADER, SOURCE_HEADER, decode_decision
from monitor.topics import ARCHIVE, DEAD_LETTERS, JUDGE_REQUESTS
from monitor.windows.policy import WindowPolicy

CLOSED = "closed"
"""Under this the clock keeps up to when a partition's conversations have been closed."""
NEVER = datetime.min.replace(tzinfo=UTC)
CLOSE_BATCH = 200
"""Conversations closed in one round; bounds the memory of a tick after an outage."""


class Assemble:
    """The hop from kept events to judge requests."""

    def __init__(
        self,
        *,
        store: ConversationStore[Record],
        clock: ClockStore,
        clock_kind: ClockKind,
        publisher: Publisher,
        policy: ConversationPolicy,
        classifier: IntentClassifier,
        phone_region: str,
        prefix: str,
        now: Now,
        awaited: AwaitedStore | None = None,
        windows: WindowPolicy | None = None,
    ) -> None:
        """Take the ports; `prefix` stands before the names of the topics."""
        self._awaited = awaited
        self._windows = windows or WindowPolicy()
        self._store = store
        self._clock = clock
        self._stream_time = clock_kind is ClockKind.STREAM
        self._publisher = publisher
        self._policy = policy
        self._classifier = classifier
        self._phone_region = phone_region
        self._requests = prefix + JUDGE_REQUESTS
        self._archive = prefix + ARCHIVE
        self._burial = Burial(publisher, prefix + DEAD_LETTERS, now)
        self._now = now

    async def __call__(self, batch: Sequence[Inbound]) -> None:
        """Take kept events in, in order; ask for turn judgments; pass clock markers on."""
        events: list[Inbound] = []
        for message in batch:
            if not message.is_marker:
                events.append(message)
                continue
            await self._take_in(events)
            events = []
            await self._advance(message)
        await self._take_in(events)

    async def _take_in(self, messages: Sequence[Inbound]) -> None:
        takings = []
        for message in messages:
            taken = await self._taken(message)
            if taken is not None:
                takings.append(Taking(taken, message.position.partition, self._moment(taken)))
        if not takings:
            return
        arrivals = await self._arrivals(takings)
        wanted: dict[str, set[str]] = {}
        partitions = {}
        for taking, arrived in zip(takings, arrivals, strict=True):
            if arrived.arrival is not Arrival.DUPLICATE and taking.taken.kind == "turn":
                conversation_id = taking.taken.conversation_id
                wanted.setdefault(conversation_id, set()).update(turn.event_id for turn in taking.taken.turns)
                partitions[conversation_id] = taking.partition
        stored = await self._store.load(list(wanted))
        out, asked = [], []
        for conversation_id, one in stored.items():
            whole = assembly.conversation(one)
            turns = assembly.turns_to_judge(whole, wanted[conversation_id])
            partition = partitions[conversation_id]
            out += [self._turn_request(one, whole, turn, partition) for turn in turns]
            asked.append((conversation_id, [turn.event_id for turn in turns]))
        await self._publisher.publish(out)
        await self._store.queued(asked)

    async def _arrivals(self, takings: Sequence[Taking]) -> list[TakenIn]:
        """Take events in; on the stream's clock what was over before an event is closed before it.

        So a replay cuts conversations where their own times do, however far its events are ahead of the clock.
        """
        arrivals = await self._store.take(takings, ahead=self._stream_time)
        while overdue := [
            place for place, one in enumerate(arrivals) if one.arrival is Arrival.OVERDUE and one.due
        ]:
            over = {
                takings[place].taken.conversation_id: (takings[place], arrivals[place])
                for place in reversed(overdue)
            }
            for conversation_id, (taking, arrived) in over.items():
                await self._close([conversation_id], taking.partition, arrived.due or taking.at)
            again = await self._store.take([takings[place] for place in overdue], ahead=True)
            for place, one in zip(overdue, again, strict=True):
                arrivals[place] = one
        return arrivals

    async def _taken(self, message: Inbound) -> assembly.Taken | None:
        event = decode(message.value)
        if isinstance(event, Rejected):
            await self._burial.bury("assemble", message, fault=event.fault, reason=event.reason)
            await self._store.reject(message.key.decode(errors="replace"), self._source(message))
            return None
        try:
            decision = decode_decision(message.headers.get(DECISION_HEADER, b""))
        except msgspec.DecodeError:
            reason = f"header {DECISION_HEADER}: missing or unreadable; only the sampler writes to this topic"
            await self._burial.bury("assemble", message, fault="invalid", reason=reason)
            await self._store.reject(event.conversation_id, self._source(message))
            return None
        try:
            return assembly.take(
                mask_event(event, region=self._phone_region),
                decision=decision,
                source=self._source(message),
                classifier=self._classifier,
            )
        except Exception as error:  # noqa: BLE001 - the hop's boundary: a bug of ours must not stop the stream
            # The error's own words may quote the event.
            await self._burial.bury("assemble", message, fault="bug", reason=type(error).__name__)
            await self._store.reject(event.conversation_id, self._source(message))
            return None

    @staticmethod
    def _source(message: Inbound) -> str:
        return message.headers.get(SOURCE_HEADER, str(message.position).encode()).decode(errors="replace")

    def _moment(self, taken: assembly.Taken) -> datetime:
        # On the wall's clock idleness counts from the arrival: after an outage the backlog comes late and
        # fast, and by event time every conversation in it would be idle between two of its turns.
        return taken.occurred_at if self._stream_time else self._now()

    async def _advance(self, message: Inbound) -> None:
        partition = message.position.partition
        mark = await self._burial.watermark("assemble", message)
        if mark is None:
            return
        known = await self._clock.advance("assemble", partition, mark.times, idle=mark.idle)
        if not known:
            return
        moment = min(known.values())
        # A marker that comes again must not close what came after it: the first time it did not either.
        closed = await self._clock.advance(CLOSED, partition, {})
        if moment > closed.get(CLOSED, NEVER):
            await self.close_due(partition, moment)
            await self._clock.advance(CLOSED, partition, {CLOSED: moment})
        passed = marker(self._requests, partition, {f"assemble/{partition}": moment})
        await self._publisher.publish([passed])

    def wall_now(self) -> datetime:
        """Return the wall's time, as it was given."""
        return self._now()

    async def close_due(self, partition: int, now: datetime) -> int:
        """Close the conversations of a partition that are over at `now`; return how many."""
        closed = 0
        while True:
            due = await self._store.due(partition, now=now, limit=CLOSE_BATCH)
            done = await self._close(due, partition, now)
            closed += done
            if len(due) < CLOSE_BATCH or not done:
                return closed

    async def _close(self, conversation_ids: Sequence[str], partition: int, now: datetime) -> int:
        stored = await self._store.load(conversation_ids)
        out: list[Outgoing] = []
        asked = []
        units: list[JudgeRequest] = []
        for one in stored.values():
            requests, event_ids, unit = self._requests_at_close(one, partition, now)
            out += requests
            units += unit
            asked.append((one, event_ids))
        if self._awaited is not None:
            await self._awaited.ask(asked_of(units, self._windows))
        await self._publisher.publish(out)
        await self._store.queued([(one.id, event_ids) for one, event_ids in asked])
        closed = 0
        for one, _ in asked:
            reason = assembly.end_reason(one, now=now, policy=self._policy)
            closed += await self._store.close(one, partition, reason)
        for conversation_id in set(conversation_ids) - set(stored):
            await self._store.drop_due(conversation_id, partition)
        return closed

    def _requests_at_close(
        self, stored: assembly.Stored, partition: int, now: datetime
    ) -> tuple[list[Outgoing], list[str], list[JudgeRequest]]:
        """Return what is sent, the events whose judgment is asked for, and the request that is a unit."""
        ended = assembly.end_reason(stored, now=now, policy=self._policy)
        whole = assembly.conversation(stored, ended=ended)
        late = assembly.held_back(stored, whole)
        event_ids = [turn.event_id for turn in late]
        out = [self._turn_request(stored, whole, turn, partition) for turn in late]
        of_whole = [
            taken
            for taken in stored.taken
            if taken.kind == "conversation" and stored.revisions.get(taken.event_id) == stored.revision
        ]
        for taken in of_whole:
            turns = taken.turns if taken is stored.whole else ()
            out += [self._turn_request(stored, whole, turn, partition) for turn in turns if turn.answer]
        last = whole.last_answered
        unit: list[JudgeRequest] = []
        if last is not None and not whole.partial:
            own = tuple(one.event_id for one in of_whole if one.outcome is assembly.Outcome.WAITING)
            unit = [self._conversation_request(whole, last, own)]
            out.append(self._outgoing(unit[0], partition))
            event_ids += own
        if whole.turns:
            key = f"{whole.id}/r{whole.revision}".encode()
            out.append(Outgoing(self._archive, key, whole.model_dump_json().encode(), partition))
        return out, event_ids, unit

    def _conversation_request(
        self, whole: Conversation, last: Turn, event_ids: tuple[str, ...]
    ) -> JudgeRequest:
        return JudgeRequest(
            target=Target(kind=TargetKind.CONVERSATION, conversation_id=whole.id, revision=whole.revision),
            conversation=self._bounded(whole),
            event_ids=event_ids,
            rate=whole.rate,
            observed_at=last.answered_at or last.occurred_at,
            requested_at=self._now(),
        )

    def _turn_request(
        self, stored: assembly.Stored, whole: Conversation, turn: Turn, partition: int
    ) -> Outgoing:
        request = JudgeRequest(
            target=Target(
                kind=TargetKind.TURN,
                conversation_id=whole.id,
                revision=stored.revision_of(turn),
                turn_event_id=turn.event_id,
            ),
            conversation=self._bounded(assembly.up_to(whole, turn)),
            # A turn of a conversation that came whole is no event: the whole's judgment decides on that.
            event_ids=(turn.event_id,) if turn.event_id in stored.revisions else (),
            rate=turn.rate,
            observed_at=turn.answered_at or turn.occurred_at,
            requested_at=self._now(),
        )
        return self._outgoing(request, partition)

    def _bounded(self, whole: Conversation) -> Conversation:
        return bounded(whole, max_chars=self._policy.max_chars)

    def _outgoing(self, request: JudgeRequest, partition: int) -> Outgoing:
        key = request.target.conversation_id.encode()
        return Outgoing(self._requests, key, request.model_dump_json().encode(), partition)
