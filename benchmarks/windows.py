"""What the windows cost: an update beside a bare script that counts the same, an evaluation, the memory.

    python benchmarks/windows.py [--days 7] [--judgments 20000]

Traffic: 1000 judgments an hour with a daily swing, two thirds of conversations and one third of turns (two scopes);
4 dimensions and the critical one; segments intent (10 of them, a few large) and prompt_hash (2), strata intent x
channel (3) x language (2), rates 0.05 and 1; 12 % of all scores below 4; 2 % arrive an hour late. Batches of 100.

The bare script writes the same counters, one HINCRBY each, a hundred judgments in one EVALSHA, and neither keeps
apart what came twice nor keeps cases. The two take turns, and each works on the same judgments; client CPU is that
of this process, server CPU what INFO says. An evaluation is 40 series (overall and 9 intents, 4 dimensions) over
7 days on arrays that the buckets have filled; `evaluate_ms` is its CPU, `reread_ms` the reading of the bucket that
changed. Bytes are those of MEMORY USAGE; worst cases, which are texts, are told apart. The last line is JSON.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

# The matrices are small: more threads than one cost more than they give. numpy reads it when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import redis.asyncio

from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import LAYOUT, RedisWindows
from monitor.conversations.conversation import Attributes
from monitor.detection.baseline import pin
from monitor.detection.counts import Column, CountsCache
from monitor.detection.regression import Payoffs, RegressionPolicy, assess, increments, payoffs
from monitor.intake.event import ServedBy
from monitor.judging.judgment import DimensionScore, JudgeIdentity, Judgment, Target, judgment_id
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import OVERALL, BucketCounts
from monitor.windows.policy import WindowPolicy

BATCH = 100
PER_HOUR = 1000
ROUNDS = 10
EVALUATIONS = 20
START = datetime(2026, 1, 5, tzinfo=UTC)
DIMENSIONS = ("factual_correctness", "policy_adherence", "actionability", "safety")
INTENTS = (
    "returns",
    "shipping",
    "billing",
    "account",
    "warranty",
    "loyalty",
    "stores",
    "gifts",
    "press",
    "other",
)
JUDGE = JudgeIdentity(stage="first", backend="llm", version="8f3a02c1", model_asked="small")
BARE = """
for n = 1, #ARGV, 8 do
  local bucket, stratum, digits, weight = KEYS[1] .. ARGV[n], ARGV[n + 1], ARGV[n + 2], ARGV[n + 3]
  for s = 4, 6 do
    local segment = ARGV[n + s]
    for d = 1, 5 do
      redis.call('HINCRBY', bucket, d .. segment .. stratum .. string.sub(digits, d, d) .. weight, 1)
    end
  end
  redis.call('EXPIRE', bucket, 864000)
end
"""


def drawn(count: int, first: int = 0) -> Iterator[Judgment]:
    """Draw judgments in the order of their arrival, from a seed."""
    chance = random.Random(7 + first)  # noqa: S311 - traffic, not a secret
    at = START
    for number in range(first, first + count):
        swing = 1 + 0.6 * np.sin((at.hour - 9) / 24 * 2 * np.pi)
        at += timedelta(seconds=3600 / PER_HOUR / swing)
        turn = number % 3 == 2
        target = Target(
            kind=TargetKind.TURN if turn else TargetKind.CONVERSATION,
            conversation_id=f"conversation-{number - turn}",
            revision=1,
            turn_event_id=f"event-{number}" if turn else None,
        )
        intent = min(int(chance.expovariate(0.45)), len(INTENTS) - 1)
        scores = chance.choices((5, 4, 3, 2, 1), (55, 33, 8, 3, 1), k=len(DIMENSIONS))
        observed = at - timedelta(hours=chance.random() < 0.02, seconds=chance.random() * 120)
        yield Judgment(
            judgment_id=judgment_id(target, rubric_version="r1", judge_version=JUDGE.version),
            target=target,
            attributes=Attributes(
                assistant="shop",
                intent=INTENTS[intent],
                channel=("web", "app", "phone")[min(int(chance.expovariate(1.2)), 2)],
                language="en" if chance.random() < 0.8 else "de",
                tenant="main",
            ),
            served_by=ServedBy(prompt_hash="3f9c21aa" if chance.random() < 0.9 else "77d0e1b2"),
            event_ids=(f"event-{number}",),
            rate=1.0 if chance.random() < 0.1 else 0.05,
            observed_at=max(observed, START),
            judged_at=at,
            rubric_version="r1",
            judge=JUDGE,
            scores=tuple(
                DimensionScore(
                    dimension=name, score=score, reason=f"{name}: what the judge says of it, in a sentence"
                )
                for name, score in zip(DIMENSIONS, scores, strict=True)
            ),
        )


class Bare:
    """The counters alone."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        """Take a client."""
        self._client = client
        self._sha = ""

    async def start(self) -> None:
        """Load the script."""
        self._sha = await self._client.script_load(BARE)

    async def apply(self, records: Sequence[Judgment]) -> None:
        """Count a batch."""
        arguments: list[str | int] = []
        for record in records:
            own, scores = record.attributes, [score.score or 0 for score in record.scores]
            arguments += (
                f"{record.target.kind}:{int(record.observed_at.timestamp()) // 900}",
                f"|{own.intent},{own.channel},{own.language},{own.tenant}|",
                "".join(map(str, scores)) + ("1" if min(scores) <= 2 else "0"),
                f"|{record.rate:g}",
                "*",
                f"intent={own.intent}",
                f"prompt_hash={record.served_by.prompt_hash}",
                record.judgment_id,
            )
        await self._client.evalsha(self._sha, 1, "bare:", *arguments)


async def cpu(client: redis.asyncio.Redis) -> tuple[float, float]:
    """Return the seconds of CPU that this process and the server have used."""
    found = await client.info("cpu")
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, found["used_cpu_user"] + found["used_cpu_sys"]


async def updates(client: redis.asyncio.Redis, count: int) -> dict[str, float]:
    """Measure both in turns; return microseconds a judgment."""
    bare, windows = Bare(client), RedisWindows(client, Keys("update"), WindowPolicy())
    await bare.start()
    await windows.start()
    records = list(drawn(count))
    # They are all there beforehand; a worker has a batch, and its collector does not walk over the others.
    gc.freeze()
    batches = [records[first : first + BATCH] for first in range(0, count, BATCH)]
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    each = len(batches) // ROUNDS
    for turn in range(ROUNDS):
        mine = batches[turn * each : (turn + 1) * each]
        for name in ("bare", "windows") if turn % 2 else ("windows", "bare"):
            before = await cpu(client)
            for batch in mine:
                if name == "bare":
                    await bare.apply(batch)
                else:
                    await windows.apply(batch, now=batch[-1].judged_at)
            after = await cpu(client)
            spent[name] = [total + a - b for total, a, b in zip(spent[name], after, before, strict=True)]
    counted = each * ROUNDS * BATCH / 1e6
    return {
        "bare_us": spent["bare"][0] / counted,
        "bare_server_us": spent["bare"][1] / counted,
        "update_us": spent["windows"][0] / counted,
        "server_us": spent["windows"][1] / counted,
    }


async def memory(client: redis.asyncio.Redis) -> dict[str, int]:
    """Return the bytes of all keys of the windows by their kind."""
    taken: dict[str, int] = defaultdict(int)
    async for key in client.scan_iter(match="fill:*", count=1000):
        kind = key.decode().partition(f":{LAYOUT}:")[2].partition(":")[0]
        taken[kind] += await client.memory_usage(key, samples=0)
    return taken


def of_series(buckets: Mapping[datetime, BucketCounts]) -> tuple[int, int]:
    """Return how many strata and segment values there are, and how many dimensions."""
    cells = {cell for counts in buckets.values() for cell in counts}
    values = {cell.stratum for cell in cells} | {cell.segment for cell in cells}
    return len(values), len({cell.dimension for cell in cells})


async def kept(client: redis.asyncio.Redis, days: int) -> dict[str, float]:
    """Fill some days; measure their memory and the evaluations on them."""
    windows = RedisWindows(client, Keys("fill"), WindowPolicy())
    await windows.start()
    empty = (await client.info("memory"))["used_memory"]
    entered = 0
    last = START
    batch: list[Judgment] = []
    for record in drawn(days * 24 * PER_HOUR, first=1):
        batch.append(record)
        if len(batch) == BATCH:
            await windows.apply(batch, now=record.judged_at)
            entered, last, batch = entered + BATCH, record.judged_at, []
    used = (await client.info("memory"))["used_memory"] - empty
    taken = await memory(client)
    series = 0
    for scope in await windows.scopes():
        values, dimensions = of_series(await windows.buckets(scope, START, last))
        series += values * dimensions
    counts = sum(taken[kind] for kind in ("b", "n", "q", "open", "scopes"))
    print(f"{entered} judgments, {series} series, {days} days; bytes by kind: {dict(taken)}, in all {used}")
    return {
        "bytes_per_series_day": counts / series / days,
        "bytes_per_contribution": taken["l"] / entered,
        "bytes_of_cases_per_day": taken["w"] / days,
        "bytes_in_all": used,
    }


async def evaluations(client: redis.asyncio.Redis) -> dict[str, float]:
    """Load 40 series, change their newest bucket, read again, evaluate."""
    reader = RedisWindows(client, Keys("fill"), WindowPolicy())
    writer = RedisWindows(client, Keys("fill"), WindowPolicy())
    [scope] = [one for one in await reader.scopes() if one.target is TargetKind.CONVERSATION]
    end = (await reader.begins())[-1] + timedelta(minutes=15)
    start = end - timedelta(days=7)
    cache, seen = CountsCache(15, timedelta(days=7)), dict[datetime, BucketCounts]()

    async def read() -> int:
        buckets = await reader.buckets(scope, start, end)
        changed = {begin: counts for begin, counts in buckets.items() if seen.get(begin) is not counts}
        seen.update(changed)
        return cache.update(changed)

    began = time.perf_counter()
    await read()
    first_load = time.perf_counter() - began
    keys = [(name, one) for name in DIMENSIONS for one in (OVERALL, *(f"intent={i}" for i in INTENTS[:9]))]
    baseline = pin(
        [cache.series(key, start, end) for key in keys if key[1] == OVERALL], scope_id=scope.id, label="bench"
    )
    took, cpu_took, reread, again = [], [], [], 0
    bets: dict[tuple[str, str], tuple[tuple[Column, ...], Payoffs]] = {}
    for number in range(EVALUATIONS):
        more = [
            one.model_copy(update={"observed_at": end - timedelta(minutes=5)})
            for one in drawn(BATCH, first=10_000_000 + number * BATCH)
        ]
        await writer.apply(more, now=end)
        began = time.perf_counter()
        again += await read()
        reread.append(time.perf_counter() - began)
        began, cpu_began = time.perf_counter(), time.thread_time()
        series = [cache.series(key, start, end) for key in keys]
        for one in series:
            # They depend on no bucket, only on which columns there are.
            if one.key not in bets or len(bets[one.key][0]) != len(one.columns):
                bets[one.key] = (
                    one.columns,
                    payoffs(one, baseline.dimensions[one.dimension], RegressionPolicy()),
                )
        assess(increments([(one, bets[one.key][1]) for one in series]), RegressionPolicy())
        took.append(time.perf_counter() - began)
        cpu_took.append(time.thread_time() - cpu_began)
    return {
        "evaluate_ms": float(np.median(cpu_took)) * 1e3,
        "evaluate_wall_ms": float(np.median(took)) * 1e3,
        "reread_ms": float(np.median(reread)) * 1e3,
        "reread_buckets": again / EVALUATIONS,
        "first_load_ms": first_load * 1e3,
    }


async def measured(url: str, days: int, judgments: int) -> dict[str, float]:
    """Measure all, one after the other."""
    client = redis.asyncio.Redis.from_url(url)
    found = await kept(client, days)
    found |= await evaluations(client)
    await client.flushall()
    found |= await updates(client, judgments)
    await client.aclose()
    return found | {
        "update_ratio_to_bare": found["update_us"] / found["bare_us"],
        "server_ratio_to_bare": found["server_us"] / found["bare_server_us"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--judgments", type=int, default=20_000)
    asked = parser.parse_args()
    server = EmbeddedValkey()
    server.start()
    try:
        found = asyncio.run(measured(server.url, asked.days, asked.judgments))
    finally:
        server.stop()
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    main()
