"""What a judgment costs the client: our judge against a bare AsyncOpenAI create() loop, in turns on one server.

    python benchmarks/judge_cost.py [--count 1000] [--pairs 3]

The server is our stub in a process of its own. Both ask the same question of the same model with the same schema;
ours also looks up documents, writes the prompt, reads the reply strictly and keeps the record. Quote the ratio: the
host drifts. Throughput is measured at 200 ms a call. The last line is JSON.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from judging import OneDocument, a_request, run, stub_beside, the_rubric
from openai import AsyncOpenAI

from monitor.adapters.openai_reply import asked_for
from monitor.judging.policy import Ability
from monitor.judging.prompt import PromptLimits, build_prompt

FEW, MANY = 50, 200
LATENCY_SECONDS = 0.2


async def create_loop(base_url: str, *, count: int, concurrency: int) -> dict[str, Any]:
    """Call create() so many times, with the SDK's own transport, and read the text as JSON."""
    client = AsyncOpenAI(api_key="none", base_url=base_url, timeout=15.0)
    dimensions = the_rubric().dimensions
    first = a_request("w0")
    documents = await OneDocument().find(first.conversation.turns[0].references)
    prompt = build_prompt(first, dimensions, documents, PromptLimits())
    form = asked_for(dimensions, Ability.JSON_SCHEMA)
    slots = asyncio.Semaphore(concurrency)

    async def one(number: int) -> None:
        async with slots:
            user = prompt.messages[1]["content"].replace("ITEM-w0", f"ITEM-w{number}")
            reply = await client.chat.completions.create(
                model="stub",
                messages=[prompt.messages[0], {"role": "user", "content": user}],  # type: ignore[list-item]
                temperature=0.0,
                max_tokens=1500,
                **form,
            )
            json.loads(reply.choices[0].message.content or "")

    began, cpu = time.monotonic(), _cpu()
    await asyncio.gather(*(one(number) for number in range(count)))
    seconds, used = time.monotonic() - began, _cpu() - cpu
    await client.close()
    return {"cpu_ms_per_judgment": used / count * 1000, "judgments_per_second": count / seconds}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def role(name: str, base_url: str, *, count: int, concurrency: int) -> dict[str, Any]:
    """Do one run, after a few calls that open the connections and import what is imported late."""
    if name == "create":
        await create_loop(base_url, count=concurrency, concurrency=concurrency)
        return await create_loop(base_url, count=count, concurrency=concurrency)
    await run(base_url, count=concurrency, concurrency=concurrency, deadline=45)
    return await run(base_url, count=count, concurrency=concurrency, deadline=45)


def in_child(name: str, base_url: str, *, count: int, concurrency: int) -> dict[str, float]:
    """Run a role in a process of its own, so that its CPU is its own."""
    arguments = ["--role", name, "--base-url", base_url, "--count", str(count)]
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), *arguments, "--concurrency", str(concurrency)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def costs(count: int, pairs: int) -> dict[str, float]:
    """Measure both at both concurrencies, in turns."""
    kinds = [(name, many) for many in (FEW, MANY) for name in ("judge", "create")]
    runs: dict[tuple[str, int], list[float]] = {kind: [] for kind in kinds}
    with stub_beside({}) as url:
        for _ in range(pairs):
            for name, many in kinds:
                found = in_child(name, url, count=count, concurrency=many)
                runs[name, many].append(found["cpu_ms_per_judgment"])
                print(f"{name:7} {many:4} in flight: {found['cpu_ms_per_judgment']:6.2f} ms CPU")

    def ratio(many: int) -> float:
        pairs_of = zip(runs["judge", many], runs["create", many], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs_of)

    return {
        "judge_cpu_ms": round(statistics.median(runs["judge", FEW]), 3),
        "create_cpu_ms": round(statistics.median(runs["create", FEW]), 3),
        "judge_ratio_to_create": round(ratio(FEW), 3),
        "judge_cpu_ms_at_200": round(statistics.median(runs["judge", MANY]), 3),
        "create_cpu_ms_at_200": round(statistics.median(runs["create", MANY]), 3),
        "judge_ratio_to_create_at_200": round(ratio(MANY), 3),
    }


def throughput(count: int) -> dict[str, float]:
    """Measure judgments a second against a slow server, as a share of what the latency allows."""
    found = {}
    with stub_beside({}, latency_seconds=LATENCY_SECONDS) as url:
        for many in (FEW, MANY):
            speed = in_child("judge", url, count=max(count, many * 5), concurrency=many)[
                "judgments_per_second"
            ]
            found[f"throughput_share_at_{many}"] = round(speed * LATENCY_SECONDS / many, 3)
    return found


def main() -> None:
    """Run everything, or one role for a parent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--role", choices=["judge", "create"])
    parser.add_argument("--base-url")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=FEW)
    parser.add_argument("--pairs", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.role:
        settings = {"count": chosen.count, "concurrency": chosen.concurrency}
        print(json.dumps(asyncio.run(role(chosen.role, chosen.base_url, **settings))))
        return
    print(json.dumps(costs(chosen.count, chosen.pairs) | throughput(chosen.count)))


if __name__ == "__main__":
    main()
