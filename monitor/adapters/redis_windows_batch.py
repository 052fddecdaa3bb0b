"""Records of one shard in, one packed call out: each name, shape and set of marks in it once, records as numbers."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import xxhash

from monitor.intake.moments import floor
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.windows.bucket import OTHER, Contribution, entry_key, rank
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
Entered = tuple[Judgment | JudgeFailure, Contribution]
"""A record and what it adds."""
_DAY_SECONDS = 86_400


def packed(batch: Sequence[Entered], policy: WindowPolicy, now: datetime) -> tuple[bytes, bytes]:
    """Return the arguments of `cm_windows_enter`, which enters the records in their order."""
    entries: list[str] = []
    records: list[int] = []
    scopes: dict[str, int] = {}
    shapes: dict[tuple[str, str, tuple[str, ...]], int] = {}
    marks: dict[tuple[tuple[str, str], ...], int] = {}
    cases: dict[int, list[str]] = {}
    owners: list[list[str]] = []
    for record, added in batch:
        entry = entry_key(
            record.target, rubric_version=record.rubric_version, judge_version=record.judge.version
        )
        entries.append(entry)
        scope, shape = added.scope, (added.stratum, added.rate, added.segments)
        number = scopes.get(scope.id)
        if number is None:
            owners.append([scope.id, scope.model_dump_json()])
            number = scopes[scope.id] = len(owners)
        # Lua counts from one.
        records += (
            number,
            minute_of(added.bucket),
            rank(record),
            shapes.get(shape) or shapes.setdefault(shape, len(shapes) + 1),
            marks.get(added.marks) or marks.setdefault(added.marks, len(marks) + 1),
        )
        if isinstance(record, Judgment) and (failing := cases_of(record)):
            owner = f"{entry}|{conversation_mark(record.target.conversation_id)}"
            cases[len(entries)] = [
                text
                for case in failing
                for text in (f"{case.dimension}|{case.score}|{owner}", case.model_dump_json())
            ]
    names: dict[str, int] = {}

    def named(name: str) -> int:
        return names.get(name) or names.setdefault(name, len(names) + 1)

    told: dict[str, Any] = _limits(policy, now) | {
        "shapes": [
            [named(f"t{stratum}"), named(f"r{rate}"), *[named(f"g{one}") for one in segments]]
            for stratum, rate, segments in shapes
        ],
        "marks": [[named(f"m{name}|{mark}") for name, mark in one] for one in marks],
        "names": list(names),
        "scopes": owners,
        "records": records,
        "cases": cases,
    }
    return msgspec.msgpack.encode(told), bytes.fromhex("".join(entries))


def minute_of(moment: datetime) -> int:
    """Return a time as the store counts it; a part of a minute counts for nothing."""
    return int(moment.timestamp()) // 60


def conversation_mark(conversation_id: str) -> str:
    """Return what ends the names of a conversation's cases, so that they can be found and erased."""
    return xxhash.xxh3_64_hexdigest(conversation_id.encode())


def _limits(policy: WindowPolicy, now: datetime) -> dict[str, Any]:
    def first_kept(days: int) -> int:
        return -int(-(now - timedelta(days=days)).timestamp() // 60)

    return {
        "today": minute_of(floor(now, minutes=1440)),
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
