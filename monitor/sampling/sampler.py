"""A batch of messages in; what to forward, remember, count and bury out. The hot path: every event passes here."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
import xxhash

from monitor.intake.decode import (
    NO_SIGNALS,
    ClockGlimpse,
    Fault,
    Glimpse,
    Rejected,
    SignalsGlimpse,
    glimpse,
)
from monitor.intake.intents import IntentClassifier
from monitor.sampling.census import ANSWERS, Signal
from monitor.sampling.decision import (
    Base,
    BaseRates,
    Decision,
    Kept,
    Prompts,
    decide,
    dropped,
    opens,
    plainly_dropped,
    position,
    salt,
)
from monitor.sampling.policy import SamplingPolicy

BUCKET_SECONDS = 900
PROFILES_MAX = 50_000
"""Kinds of events remembered; a runaway attribute must not fill the memory."""
DECISION_HEADER = "decision"
SOURCE_HEADER = "source"
encode_decision = msgspec.json.Encoder().encode
decode_decision = msgspec.json.Decoder(Decision).decode


class Record(Protocol):
    """A consumed message, in the shape of confluent-kafka."""

    def topic(self) -> str:
        """Return the source topic."""
        ...

    def partition(self) -> int:
        """Return the source partition."""
        ...

    def offset(self) -> int:
        """Return the source offset."""
        ...

    def value(self) -> bytes | None:
        """Return the raw bytes, None for a tombstone."""
        ...


@dataclass
class Forward:
    """One event that goes on to `sampled-events`."""

    partition: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


@dataclass
class PartitionTally:
    """What one batch says of one source partition; stored in one step, before the commit."""

    first_offset: int
    """The first that is counted here; what a batch holds before it was counted when it was first read."""
    next_offset: int
    dropped: Counter[str] = field(default_factory=Counter)
    """Events with an outcome already, by outcome."""
    census: defaultdict[int, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))
    """Exact counts by bucket start in epoch seconds, then by (stratum, signal)."""
    remember: dict[str, Kept] = field(default_factory=dict)
    newest: datetime | None = None


@dataclass
class Sampled:
    """The outcome of a batch."""

    forward: list[Forward] = field(default_factory=list)
    buried: list[tuple[Record, Rejected]] = field(default_factory=list)
    tallies: dict[tuple[str, int], PartitionTally] = field(default_factory=dict)


class Sampler:
    """Decides on every event of the source partitions that this process owns."""

    def __init__(
        self,
        policy: SamplingPolicy,
        classifier: IntentClassifier,
        *,
        partitions: int,
        max_bytes: int,
        max_ahead: timedelta | None,
    ) -> None:
        """Take the policy and the number of partitions of `sampled-events`.

        `max_ahead` rejects events that are dated later than the clock; None where time is the stream's own.
        """
        self._policy = policy
        self._classifier = classifier
        self._rates = BaseRates(policy)
        self._partitions = partitions
        self._max_bytes = max_bytes
        self._max_ahead = max_ahead
        self._long_bytes = policy.long_bytes
        self._salt = salt(policy.cohort)
        self.prompts = Prompts(policy)
        self._profiles: dict[tuple[str | None, ...], tuple[Base, datetime | None, bool]] = {}
        self._profiles_version = 0
        self._memories: defaultdict[tuple[str, int], Memory] = defaultdict(
            lambda: Memory(policy.remember_hours)
        )

    def own(self, source: tuple[str, int], kept: Mapping[str, Kept], counted_through: int | None) -> None:
        """Start on a partition with what is remembered of it and the next offset that is not counted yet."""
        self._memories[source] = Memory(self._policy.remember_hours, dict(kept), counted_through or 0)

    def disown(self, source: tuple[str, int]) -> None:
        """Forget a partition that went to another worker."""
        self._memories.pop(source, None)

    def take(self, records: Iterable[Record], *, now: datetime) -> Sampled:
        """Decide on a batch; changes nothing but this process's memory, so a batch may be read again."""
        out = Sampled()
        latest = now + self._max_ahead if self._max_ahead else None
        hour = int(now.timestamp()) // 3600
        at: dict[tuple[str, int], _At] = {}
        for record in records:
            source = (record.topic(), record.partition())
            offset = record.offset()
            here = at.get(source)
            if here is None:
                memory = self._memories[source]
                tally = PartitionTally(max(offset, memory.counted_through), offset)
                out.tallies[source] = tally
                here = at[source] = _At(source, tally, memory)
                memory.expire(hour)
            tally = here.tally
            tally.next_offset = offset + 1
            # What was counted was delivered before that, and is only read again after a restart. To decide on it
            # anew, knowing of promotions that came later, could give it a second outcome; its time still counts.
            counts = offset >= here.memory.counted_through
            raw = record.value() or b""
            event = glimpse(raw, max_bytes=self._max_bytes)
            if type(event) is Glimpse and (latest is None or event.occurred_at <= latest):
                if tally.newest is None or event.occurred_at > tally.newest:
                    tally.newest = event.occurred_at
                if counts:
                    self._one(event, raw, offset, here, out)
            elif type(event) is ClockGlimpse:
                if tally.newest is None or event.time > tally.newest:
                    tally.newest = event.time
            elif counts:
                rejected = event if isinstance(event, Rejected) else _ahead(event, now)
                out.buried.append((record, rejected))
                tally.dropped[rejected.fault] += 1
        for here in at.values():
            here.memory.counted_through = max(here.memory.counted_through, here.tally.next_offset)
            here.memory.remember(here.tally.remember, hour)
        return out

    def _one(self, event: Glimpse, raw: bytes, offset: int, here: "_At", out: Sampled) -> None:
        conversation = event.conversation_id
        intent = event.intent
        if intent is None and opens(event):
            intent = self._classifier.of_raw_messages(event.messages)
        base, until, fell_back = self._profile(event, intent)
        where = position(conversation, self._salt)
        known = here.memory.kept.get(conversation)
        is_new = until is not None and event.occurred_at < until
        plain = event.signals is NO_SIGNALS and not fell_back
        cells = here.cells(event.occurred_at)
        cells[base.stratum, event.type] += 1
        if len(raw) > self._long_bytes and event.type in ANSWERS:
            cells[base.stratum, Signal.LONG] += 1
        if not plain:
            _count_signals(event.signals, base.stratum, cells, fell_back=fell_back)
        if known is None and plain and not is_new:
            outcome = plainly_dropped(event, where=where, base=base)
            if outcome is not None:
                here.tally.dropped[outcome] += 1
                return
        decision = decide(
            event, where=where, base=base, kept=known, policy=self._policy, prompt_is_new=is_new
        )
        if not decision.kept:
            here.tally.dropped[dropped(decision.rule)] += 1
            return
        if decision.newly:
            kept = Kept(decision.rate, decision.first_rate, decision.rule)
            here.memory.kept[conversation] = here.tally.remember[conversation] = kept
        key = conversation.encode()
        source = f"{here.source[0]}/{here.source[1]}/{offset}"
        headers = [(DECISION_HEADER, encode_decision(decision)), (SOURCE_HEADER, source.encode())]
        out.forward.append(Forward(xxhash.xxh3_64_intdigest(key) % self._partitions, key, raw, headers))

    def _profile(self, event: Glimpse, intent: str | None) -> tuple[Base, datetime | None, bool]:
        """Return base rate, end of the prompt's novelty and fallback; looked up once per kind of event."""
        served = event.served_by
        key = (
            event.assistant,
            event.environment,
            event.tenant,
            intent,
            event.channel,
            event.language,
            served.prompt_hash,
            served.model_asked,
            served.model_answered,
        )
        if event.signals.fallback:
            return self._rates.of(event, intent), self.prompts.new_until(event), True
        found = self._profiles.get(key) if self._profiles_version == self.prompts.version else None
        if found is None:
            found = (self._rates.of(event, intent), self.prompts.new_until(event), event.fell_back)
            # A first sighting may have changed what is known of the other prompts.
            if self._profiles_version != self.prompts.version or len(self._profiles) >= PROFILES_MAX:
                self._profiles.clear()
                self._profiles_version = self.prompts.version
            self._profiles[key] = found
        return found


class Memory:
    """What one source partition's sampler knows: kept conversations for some hours, and what is counted."""

    def __init__(
        self, remember_hours: int, kept: dict[str, Kept] | None = None, counted_through: int = 0
    ) -> None:
        """Take over what was remembered; its hours begin with the first batch."""
        self._remember_hours = remember_hours
        self.kept: dict[str, Kept] = kept or {}
        self.counted_through = counted_through
        self._by_hour: dict[int, dict[str, Kept]] = {}
        self._inherited = dict(self.kept)
        self._hour: int | None = None

    def remember(self, newly: Mapping[str, Kept], hour: int) -> None:
        """Note in which hour conversations were kept."""
        if newly:
            self._by_hour.setdefault(hour, {}).update(newly)

    def expire(self, hour: int) -> None:
        """Drop what was kept longer ago than the hours that are remembered; does work once an hour."""
        if hour == self._hour:
            return
        if self._hour is None:
            self._by_hour = {hour: self._inherited}
        self._hour = hour
        self._by_hour = {
            then: kept for then, kept in self._by_hour.items() if then >= hour - self._remember_hours
        }
        self.kept = {}
        for then in sorted(self._by_hour):
            self.kept.update(self._by_hour[then])


class _At:
    """One source partition within a batch."""

    __slots__ = ("_cells", "_from", "_to", "memory", "source", "tally")

    def __init__(self, source: tuple[str, int], tally: PartitionTally, memory: Memory) -> None:
        self.source = source
        self.tally = tally
        self.memory = memory
        self._from = self._to = datetime.min.replace(tzinfo=UTC)
        self._cells: Counter[tuple[str, str]] = Counter()

    def cells(self, moment: datetime) -> Counter[tuple[str, str]]:
        """Return the census counts of a moment's bucket; neighbours share one, so it is rarely looked up."""
        if not self._from <= moment < self._to:
            seconds = int(moment.timestamp())
            bucket = seconds - seconds % BUCKET_SECONDS
            self._from = datetime.fromtimestamp(bucket, UTC)
            self._to = datetime.fromtimestamp(bucket + BUCKET_SECONDS, UTC)
            self._cells = self.tally.census[bucket]
        return self._cells


def _ahead(event: Glimpse | ClockGlimpse | Rejected, now: datetime) -> Rejected:
    when = event.occurred_at if isinstance(event, Glimpse) else now
    return Rejected(
        fault=Fault.INVALID,
        reason=f"occurred_at: {when.isoformat()} lies ahead of the clock ({now.isoformat()}) by more than "
        "intake.max_ahead_seconds; set the producer's clock right",
    )


def _count_signals(
    signals: SignalsGlimpse, stratum: str, cells: Counter[tuple[str, str]], *, fell_back: bool
) -> None:
    if signals.thumb is not None:
        cells[stratum, "thumb_" + signals.thumb] += 1
    if signals.escalated:
        cells[stratum, Signal.ESCALATED] += 1
    if signals.refused:
        cells[stratum, Signal.REFUSED] += 1
    if fell_back:
        cells[stratum, Signal.FALLBACK] += 1
