"""What a baseline of three weeks costs to pin: the time and the memory of its reading and of its arithmetic.

    python benchmarks/pinning.py [--days 21] [--per-hour 250] [--intents 20] [--prompts 10]

One scope on the embedded Valkey, judged as time goes by, so that buckets leave for hours on the way: 4 dimensions and
the critical one, rates 0.05 and 1; strata intent x channel (2), segments intent and prompt, all values alike. `read_s`
is what the store takes to answer, parsing included, `pin_s` the arithmetic; `mb` is the peak of what both hold, and
`whole_s` and `whole_mb` are a reading at once, with all segments. The last line is JSON.
"""

import argparse
import asyncio
import json
import os
import random
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

# The matrices are small: more threads than one cost more than they give. numpy reads it when it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import redis.asyncio

from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.conversations.conversation import Attributes
from monitor.detection.baseline import BaselinePolicy
from monitor.detection.pinning import Span, overall_series, overall_slices, pinned_of, span_of
from monitor.intake.event import ServedBy
from monitor.judging.judgment import DimensionScore, JudgeIdentity, Judgment, Target, judgment_id
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import Granularity, Scope
from monitor.windows.policy import WindowPolicy

BATCH = 100
END = datetime(2026, 1, 26, tzinfo=UTC)
DIMENSIONS = ("factual_correctness", "policy_adherence", "actionability", "safety")
JUDGE = JudgeIdentity(stage="first", backend="llm", version="8f3a02c1", model_asked="small")
POLICY = WindowPolicy()


def drawn(asked: argparse.Namespace) -> Iterator[Judgment]:
    """Draw judgments in the order of their time, from a seed."""
    chance = random.Random(7)  # noqa: S311 - traffic, not a secret
    count = asked.days * 24 * asked.per_hour
    for number in range(count):
        at = END - (count - number) * timedelta(hours=1) / asked.per_hour
        target = Target(kind=TargetKind.CONVERSATION, conversation_id=f"conversation-{number}", revision=1)
        scores = chance.choices((5, 4, 3, 2, 1), (55, 33, 8, 3, 1), k=len(DIMENSIONS))
        yield Judgment(
            judgment_id=judgment_id(target, rubric_version="r1", judge_version=JUDGE.version),
            target=target,
            attributes=Attributes(
                assistant="shop",
                intent=f"intent-{chance.randrange(asked.intents)}",
                channel=chance.choice(("web", "app")),
            ),
            served_by=ServedBy(prompt_hash=f"prompt-{chance.randrange(asked.prompts)}"),
            event_ids=(f"event-{number}",),
            rate=1.0 if chance.random() < 0.1 else 0.05,
            observed_at=at,
            judged_at=at,
            rubric_version="r1",
            judge=JUDGE,
            scores=tuple(
                DimensionScore(dimension=name, score=score, reason=f"{name}: a sentence")
                for name, score in zip(DIMENSIONS, scores, strict=True)
            ),
        )


async def filled(client: redis.asyncio.Redis, asked: argparse.Namespace) -> tuple[RedisWindows, Scope]:
    """Judge all that is asked for, as time goes by."""
    windows = RedisWindows(client, Keys("pinning"), POLICY)
    await windows.start()
    batch: list[Judgment] = []
    for record in drawn(asked):
        batch.append(record)
        if len(batch) == BATCH:
            await windows.apply(batch, now=record.observed_at)
            batch = []
    [scope] = await windows.scopes()
    return windows, scope


async def measured(url: str, asked: argparse.Namespace) -> dict[str, float]:
    """Pin once for the time and once for the memory, which slows everything down."""
    client = redis.asyncio.Redis.from_url(url)
    windows, scope = await filled(client, asked)
    start = END - timedelta(days=asked.days)
    oldest = (await windows.begins())[0]
    span = span_of(start, END, oldest=oldest, now=END, days=7, policy=POLICY)
    assert isinstance(span, Span)

    async def pin() -> tuple[float, int]:
        slices = await overall_slices(windows, scope, span)
        read = time.perf_counter()
        series = overall_series(slices, start=span.start, end=span.end, bucket_minutes=span.bucket_minutes)
        pinned_of(scope, series, release="bench", at=END, by="bench", policy=BaselinePolicy())
        return read, sum(map(len, slices.values()))

    began = time.perf_counter()
    read, cells = await pin()
    found = {"read_s": read - began, "pin_s": time.perf_counter() - read, "counts": float(cells)}
    began = time.perf_counter()
    whole = await windows.slices(scope, span.start, span.end, Granularity.HOUR)
    found |= {"whole_s": time.perf_counter() - began, "whole_counts": float(sum(map(len, whole.values())))}
    del whole
    tracemalloc.start()
    await pin()
    found["mb"] = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.reset_peak()
    await windows.slices(scope, span.start, span.end, Granularity.HOUR)
    found["whole_mb"] = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    await client.aclose()
    return found | {"slices": float((span.end - span.start) / timedelta(minutes=span.bucket_minutes))}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=int, default=21)
    parser.add_argument("--per-hour", type=int, default=250)
    parser.add_argument("--intents", type=int, default=20)
    parser.add_argument("--prompts", type=int, default=10)
    asked = parser.parse_args()
    server = EmbeddedValkey()
    server.start()
    try:
        found = asyncio.run(measured(server.url, asked))
    finally:
        server.stop()
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    main()
