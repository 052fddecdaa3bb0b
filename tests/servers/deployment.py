"""A deployment for the tests: a policy and addresses in, processes that can be killed and what they left behind out.

`Deployment` of the product ends when one of its processes does. Here each process is its own, so that one can be
killed and started again while the others go on, as an orchestrator would have it.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from monitor.adapters.kafka_admin import Held, KafkaAdmin
from monitor.cli.views import Views
from monitor.funnel import Funnel
from monitor.intake.dead_letter import DeadLetter
from monitor.judging.judgment import JUDGMENT_RECORD, JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.policy import Policy, load_policy
from monitor.sampling.decision import position, salt
from monitor.settings import Settings, process_environment
from monitor.topics import DEAD_LETTERS, JUDGMENTS, topics
from tests.servers.apache_kafka import dying_with_parent

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "monitor" / "demo"
WAIT_LIMIT_SECONDS = 60.0
"""For anything that a deployment should do; three times the slowest seen, a takeover on two busy cores."""
LOOK_EVERY_SECONDS = 0.2
LOG_TAIL = 3000
SESSION_SECONDS = 6


def config_in(folder: Path, **monitor: Mapping[str, Any]) -> Path:
    """Write a copy of the demo's configuration with sections of monitor.yaml changed; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (DEMO / "config").iterdir():
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    path = folder / "monitor.yaml"
    sections = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, section in monitor.items():
        sections[name] = sections.get(name, {}) | section
    path.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return folder


def settings_for(folder: Path, *, namespace: str, config: Path | None = None, **more: Any) -> Settings:
    """Return settings of a deployment of its own: nothing is read from the shell that runs the tests."""
    defaults = {
        "namespace": namespace,
        "config": config or DEMO / "config",
        "documents": DEMO / "policies",
        "data_dir": folder / "data",
        "judge_api_key": SecretStr("a key of the tests"),
        "session_timeout_seconds": SESSION_SECONDS,
        "log_level": "info",
    }
    return Settings(_env_file=None, **(defaults | more))


def policy_of(settings: Settings) -> Policy:
    """Read the policy that the processes will read."""
    return load_policy(settings.config, clock=settings.clock)


def create_topics(settings: Settings, policy: Policy) -> None:
    """Create what the deployment needs, as `Deployment` does."""
    with closing(KafkaAdmin(settings)) as admin:
        admin.create(topics(policy.monitor.topics, namespace=settings.namespace))


class Processes:
    """The processes of one deployment, each by its name; all of them die with the test."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self.starts: Counter[str] = Counter()

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Start a process under a name; without a command it is the one of the last time."""
        if command:
            self._commands[name] = list(command)
        with self.log_path(name).open("ab") as log:
            process = subprocess.Popen(
                dying_with_parent([sys.executable, "-m", *self._commands[name]]),
                cwd=ROOT,
                env=process_environment(self.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._running[name] = process
        self.starts[name] += 1
        return process

    def sample(self, name: str = "sample") -> subprocess.Popen[bytes]:
        return self.start(name, "monitor.cli.main", "sample")

    def work(self, name: str, *stages: str) -> subprocess.Popen[bytes]:
        return self.start(name, "monitor.cli.main", "work", *stages)

    def kill(self, name: str) -> None:
        """End a process by SIGKILL."""
        process = self._running.pop(name)
        assert process.poll() is None, f"{name} ended before it was killed:\n{self.log(name)}"
        process.kill()
        process.wait()

    def forget(self, name: str) -> None:
        """Leave alone a process that was meant to end."""
        assert self._running.pop(name).poll() is not None, f"{name} is still running"

    def dead(self) -> list[str]:
        """Return the names of those that ended by themselves."""
        return [name for name, process in self._running.items() if process.poll() is not None]

    def status(self, name: str) -> int:
        """Return the exit status of one that ended."""
        return self._running[name].wait()

    def check(self) -> None:
        """Fail if one has ended by itself."""
        for name in self.dead():
            pytest.fail(f"{name} ended with {self._running[name].returncode}\n{self.log(name)}")

    def log_path(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def log(self, name: str) -> str:
        return self.log_path(name).read_text(errors="replace")[-LOG_TAIL:]

    def logs(self) -> str:
        return "\n".join(f"--- {name}\n{self.log(name)}" for name in self._commands)

    def close(self, *, limit: float = 30.0) -> None:
        """End all in order; kill what does not."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + limit
        for process in self._running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


@contextmanager
def processes(settings: Settings, folder: Path) -> Iterator[Processes]:
    """Hand out the processes of a deployment and kill them in the end; the test has seen what it wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Processes(settings, folder)
    try:
        yield found
    finally:
        found.close(limit=0.1)


def wait_until(
    condition: Callable[[], object],
    *,
    watched: Processes | None = None,
    limit: float = WAIT_LIMIT_SECONDS,
    every: float = LOOK_EVERY_SECONDS,
    told: Callable[[], object] = lambda: "",
) -> None:
    """Wait for a condition; fail with what the processes last said, and with what `told` says."""
    deadline = time.monotonic() + limit
    while not condition():
        if watched is not None:
            watched.check()
        if time.monotonic() > deadline:
            logs = watched.logs() if watched else ""
            pytest.fail(f"waited {limit:g} s: {told()}\n{logs}")
        time.sleep(every)


def drained(views: Views, events: int, *, watched: Processes | None = None, limit: float = 90.0) -> Funnel:
    """Wait until that many events have their final outcome; return the funnel."""
    wait_until(lambda: views.funnel().finished >= events, watched=watched, limit=limit, told=views.funnel)
    return views.funnel()


# --- what is left behind, read from Kafka itself


def read(settings: Settings, topic: str) -> list[Held]:
    """Return all messages of a topic, clock markers included."""
    with closing(KafkaAdmin(settings)) as admin:
        return list(admin.read(settings.topic_prefix + topic))


def records_of(settings: Settings) -> list[Judgment | JudgeFailure]:
    """Return everything in the judgments topic, repetitions included."""
    return [
        JUDGMENT_RECORD.validate_json(held.value)
        for held in read(settings, JUDGMENTS)
        if not held.headers and held.value
    ]


def units_of(records: Iterable[Judgment | JudgeFailure]) -> set[tuple[str, str]]:
    """Return the distinct (conversation, dimension) that the windows should count: those of the last revision."""
    last: dict[str, Judgment] = {}
    for record in records:
        target = record.target
        if (
            isinstance(record, JudgeFailure)
            or target.kind is not TargetKind.CONVERSATION
            or record.rate is None
        ):
            continue
        known = last.get(target.conversation_id)
        if known is None or known.target.revision <= target.revision:
            last[target.conversation_id] = record
    return {(name, score.dimension) for name, record in last.items() for score in record.scores}


def double_counted(views: Views, records: Iterable[Judgment | JudgeFailure]) -> int:
    """Return units in the buckets minus distinct ones in the topic; below zero some are missing."""
    return views.units() - len(units_of(records))


def dead_letters_of(settings: Settings) -> list[DeadLetter]:
    """Return the dead letters, each once however often it was written."""
    letters = [
        DeadLetter.model_validate_json(held.value) for held in read(settings, DEAD_LETTERS) if held.value
    ]
    return list({letter.id: letter for letter in letters}.values())


# --- events


def kept_ids(policy: Policy, prefix: str, count: int, *, keep: bool = True) -> list[str]:
    """Return ids of conversations that the default rate keeps (or does not)."""
    seed, rate = salt(policy.sampling.cohort), policy.sampling.default_rate
    found = []
    number = 0
    while len(found) < count:
        name = f"{prefix}-{letters(number)}"
        if (position(name, seed) < rate) == keep:
            found.append(name)
        number += 1
    return found


def whole(conversation_id: str, *, at: datetime, text: str = "Where is my parcel?") -> dict[str, Any]:
    """Return a conversation of one turn, told in one piece; its id stands in its text, for a stub to see."""
    return {
        "event_id": f"{conversation_id}:whole",
        "conversation_id": conversation_id,
        "type": "conversation",
        "occurred_at": at.isoformat(),
        "assistant": "shop",
        "intent": "order_status",
        "channel": "web",
        "references": [{"id": "order_status.md"}],
        "served_by": {"prompt_hash": "3f9c21aa"},
        "messages": [
            {"role": "user", "content": f"{text} This is case <{conversation_id}>."},
            {"role": "assistant", "content": "It left our warehouse and should be with you soon."},
        ],
    }


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the producer of the events is outside of the monitor


def letters(number: int) -> str:
    """Return a number in letters."""
    # Figures in a text might be taken for a phone number and masked.
    name = ""
    while True:
        number, rest = divmod(number, 26)
        name = chr(ord("a") + rest) + name
        if not number:
            return name.rjust(3, "a")
