"""The twin of the kept conversations: the same port in plain dictionaries, for tests and scenarios."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from monitor.adapters.redis_conversations import without_words
from monitor.conversations.assembly import OPEN_OUTCOMES, Outcome, Stored, Taken
from monitor.conversations.conversation import EndReason
from monitor.conversations.policy import ConversationPolicy
from monitor.conversations.store import Arrival, Explained, TakenIn, Taking
from monitor.judging.judgment import JUDGMENT_RECORD, JudgeFailure, Judgment
from monitor.judging.shadow import counted_as

_OF_A_FAILURE = (Outcome.FAILED, Outcome.EXPIRED, Outcome.THINNED)


@dataclass(frozen=True)
class _Event:
    source: str
    outcome: Outcome
    revision: int
    kind: str


@dataclass
class _Record:
    """What is known of one conversation."""

    revision: int = 0
    closed: int = 0
    first: datetime | None = None
    last: datetime | None = None
    reason: EndReason | None = None
    ended: bool = False
    over: bool = False
    """It must be closed before it grows."""
    events: dict[str, _Event] = field(default_factory=dict)
    duplicates: dict[str, str] = field(default_factory=dict)
    rejected: dict[str, bool] = field(default_factory=dict)
    """False for no event at all, True once it became one."""
    judged: dict[str, Judgment | JudgeFailure] = field(default_factory=dict)
    texts: dict[str, Taken] = field(default_factory=dict)


class MemoryConversations:
    """The port `ConversationStore` in memory; here nothing is too old to be remembered."""

    def __init__(self, policy: ConversationPolicy) -> None:
        """Begin empty."""
        self._policy = policy
        self._records: defaultdict[str, _Record] = defaultdict(_Record)
        self._due: defaultdict[int, dict[str, datetime]] = defaultdict(dict)
        self._funnel: Counter[str] = Counter()

    async def take(self, takings: Sequence[Taking], *, ahead: bool = False) -> list[TakenIn]:
        """Take events in, in their order."""
        return [self._take(taking, ahead=ahead) for taking in takings]

    def _take(self, taking: Taking, *, ahead: bool) -> TakenIn:
        taken, partition, at = taking
        record = self._records[taken.conversation_id]
        if record.rejected.get(taken.source) is False:
            record.rejected[taken.source] = True
            self._funnel["event|invalid"] -= 1
        known = record.events.get(taken.event_id)
        if known is not None:
            if known.source == taken.source:
                return TakenIn(Arrival.AGAIN, known.revision)
            if taken.source not in record.duplicates:
                record.duplicates[taken.source] = taken.event_id
                self._funnel[f"{taken.kind}|duplicate"] += 1
            return TakenIn(Arrival.DUPLICATE, known.revision)
        brings_turns = taken.kind in {"turn", "conversation"}
        over = self._due[partition].get(taken.conversation_id)
        if ahead and record.closed < record.revision and over is not None and (over < at or record.over):
            record.over = True
            return TakenIn(Arrival.OVERDUE, record.revision, over)
        too_many = brings_turns and len(record.texts) >= self._policy.max_turns
        outcome = Outcome.OVER_LIMIT if too_many else taken.outcome
        if record.revision == 0 or (record.closed == record.revision and brings_turns):
            record.revision += 1
            record.first = record.last = at
            record.ended, record.reason = False, None
        record.events[taken.event_id] = _Event(taken.source, outcome, record.revision, taken.kind)
        self._funnel[f"{taken.kind}|{outcome}"] += 1
        if not too_many:
            record.texts[taken.event_id] = taken
        if record.closed < record.revision:
            self._schedule(record, taken, partition, at)
        return TakenIn(Arrival.NEW, record.revision)

    def _schedule(self, record: _Record, taken: Taken, partition: int, at: datetime) -> None:
        record.ended = record.ended or taken.kind in {"end", "conversation"}
        record.first, record.last = min(record.first or at, at), max(record.last or at, at)
        policy = self._policy
        due = min(
            record.last + timedelta(seconds=policy.idle_seconds),
            record.first + timedelta(seconds=policy.max_age_seconds),
        )
        if record.ended:
            grace = 0 if taken.kind == "conversation" else policy.end_grace_seconds
            due = min(due, record.last + timedelta(seconds=grace))
        self._due[partition][taken.conversation_id] = due

    async def load(self, conversation_ids: Sequence[str]) -> dict[str, Stored]:
        """Return the conversations that are known."""
        found = ((one, self._stored(one)) for one in conversation_ids)
        return {one: stored for one, stored in found if stored is not None}

    def _stored(self, conversation_id: str) -> Stored | None:
        record = self._records.get(conversation_id)
        if record is None or record.first is None:
            return None
        return Stored(
            id=conversation_id,
            revision=record.revision,
            closed_revision=record.closed,
            first_activity=record.first,
            taken=tuple(record.texts.values()),
            revisions={event: known.revision for event, known in record.events.items()},
            waiting=frozenset(
                event for event, known in record.events.items() if known.outcome is Outcome.WAITING
            ),
        )

    async def queued(self, asked: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Move events, by conversation, from waiting to queued."""
        for conversation_id, event_ids in asked:
            record = self._records[conversation_id]
            for event_id in event_ids:
                known = record.events.get(event_id)
                if known is not None and known.outcome is Outcome.WAITING:
                    self._set_outcome(record, event_id, Outcome.QUEUED)

    def _set_outcome(self, record: _Record, event_id: str, outcome: Outcome) -> None:
        known = record.events[event_id]
        self._funnel[f"{known.kind}|{known.outcome}"] -= 1
        self._funnel[f"{known.kind}|{outcome}"] += 1
        record.events[event_id] = replace(known, outcome=outcome)

    async def due(self, partition: int, *, now: datetime, limit: int) -> list[str]:
        """Return conversations of a partition that are over."""
        over = sorted((at, one) for one, at in self._due[partition].items() if at <= now)
        return [conversation_id for _, conversation_id in over[:limit]]

    async def close(self, stored: Stored, partition: int, reason: EndReason) -> bool:
        """Close the revision, unless something came since it was loaded."""
        record = self._records[stored.id]
        if record.revision != stored.revision or len(record.texts) != len(stored.taken):
            return False
        if record.closed != stored.revision:
            record.closed, record.reason = stored.revision, reason
            self._funnel[f"closed|{reason}"] += 1
        self._due[partition].pop(stored.id, None)
        record.over = False
        return True

    async def drop_due(self, conversation_id: str, partition: int) -> None:
        """Take a conversation off the due list."""
        self._due[partition].pop(conversation_id, None)

    async def reject(self, conversation_id: str, source: str) -> None:
        """Count a kept message that is no valid event, once."""
        record = self._records[conversation_id]
        if source not in record.rejected:
            record.rejected[source] = False
            self._funnel["event|invalid"] += 1

    async def settle(self, records: Sequence[Judgment | JudgeFailure]) -> None:
        """Give the judged events their outcome."""
        for one in records:
            self._settle(one)

    def _settle(self, one: Judgment | JudgeFailure) -> None:
        record = self._records[one.target.conversation_id]
        before = record.judged.get(one.judgment_id)
        if before is None or before.outcome not in {one.outcome, "judged"}:
            if before is not None:
                self._funnel[f"judgment:{counted_as(one)}|{before.outcome}"] -= 1
            self._funnel[f"judgment:{counted_as(one)}|{one.outcome}"] += 1
            record.judged[one.judgment_id] = one
        outcome = Outcome(one.outcome)
        for event_id in one.event_ids:
            known = record.events.get(event_id)
            if known is None:
                continue
            better = outcome is Outcome.JUDGED and known.outcome in _OF_A_FAILURE
            if known.outcome in OPEN_OUTCOMES or better:
                self._set_outcome(record, event_id, outcome)

    async def funnel(self) -> dict[str, int]:
        """Return counts by `kind|outcome`."""
        return {name: count for name, count in sorted(self._funnel.items()) if count}

    async def explain(self, conversation_id: str) -> Explained[Judgment | JudgeFailure]:
        """Return all that is known of one conversation."""
        record = self._records.get(conversation_id, _Record())
        dues = (due.get(conversation_id) for due in self._due.values())
        return Explained(
            stored=self._stored(conversation_id),
            outcomes={event: (known.source, known.outcome) for event, known in record.events.items()},
            duplicates=dict(record.duplicates),
            due=next((at for at in dues if at is not None), None),
            end_reason=record.reason,
            records=sorted(record.judged.values(), key=lambda one: (one.observed_at, one.judgment_id)),
        )

    async def forget(self, conversation_id: str) -> int:
        """Erase texts and the judge's words about them; outcomes and scores stay."""
        record = self._records[conversation_id]
        count = len(record.texts)
        record.texts = {}
        record.judged = {
            judgment_id: JUDGMENT_RECORD.validate_json(without_words(one))
            for judgment_id, one in record.judged.items()
        }
        return count
