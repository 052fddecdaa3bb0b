"""The product's judge against a server: what is judged, lost and wrong, with how many calls and how much CPU.

    python benchmarks/judging.py --base-url http://127.0.0.1:18900/v1 --count 2000 --concurrency 50 --deadline 45

Each prompt carries an `ITEM-<word>`, from which a stub server's answer is known: 1 + hash(word, "score") mod 5 for
every dimension. Without --base-url a stub of our own runs in a process beside, once for each fault. The last line
is JSON; `lost` are all that were not judged, and `failed_by_reason` says why.
"""

import argparse
import asyncio
import hashlib
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from monitor.adapters.memory import MemoryAnswers
from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.conversations.conversation import Conversation, Turn
from monitor.intake.event import Message, Reference, Role
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judgment import JudgeFailure, JudgeRequest, Judgment, Target
from monitor.judging.limiter import LimiterPolicy
from monitor.judging.policy import JudgePolicy
from monitor.judging.references import Document
from monitor.judging.rubric import Rubric, TargetKind
from tests.servers.stub_judge import StubJudge, serving

FAULTS: dict[str, dict[str, float]] = {
    "none": {},
    "10 % 429, Retry-After": {"429": 0.1},
    "10 % 429, without": {"429_bare": 0.1},
    "5 % malformed": {"malformed": 0.05},
    "5 % out of range": {"out_of_range": 0.05},
    "5 % fenced": {"fenced": 0.05},
    "5 % empty": {"empty": 0.05},
    "5 % HTML with 200": {"html": 0.05},
    "5 % 500": {"500": 0.05},
    "5 % dropped": {"drop": 0.05},
    "1 % hang": {"hang": 0.01},
    "1 % drip": {"drip": 0.01},
    "5 % truncated": {"truncated": 0.05},
    "5 % refused": {"refusal": 0.05},
}
ANSWER = "Your order was handed to the carrier on 3 March and is due on 6 March. " * 3
POLICY = "Orders are handed to the carrier within two working days. Returns are free within 30 days. " * 12
DEFAULTS = JudgePolicy()


class OneDocument:
    """The port `ReferenceSource` with one document."""

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return it under every id."""
        return tuple(Document.of(reference.id, POLICY, "v1") for reference in references)


def known_score(word: str) -> int:
    """Return what a stub answers for an item, on every dimension."""
    digest = hashlib.blake2b(f"{word}|score".encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % 5


def the_rubric() -> Rubric:
    """Read the default rubric."""
    path = Path(__file__).parent.parent / "config" / "rubric.yaml"
    return Rubric.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def a_request(word: str) -> JudgeRequest:
    """Build the request for one item: a turn of about 1,000 tokens with its rules."""
    at = datetime.now(UTC)
    turn = Turn(
        event_id=f"e-{word}",
        turn_index=0,
        occurred_at=at,
        messages=(
            Message(role=Role.USER, content=f"ITEM-{word} Where is my order?"),
            Message(role=Role.ASSISTANT, content=ANSWER),
        ),
        references=(Reference(id="policy.md"),),
    )
    return JudgeRequest(
        target=Target(kind=TargetKind.TURN, conversation_id=word, turn_event_id=turn.event_id),
        conversation=Conversation(id=word, turns=(turn,), rate=1.0),
        rate=1.0,
        observed_at=at,
        requested_at=at,
    )


def build(base_url: str, *, concurrency: int, deadline: float) -> tuple[OpenAIJudge, Executor]:
    """Build judge and executor as a worker has them, but for the stores."""
    timeout = min(DEFAULTS.timeout_seconds, deadline / 3)
    endpoint = Endpoint(
        api_key="none",
        base_url=base_url,
        timeout_seconds=timeout,
        limits=LimiterPolicy(concurrency_max=concurrency),
    )
    rubric = the_rubric()
    judge = OpenAIJudge(
        rubric,
        OneDocument(),
        model="stub",
        endpoint=endpoint,
        timeout_seconds=timeout,
        deadline_seconds=deadline,
        max_attempts=DEFAULTS.max_attempts,
    )
    limits = ExecutorPolicy(deadline_seconds=deadline + 300, max_age=timedelta(hours=24))
    executor = Executor(judge, MemoryAnswers(), rubric.version, limits, gate=endpoint.gate)
    return judge, executor


async def run(base_url: str, *, count: int, concurrency: int, deadline: float) -> dict[str, Any]:
    """Judge so many items, so many at once, and count."""
    judge, executor = build(base_url, concurrency=concurrency, deadline=deadline)
    slots = asyncio.Semaphore(concurrency)

    async def one(number: int) -> tuple[str, Judgment | JudgeFailure]:
        async with slots:
            word = f"w{number}"
            return word, await executor.record_of(a_request(word), now=lambda: datetime.now(UTC))

    began, cpu = time.monotonic(), _cpu()
    records = await asyncio.gather(*(one(number) for number in range(count)))
    seconds, used = time.monotonic() - began, _cpu() - cpu
    await judge.close()
    judged = [(word, record) for word, record in records if isinstance(record, Judgment)]
    failed = Counter(str(record.kind) for _, record in records if isinstance(record, JudgeFailure))
    wrong = sum(any(score.score != known_score(word) for score in record.scores) for word, record in judged)
    calls = sum(record.usage.attempts for _, record in records)
    return {
        "judged": len(judged),
        "failed_by_reason": dict(failed),
        "lost": count - len(judged),
        "wrong": wrong,
        "calls": calls,
        "calls_ratio": round(calls / count, 4),
        "cpu_ms_per_judgment": round(used / count * 1000, 3),
        "judgments_per_second": round(count / seconds, 1),
        "wall_seconds": round(seconds, 2),
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def stub_beside(faults: dict[str, float], *, latency_seconds: float = 0.0) -> Iterator[str]:
    """Run our own stub in a process of its own; yield its address."""
    told = json.dumps({"faults": faults, "latency_seconds": latency_seconds})
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("judging.py")), "--serve", told],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.terminate()
        process.wait(30)


async def serve(told: dict[str, Any]) -> None:
    """Serve the stub until the parent ends it."""
    stub = StubJudge(told["faults"], keeps_requests=False, latency_seconds=told["latency_seconds"])
    async with serving(stub):
        print(stub.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run against a server, or against our own stub with each fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--deadline", type=float, default=DEFAULTS.deadline_seconds)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve(json.loads(chosen.serve)))
        return
    settings = {"count": chosen.count, "concurrency": chosen.concurrency, "deadline": chosen.deadline}
    if chosen.base_url:
        print(json.dumps(asyncio.run(run(chosen.base_url, **settings))))
        return
    found = {}
    for name, faults in FAULTS.items():
        with stub_beside(faults) as url:
            found[name] = told = asyncio.run(run(url, **settings))
        failed = ", ".join(f"{count} {kind}" for kind, count in told["failed_by_reason"].items()) or "-"
        figures = (name, told["judged"], failed, told["wrong"], told["calls_ratio"], told["wall_seconds"])
        print("| " + " | ".join(map(str, figures)) + " |", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
