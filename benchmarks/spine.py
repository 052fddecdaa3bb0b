"""What the spine costs: the sampler against a bare loop, the judge agent against an instant judge, the whole way.

    python benchmarks/spine.py [--events 200000] [--judgments 3000] [--end-to-end 20000]

Runs on the embedded servers, with the sampler and the bare loop in turns, for the host drifts: quote the ratio.
CPU is that of the client process with all its threads. The last line is JSON.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis
import xxhash
from confluent_kafka import Consumer, Producer, TopicPartition

from agents.sampling import build_loop
from agents.services import build_services
from agents.supervisor import Deployment
from agents.worker import work
from monitor.adapters.embedded_kafka import EmbeddedKafka
from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.cli.logs import configure
from monitor.cli.replaying import run_on
from monitor.cli.views import Views
from monitor.clock import ClockKind
from monitor.conversations.conversation import Conversation, Turn
from monitor.demo.traffic import traffic
from monitor.funnel import Funnel
from monitor.intake.event import Message, Role
from monitor.judging.judgment import JudgeRequest, Target
from monitor.judging.rubric import TargetKind
from monitor.policy import load_policy
from monitor.settings import Settings, load_settings, process_environment
from monitor.topics import CONVERSATION_EVENTS, JUDGE_REQUESTS, JUDGMENTS, topics
from tests.servers.stub_judge import StubJudge, serving

KEPT = 0.05
PARTITIONS = 4
PAIRS = 3
"""Runs of the bare loop and of the sampler, in turns."""
TEXT = (
    "I ordered the grey tent three weeks ago and it has still not come, what happened to it? "
    "Your order was handed to the carrier on 3 March and is due on 6 March; you can follow it under My orders. "
)


def event(number: int, start: datetime) -> dict[str, Any]:
    """Build one event of about 1.4 KB: the turn of one of many conversations."""
    at = start + timedelta(milliseconds=20 * number)
    return {
        "event_id": f"e{number}",
        "conversation_id": f"c{number // 3}",
        "type": "turn",
        "turn_index": number % 3,
        "occurred_at": at.isoformat(),
        "assistant": "shop",
        "intent": ("returns", "shipping", "billing")[number // 3 % 3],
        "channel": "web",
        "language": "en",
        "served_by": {"model_asked": "large", "model_answered": "large", "prompt_hash": "3f9c21aa"},
        "messages": [
            {"role": "user", "content": TEXT * 2},
            {"role": "assistant", "content": TEXT * 3},
        ],
    }


@contextmanager
def servers(folder: Path) -> Iterator[Settings]:
    """Run the embedded servers and yield the settings that reach them."""
    kafka, valkey = EmbeddedKafka(), EmbeddedValkey()
    kafka.start()
    valkey.start()
    try:
        config = folder / "config"
        config.mkdir()
        (config / "sampling.yaml").write_text(f"cohort: bench\ndefault_rate: {KEPT}\n", encoding="utf-8")
        settings = load_settings(
            kafka=kafka.bootstrap, redis=valkey.url, config=config, session_timeout_seconds=6
        )
        admin = KafkaAdmin(settings)
        admin.create(topics(load_policy(config).monitor.topics))
        admin.close()
        yield settings
    finally:
        valkey.stop()
        kafka.stop()


def fill(settings: Settings, count: int) -> None:
    """Write the events that the loops read."""
    producer = Producer(settings.confluent | {"linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    start = datetime.now(UTC) - timedelta(hours=2)
    for number in range(count):
        one = event(number, start)
        key = one["conversation_id"].encode()
        partition = xxhash.xxh3_64_intdigest(key) % PARTITIONS
        producer.produce(CONVERSATION_EVENTS, value=json.dumps(one).encode(), key=key, partition=partition)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def bare(settings: Settings, count: int) -> None:
    """Consume, hash the key, forward 5 %: the least that sampling can cost."""
    consumer = Consumer(settings.confluent | {"group.id": f"bare-{os.getpid()}", "enable.auto.commit": False})
    consumer.assign([TopicPartition(CONVERSATION_EVENTS, number, 0) for number in range(PARTITIONS)])
    producer = Producer(settings.confluent | {"linger.ms": 5, "enable.idempotence": True})
    limit = int(KEPT * 2**64)
    seen = 0
    began = _warm(consumer)
    while seen < count:
        messages = consumer.consume(2000, 1.0)
        for message in messages:
            if xxhash.xxh3_64_intdigest(message.key()) < limit:
                producer.produce("bare-out", value=message.value(), key=message.key())
        producer.flush()
        seen += len(messages)
    _report(seen, began)


def sampler(settings: Settings, count: int) -> None:
    """Run the product's own loop, with its census, counts and commits in Redis and Kafka."""
    loop = build_loop(settings, load_policy(settings.config))
    consumer = loop._consumer  # noqa: SLF001 - the bench hands the loop its partitions, so that no join is measured
    assigned = [TopicPartition(CONVERSATION_EVENTS, number, 0) for number in range(PARTITIONS)]
    consumer.assign(assigned)
    loop._on_assign(consumer, assigned)  # noqa: SLF001
    seen = 0
    began = _warm(consumer)
    while seen < count:
        seen += loop.round()
    _report(seen, began)


def _warm(consumer: Consumer) -> tuple[float, float]:
    del consumer
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), used.ru_utime + used.ru_stime


def _report(seen: int, began: tuple[float, float]) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime - began[1]
    seconds = time.monotonic() - began[0]
    print(json.dumps({"cpu_us": cpu / seen * 1e6, "events_per_second": seen / seconds}))


def in_child(role: str, settings: Settings, count: int, **changes: object) -> dict[str, float]:
    """Run a role in a process of its own, so that its CPU is its own."""
    settings = Settings.model_validate(dict(settings) | changes)
    done = subprocess.run(
        [sys.executable, __file__, "--role", role, "--events", str(count)],
        env=process_environment(settings),
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def sampling(count: int) -> dict[str, float]:
    """Measure sampler and bare loop in turns on the same events."""
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder)) as settings:
        fill(settings, count)
        runs: dict[str, list[float]] = {"bare": [], "sampler": []}
        for turn in range(PAIRS):
            for role, costs in runs.items():
                # What is counted already would be skipped.
                redis.Redis.from_url(settings.redis).flushall()
                found = in_child(role, settings, count)
                costs.append(found["cpu_us"])
                print(
                    f"{role:8} {turn + 1}: {found['cpu_us']:6.2f} us, {found['events_per_second']:,.0f} events/s"
                )
    ratio = statistics.median(
        ours / theirs for ours, theirs in zip(runs["sampler"], runs["bare"], strict=True)
    )
    return {
        "sampler_cpu_us_per_event": round(statistics.median(runs["sampler"]), 2),
        "bare_cpu_us_per_event": round(statistics.median(runs["bare"]), 2),
        "sampler_ratio_to_bare": round(ratio, 2),
    }


def stub() -> None:
    """Serve the instant judge until the parent ends."""

    async def serve() -> None:
        async with serving(StubJudge()) as judge:
            print(judge.url, flush=True)
            await asyncio.Event().wait()

    asyncio.run(serve())


def judging(count: int) -> dict[str, float]:
    """Measure the judge agent, Faust and all, against a judge that answers at once."""
    with (
        tempfile.TemporaryDirectory() as folder,
        servers(Path(folder)) as settings,
        _child("stub", settings) as server,
    ):
        url = server.stdout.readline().strip() if server.stdout else ""
        judge = f"judge: {{backend: llm, model: stub, base_url: {url}, concurrency: 64}}\n"
        (settings.config or Path()).joinpath("monitor.yaml").write_text(judge, encoding="utf-8")
        with_key = Settings.model_validate(dict(settings) | {"judge_api_key": "none"})
        producer = Producer(settings.confluent)
        for number in range(count):
            request = _request(number)
            producer.produce(JUDGE_REQUESTS, value=request, key=f"c{number}", partition=number % PARTITIONS)
        producer.flush()
        with _child("judge", with_key), closing(KafkaAdmin(settings)) as admin:
            stamps: list[int] = []
            while len(stamps) < count:
                time.sleep(2)
                stamps = sorted(held.timestamp_ms for held in admin.read(JUDGMENTS))
    # Without the first and the last tenth: start and end are not the agent's speed.
    first, last = count // 10, count - count // 10
    return {"judgments_per_second": round((last - first) / (stamps[last - 1] - stamps[first]) * 1000, 1)}


def work_on_judging() -> None:
    """Run the judge stage in this process."""
    settings = load_settings()
    configure(settings)
    asyncio.run(work(build_services(settings, load_policy(settings.config)), ["judge"]))


def _request(number: int) -> bytes:
    at = datetime.now(UTC)
    turn = Turn(
        event_id=f"e{number}",
        turn_index=0,
        occurred_at=at,
        messages=(
            Message(role=Role.USER, content=f"{number}: {TEXT}"),
            Message(role=Role.ASSISTANT, content=TEXT * 2),
        ),
    )
    request = JudgeRequest(
        target=Target(kind=TargetKind.TURN, conversation_id=f"c{number}", turn_event_id=turn.event_id),
        conversation=Conversation(id=f"c{number}", turns=(turn,), rate=KEPT),
        rate=KEPT,
        observed_at=at,
        requested_at=at,
    )
    return request.model_dump_json().encode()


@contextmanager
def _child(role: str, settings: Settings) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--role", role],
        env=process_environment(settings) | {"MONITOR_LOG_LEVEL": "error"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def whole_way(conversations: int) -> dict[str, float]:
    """Measure events a second from the source topic to the last outcome, rules as judge, 5 % kept."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config"
        config.mkdir()
        (config / "sampling.yaml").write_text(f"cohort: bench\ndefault_rate: {KEPT}\n", encoding="utf-8")
        settings = load_settings(
            namespace="bench", config=config, clock=ClockKind.STREAM, documents=Path("monitor/demo/policies")
        )
        policy = load_policy(config, clock=ClockKind.STREAM)
        logs = Path(folder) / "logs"
        deployment = Deployment(settings, policy, embedded_kafka=True, embedded_redis=True, log_folder=logs)
        events = traffic(conversations)
        with deployment, closing(Views(deployment.settings, policy)) as views:
            time.sleep(8)  # workers have joined their groups; joining is not what is measured
            began = time.monotonic()
            done_at: list[float] = []

            def look(funnel: Funnel) -> None:
                if funnel.finished >= len(events) and not done_at:
                    done_at.append(time.monotonic())

            replayed = run_on(
                deployment, views, events, speed=None, sent=lambda _count, _moment: None, look=look
            )
            seconds = (done_at[0] if done_at else time.monotonic()) - began
        if replayed.lost:
            raise SystemExit(f"{replayed.lost} events lost")
    return {"end_to_end_events_per_second": round(replayed.events / seconds)}


def main() -> None:
    """Run everything, or one role for a parent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--role", choices=["bare", "sampler", "judge", "stub"])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--judgments", type=int, default=3000)
    parser.add_argument("--conversations", type=int, default=12_000)
    chosen = parser.parse_args()
    match chosen.role:
        case "bare":
            bare(load_settings(), chosen.events)
        case "sampler":
            sampler(load_settings(), chosen.events)
        case "judge":
            work_on_judging()
        case "stub":
            stub()
        case _:
            found = sampling(chosen.events)
            found |= judging(chosen.judgments)
            found |= whole_way(chosen.conversations)
            print(json.dumps(found))


if __name__ == "__main__":
    main()
