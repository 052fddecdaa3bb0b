"""Records of one shard in, one packed call out: each name, shape and set of marks in it once, records as numbers."""

from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import xxhash

from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import OTHER, Contribution, Scope, entry_key
from monitor.windows.case import cases_of
from monitor.windows.policy import WindowPolicy
from monitor.windows.store import Applied

TTL_MARGIN_DAYS = 1
"""Life beyond the retention, so that the server's clock never removes what the deployment's clock keeps."""
ANSWERS = {
    ord("n"): Applied.NEW,
    ord("r"): Applied.REPEATED,
    ord("s"): Applied.SUPERSEDED,
    ord("t"): Applied.STALE,
    ord("l"): Applied.LATE,
}
"""The letters in which the server answers."""
_DAY_SECONDS = 86_400
_T = TypeVar("_T", bound=Hashable)


class Batch:
    """What one call enters, in the order of the records."""

    def __init__(self) -> None:
        """Begin empty."""
        self.places: list[int] = []
        """Where the records stand in the question."""
        self._entries: list[str] = []
        self._records: list[int] = []
        self._names: dict[str, int] = {}
        self._shapes: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._marks: dict[tuple[tuple[str, str], ...], int] = {}
        self._scopes: dict[str, tuple[int, Scope]] = {}
        self._cases: dict[int, list[str]] = {}

    def add(self, place: int, record: Judgment | JudgeFailure, added: Contribution, rank: int) -> None:
        """Add one record."""
        entry = entry_key(
            record.target, rubric_version=record.rubric_version, judge_version=record.judge.version
        )
        self.places.append(place)
        self._entries.append(entry)
        scope = added.scope
        known = self._scopes.get(scope.id) or self._scopes.setdefault(
            scope.id, (len(self._scopes) + 1, scope)
        )
        self._records += (
            known[0],
            minute_of(added.bucket),
            rank,
            _number(self._shapes, (added.stratum, added.rate, added.segments)),
            _number(self._marks, added.marks),
        )
        if isinstance(record, Judgment) and (cases := cases_of(record)):
            owner = f"{entry}|{conversation_mark(record.target.conversation_id)}"
            packed = self._cases[len(self._entries)] = []
            for case in cases:
                packed += (f"{case.dimension}|{case.score}|{owner}", case.model_dump_json())

    def arguments(self, policy: WindowPolicy, now: datetime) -> Sequence[bytes]:
        """Return what the function `cm_windows_enter` is called with."""
        shapes = [
            [self._name("t", stratum), self._name("r", rate), *[self._name("g", one) for one in segments]]
            for stratum, rate, segments in self._shapes
        ]
        marks = [[self._name("m", f"{name}|{mark}") for name, mark in one] for one in self._marks]
        batch: dict[str, Any] = _limits(policy, now) | {
            "names": list(self._names),
            "shapes": shapes,
            "marks": marks,
            "scopes": [[scope.id, scope.model_dump_json()] for _, scope in self._scopes.values()],
            "records": self._records,
            "cases": self._cases,
        }
        return msgspec.msgpack.encode(batch), bytes.fromhex("".join(self._entries))

    def _name(self, kind: str, name: str) -> int:
        return _number(self._names, kind + name)


def minute_of(moment: datetime) -> int:
    """Return a time as the store counts it; a part of a minute counts for nothing."""
    return int(moment.timestamp()) // 60


def conversation_mark(conversation_id: str) -> str:
    """Return what ends the names of a conversation's cases, so that they can be found and erased."""
    return xxhash.xxh3_64_hexdigest(conversation_id.encode())


def _number(known: dict[_T, int], one: _T) -> int:
    # Lua counts from one.
    return known.get(one) or known.setdefault(one, len(known) + 1)


def _limits(policy: WindowPolicy, now: datetime) -> dict[str, Any]:
    def first_kept(days: int) -> int:
        return -int(-(now - timedelta(days=days)).timestamp() // 60)

    return {
        "late": first_kept(policy.retention_days),
        "late_hours": first_kept(policy.hourly_days),
        "late_days": first_kept(policy.daily_days),
        # Buckets wait for the next one to be rolled up, so they outlive a long pause.
        "ttl_bucket": (policy.hourly_days + TTL_MARGIN_DAYS) * _DAY_SECONDS,
        "ttl_day": (policy.daily_days + TTL_MARGIN_DAYS) * _DAY_SECONDS,
        "ttl_ledger": (policy.retention_days + TTL_MARGIN_DAYS) * _DAY_SECONDS,
        "cases_max": policy.cases_per_bucket,
        "strata_max": policy.strata_max,
        "segment_values_max": policy.segment_values_max,
        "other_stratum": ",".join([OTHER] * len(policy.strata)),
        "period": policy.ledger_days * 1440,
    }
