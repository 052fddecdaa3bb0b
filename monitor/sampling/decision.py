"""An event and the policy in, a decision with its rule and rate out: the same on every worker, retry and replay."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import xxhash

from monitor.intake.decode import Glimpse
from monitor.sampling.policy import SamplingPolicy

UNKNOWN = "unknown"
_TWO_TO_64 = float(2**64)


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one event. `rate` is the highest in force up to it; its inverse is a turn's weight."""

    kept: bool
    rule: str
    rate: float
    first_rate: float | None = None
    """The conversation's own rate; None when it was promoted in its middle and stands for nobody."""
    newly: bool = False
    """Tell whether this decision has to be remembered before offsets are committed."""


class Kept(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a kept conversation, so that what is kept stays kept."""

    rate: float
    first_rate: float | None
    rule: str


@dataclass(frozen=True)
class Base:
    """What the base rates say for one stratum."""

    rule: str
    rate: float
    stratum: str
    dropped: str
    """The outcome of an event that this rule does not keep."""


def salt(cohort: str) -> int:
    """Return the seed of a cohort's hash."""
    return xxhash.xxh3_64_intdigest(cohort.encode())


def position(conversation_id: str, cohort_salt: int) -> float:
    """Return where a conversation stands in [0, 1): kept by every rate above it, so raising a rate only adds."""
    return xxhash.xxh3_64_intdigest(conversation_id.encode(), cohort_salt) / _TWO_TO_64


def stratum(attributes: tuple[str, ...]) -> str:
    """Return the census key of a stratum."""
    return "|".join(value.replace("|", "/") for value in attributes)


class BaseRates:
    """The base rates, looked up once per stratum."""

    # Strata come from producers; a runaway attribute must not fill the memory.
    _MAX_CACHED = 50_000

    def __init__(self, policy: SamplingPolicy) -> None:
        """Take the policy; a changed policy needs a new instance."""
        self._policy = policy
        self._cache: dict[tuple[str | None, ...], Base] = {}

    def of(self, event: Glimpse, intent: str | None) -> Base:
        """Return rule, rate and stratum of an event, with the intent that the event or our classifier gives."""
        key = (event.assistant, event.environment, event.tenant, intent, event.channel, event.language)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) >= self._MAX_CACHED:
                self._cache.clear()
            found = self._cache[key] = self._look_up(key)
        return found

    def _look_up(self, key: tuple[str | None, ...]) -> Base:
        names = ("assistant", "environment", "tenant", "intent", "channel", "language")
        values = {name: value or UNKNOWN for name, value in zip(names, key, strict=True)}
        census = stratum(
            (values["assistant"], values["environment"], *(values[name] for name in self._policy.strata))
        )
        for row in self._policy.rates:
            if all(values[name] == wanted for name, wanted in row.match.items()):
                return Base(row.rule, row.rate, census, dropped(row.rule))
        rule = "base:default"
        return Base(rule, self._policy.default_rate, census, dropped(rule))


def opens(event: Glimpse) -> bool:
    """Tell whether an event may be the first of its conversation; only such an event falls under a base rate."""
    return event.type in {"conversation", "summary"} or (event.type == "turn" and not event.turn_index)


def dropped(rule: str) -> str:
    """Return the outcome of an event that a rule does not keep."""
    return f"sampled_out:{rule}"


LATER = "base:not_kept"
"""The rule of an event in the middle of a conversation that is not kept."""
LATER_DROPPED = dropped(LATER)


def plainly_dropped(event: Glimpse, *, where: float, base: Base) -> str | None:
    """Return the outcome of an event without any signal if its base rate drops it, None to `decide()` in full.

    By far the most events end here. It says what `decide()` says of a conversation that is not kept and an
    event that no priority rule can match; a property test holds the two together.
    """
    if not opens(event):
        return LATER_DROPPED
    return base.dropped if where >= base.rate else None


def decide(
    event: Glimpse,
    *,
    where: float,
    base: Base,
    kept: Kept | None,
    policy: SamplingPolicy,
    prompt_is_new: bool,
) -> Decision:
    """Decide on one event.

    `where` is the conversation's `position()`, `kept` what is remembered of it. The highest rate of all
    rules that match counts. An event in the middle of a conversation is newly kept by priority rules only.
    """
    rule, rate = (base.rule, base.rate) if opens(event) else (LATER, 0.0)
    if event.type != "end":
        rule, rate = _prioritised(event, policy, rule, rate, prompt_is_new=prompt_is_new)
    if kept is not None:
        return _still_kept(event, kept, rule, rate)
    if where >= rate:
        return Decision(kept=False, rule=rule, rate=rate)
    first_rate = _own_rate(event, rate, base, where)
    return Decision(kept=True, rule=rule, rate=rate, first_rate=first_rate, newly=True)


def _prioritised(
    event: Glimpse, policy: SamplingPolicy, rule: str, rate: float, *, prompt_is_new: bool
) -> tuple[str, float]:
    rules = policy.priority
    signals = event.signals
    if signals.escalated and rules.escalated is not None and rules.escalated > rate:
        rule, rate = "priority:escalated", rules.escalated
    if signals.thumb == "down" and rules.thumbs_down is not None and rules.thumbs_down > rate:
        rule, rate = "priority:thumbs_down", rules.thumbs_down
    if rules.fallback_model is not None and rules.fallback_model > rate and event.fell_back:
        rule, rate = "priority:fallback_model", rules.fallback_model
    if prompt_is_new and rules.new_prompt_hash is not None and rules.new_prompt_hash.rate > rate:
        rule, rate = "priority:new_prompt_hash", rules.new_prompt_hash.rate
    return rule, rate


def _still_kept(event: Glimpse, kept: Kept, rule: str, rate: float) -> Decision:
    highest = max(rate, kept.rate)
    rule = rule if rate > kept.rate else kept.rule
    # A conversation that comes in one piece is wholly observed now, whatever was known of it before.
    first_rate = highest if event.type == "conversation" else kept.first_rate
    changed = (highest, first_rate) != (kept.rate, kept.first_rate)
    return Decision(kept=True, rule=rule, rate=highest, first_rate=first_rate, newly=changed)


def _own_rate(event: Glimpse, rate: float, base: Base, where: float) -> float | None:
    if event.type == "conversation" or (event.type == "turn" and event.turn_index == 0):
        return rate
    # Without an index the first turn cannot be told from a later one. What the base rate keeps would have been
    # kept at its first turn, and stands for its stratum; what only a priority rule keeps stands for nobody.
    return base.rate if event.type == "turn" and event.turn_index is None and where < base.rate else None


class Prompts:
    """Which prompt hashes were seen since when; new ones are watched closely for a while."""

    _MAX_KNOWN = 500
    """Prompts of one assistant; a producer that hashes more than its prompt must not fill memory and Redis."""

    def __init__(self, policy: SamplingPolicy) -> None:
        """Start knowing nothing; `learn()` brings in what other workers saw."""
        self._rule = policy.priority.new_prompt_hash
        self._watch = timedelta(hours=self._rule.for_hours if self._rule else 0)
        self._first: dict[tuple[str, str], dict[str, datetime]] = {}
        self._until: dict[tuple[str, str, str], datetime] = {}
        self.sightings: dict[tuple[str, str, str], datetime] = {}
        """First sightings that have not been shared yet."""
        self.version = 0
        """Rises with whatever is learned, so that what was derived before is derived anew."""

    def learn(self, scope: tuple[str, str], prompt_hash: str, first_seen: datetime) -> None:
        """Take over a sighting; of two the earlier counts, and it does not matter who learns what first."""
        first = self._first.setdefault(scope, {})
        known = first.get(prompt_hash)
        if known is not None and known <= first_seen:
            return
        first[prompt_hash] = first_seen
        self.version += 1
        # An assistant's very first prompt is established, not new.
        established = min(first, key=lambda prompt: (first[prompt], prompt))
        for prompt, seen in first.items():
            self._until[(*scope, prompt)] = seen if prompt == established else seen + self._watch

    def is_new(self, event: Glimpse) -> bool:
        """Tell whether an event's prompt hash was first seen a short while ago; a first sighting is noted."""
        until = self.new_until(event)
        return until is not None and event.occurred_at < until

    def new_until(self, event: Glimpse) -> datetime | None:
        """Return until when an event's prompt hash is new; a first sighting is noted. None if it never is."""
        prompt = event.served_by.prompt_hash
        if prompt is None or self._rule is None:
            return None
        key = (event.assistant, event.environment, prompt)
        until = self._until.get(key)
        if until is None:
            scope = key[:2]
            if len(self._first.get(scope, ())) >= self._MAX_KNOWN:
                return None
            self.learn(scope, prompt, event.occurred_at)
            self.sightings[key] = event.occurred_at
            until = self._until[key]
        return until
