"""Records in, counters of a judge's hour out, and from them how it is: failures, abstentions, latency, cost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from monitor.intake.event import Value
from monitor.judging.judgment import FailureKind, JudgeFailure, Judgment, Place, Record
from monitor.judging.rubric import PASS_MIN

HOUR = timedelta(hours=1)
LATENCIES = (1, 2, 5, 10, 20, 45)
"""Upper ends, in seconds, of the bins that latencies are counted in; one more holds the rest."""
MICRO = 1_000_000
"""Costs are counted in millionths, so that sums stay whole numbers."""
UNREADABLE = (FailureKind.UNREADABLE, FailureKind.TRUNCATED)
HELD_BACK = (FailureKind.REFUSED, FailureKind.CONTENT_FILTER)
"""What a model will not judge is evidence about the answers, and goes to people."""
FAILING = frozenset({"failed", "unreadable", "held_back"})
"""The checks that count requests without a judgment."""
UNPAID = (FailureKind.THINNED, FailureKind.BUDGET)
"""Nobody was asked, so it says nothing about the judge."""
_Share = Annotated[float, Field(ge=0, le=1)]


class HealthPolicy(BaseModel):
    """From when on a judge counts as sick."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hours: Annotated[int, Field(ge=1, le=168)] = 1
    min_count: Annotated[int, Field(ge=1)] = 50
    failed_max: _Share = 0.1
    unreadable_max: _Share = 0.05
    held_back_max: _Share = 0.02
    abstained_max: _Share = 1.0
    disagreed_max: _Share = 0.3


class Share(Value):
    """A share of so many."""

    part: int
    of: int

    @property
    def value(self) -> float | None:
        """Return it; None of nothing."""
        return self.part / self.of if self.of else None


class JudgeHealth(Value):
    """How one judge was in some hours."""

    judge_version: str
    stage: str
    model: str
    total: int
    """Records of requests that the judge was asked."""
    failed: dict[str, int]
    """By kind."""
    unpaid: dict[str, int] = Field(default_factory=dict)
    """What its budget left out, by kind: thinned (the rest stands for it) or budget (used up)."""
    held_back: dict[str, int]
    """Refusals and filtered replies by prompt hash of the assistant."""
    abstained: dict[str, Share]
    """By dimension."""
    disagreed: dict[str, Share]
    """Of a second stage: where it and the first fall on two sides of the pass, by dimension."""
    unconfirmed: int
    flags_disagree: int
    """Judgments whose own critical flag contradicts a score; the scores count, the contradiction is told."""
    latency_mean_seconds: float | None
    latency_p90_seconds: float | None
    """Upper end of the bin; None is beyond the last."""
    tokens: int
    cost: float | None


class Complaint(Value):
    """One thing that is wrong with a judge."""

    check: str
    value: float
    limit: float
    n: int
    sentence: str


class HealthStore(Protocol):
    """Where the counters are kept. Adding a record twice changes nothing; raises StoreUnavailable if it cannot."""

    async def add(self, entries: Sequence[tuple[datetime, Record]]) -> None:
        """Count records, each in the hour of its time."""
        ...

    async def read(self, start: datetime, end: datetime) -> Mapping[str, Mapping[str, int]]:
        """Return the sums of the counters in [start, end) by `version|stage|model`."""
        ...


def name_of(record: Record) -> str:
    """Return the judge's name in the counters."""
    judge = record.judge
    return f"{judge.version}|{judge.stage}|{judge.model_asked}"


def hour_of(moment: datetime) -> datetime:
    """Return the hour that a moment lies in, UTC."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def counted(record: Record) -> dict[str, int]:
    """Return what one record adds to the counters; of what was not paid for only that it was not."""
    if isinstance(record, JudgeFailure) and record.kind in UNPAID:
        return {f"unpaid:{record.kind}": 1}
    usage = record.usage
    found = {
        "total": 1,
        "latency_ms": round(usage.latency_seconds * 1000),
        f"latency<={_bin(usage.latency_seconds)}": 1,
        "tokens": usage.prompt_tokens + usage.completion_tokens,
    }
    if usage.cost is not None:
        found |= {"cost_micro": round(usage.cost * MICRO), "priced": 1}
    if isinstance(record, JudgeFailure):
        found[f"failed:{record.kind}"] = 1
        if record.kind in HELD_BACK:
            found[f"held_back:{record.served_by.prompt_hash or 'unknown'}"] = 1
        return found
    found["unconfirmed"] = bool(record.unconfirmed)
    found["flags_disagree"] = any(score.flag_disagrees for score in record.scores)
    for score in record.scores:
        found[f"{'scored' if score.score is not None else 'abstained'}:{score.dimension}"] = 1
    return found | _pairs(record)


def health_of(name: str, counters: Mapping[str, int]) -> JudgeHealth:
    """Return how a judge is by its counters."""
    version, stage, model = name.split("|", 2)
    total = counters.get("total", 0)
    dimensions = {key.partition(":")[2] for key in counters if key.startswith(("scored:", "abstained:"))}
    seen = {
        d: Share(part=counters.get(f"abstained:{d}", 0), of=_sum(counters, f"scored:{d}", f"abstained:{d}"))
        for d in sorted(dimensions)
    }
    pairs = sorted(key.partition(":")[2] for key in counters if key.startswith("pairs:"))
    return JudgeHealth(
        judge_version=version,
        stage=stage,
        model=model,
        total=total,
        failed=_named(counters, "failed:"),
        unpaid=_named(counters, "unpaid:"),
        held_back=_named(counters, "held_back:"),
        abstained=seen,
        disagreed={
            d: Share(part=counters.get(f"disagreed:{d}", 0), of=counters[f"pairs:{d}"]) for d in pairs
        },
        unconfirmed=counters.get("unconfirmed", 0),
        flags_disagree=counters.get("flags_disagree", 0),
        latency_mean_seconds=counters.get("latency_ms", 0) / total / 1000 if total else None,
        latency_p90_seconds=_percentile(counters, 0.9),
        tokens=counters.get("tokens", 0),
        cost=counters.get("cost_micro", 0) / MICRO if counters.get("priced") else None,
    )


def complaints(health: JudgeHealth, policy: HealthPolicy) -> tuple[Complaint, ...]:
    """Return what is wrong with a judge; nothing while too little is known."""
    failed = sum(health.failed.values())
    unreadable = sum(health.failed.get(kind, 0) for kind in UNREADABLE)
    held_back = sum(health.failed.get(kind, 0) for kind in HELD_BACK)
    checks = [
        ("failed", failed, health.total, policy.failed_max, "of the requests have no judgment"),
        ("unreadable", unreadable, health.total, policy.unreadable_max, "of the replies could not be read"),
        ("held_back", held_back, health.total, policy.held_back_max, "were refused or filtered"),
    ]
    checks += [
        (f"abstained:{d}", one.part, one.of, policy.abstained_max, f"of the judgments abstain on {d}")
        for d, one in health.abstained.items()
    ]
    checks += [
        (f"disagreed:{d}", one.part, one.of, policy.disagreed_max, f"of the pairs of stages disagree on {d}")
        for d, one in health.disagreed.items()
    ]
    return tuple(
        Complaint(
            check=check,
            value=part / of,
            limit=limit,
            n=of,
            sentence=f"{part} of {of} ({part / of:.0%}) {words}; at most {limit:.0%}",
        )
        for check, part, of, limit, words in checks
        if of >= policy.min_count and part / of > limit
    )


def summed(hours: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counters."""
    total: Counter[str] = Counter()
    for one in hours:
        total.update(one)
    return dict(total)


def _pairs(record: Judgment) -> dict[str, int]:
    phase = record.phase
    if phase is None or phase.place is not Place.SECOND:
        return {}
    first = {one.dimension: one.score for one in phase.first_scores}
    found: dict[str, int] = {}
    for score in record.scores:
        other = first.get(score.dimension)
        if score.score is not None and other is not None:
            found[f"pairs:{score.dimension}"] = 1
            found[f"disagreed:{score.dimension}"] = (score.score >= PASS_MIN) != (other >= PASS_MIN)
    return found


def _bin(seconds: float) -> str:
    return next((str(limit) for limit in LATENCIES if seconds <= limit), "more")


def _percentile(counters: Mapping[str, int], share: float) -> float | None:
    wanted, seen = share * counters.get("total", 0), 0
    for limit in LATENCIES:
        seen += counters.get(f"latency<={limit}", 0)
        if seen and seen >= wanted:
            return float(limit)
    return None


def _named(counters: Mapping[str, int], begin: str) -> dict[str, int]:
    return {
        key.removeprefix(begin): count for key, count in sorted(counters.items()) if key.startswith(begin)
    }


def _sum(counters: Mapping[str, int], *names: str) -> int:
    return sum(counters.get(name, 0) for name in names)
