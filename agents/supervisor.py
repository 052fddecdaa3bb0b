"""All processes of one deployment on one machine: embedded servers where none are given, sampler, workers."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from monitor.adapters.embedded_kafka import EmbeddedKafka
from monitor.adapters.embedded_process import end_with_parent
from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.judging.shadow import SHADOW
from monitor.policy import Policy
from monitor.settings import Settings, process_environment
from monitor.topics import topics

STOP_SECONDS = 30.0
"""How long a process may take to end in order before it is killed."""
WORKERS: tuple[tuple[str, ...], ...] = (("assemble", "judge"), ("aggregate", "changes", "evaluate", "notify"))
"""The stages of the two worker processes; judging gets a core of its own."""

log = structlog.get_logger()


class ProcessFailed(Exception):  # noqa: N818 - it states a condition
    """One of the deployment's processes ended by itself; the message says which, and where its log is."""


@dataclass
class _Child:
    name: str
    arguments: Sequence[str]
    process: subprocess.Popen[bytes]
    log_file: Path | None


@dataclass
class Deployment(AbstractContextManager["Deployment"]):
    """Everything that one machine runs; leaving the context ends it all, in order."""

    settings: Settings
    policy: Policy
    embedded_kafka: bool
    embedded_redis: bool
    log_folder: Path | None = None
    """Where the processes' logs go; None leaves them on our own standard error."""
    keep_redis_in: Path | None = None
    restarts_max: int = 0
    """How many processes that ended by themselves are started again; a demo wants to see the first failure."""
    _kafka: EmbeddedKafka | None = field(default=None, init=False)
    _redis: EmbeddedValkey | None = field(default=None, init=False)
    _children: list[_Child] = field(default_factory=list, init=False)
    _restarts: Counter[str] = field(default_factory=Counter, init=False)

    def __enter__(self) -> Self:
        """Start servers, topics and processes."""
        try:
            self._start_servers()
            self._create_topics()
            self._spawn("sample", ["sample"])
            trial = ((SHADOW,),) if self.policy.monitor.judge.shadow else ()
            for stages in (*WORKERS, *trial):
                self._spawn("-".join(stages), ["work", *stages])
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End processes and servers."""
        self.stop()

    def check(self) -> None:
        """Start again what has ended by itself; raise ProcessFailed when that happens too often."""
        for child in list(self._children):
            status = child.process.poll()
            if status is None:
                continue
            # A judge on trial that does not stay up must not use up what the others may need.
            counted = SHADOW if child.name == SHADOW else ""
            if self._restarts[counted] < self.restarts_max:
                self._restarts[counted] += 1
                restarts = self._restarts[counted]
                log.error("process_restarted", process=child.name, status=status, restarts=restarts)
                self._children.remove(child)
                self._spawn(child.name, child.arguments)
            elif counted:
                log.error("shadow_given_up", status=status, log=str(child.log_file or ""))
                self._children.remove(child)
            else:
                where = f"; its log: {child.log_file}\n{_tail(child.log_file)}" if child.log_file else ""
                raise ProcessFailed(f"the process {child.name} ended with status {status}{where}")

    def stop(self) -> None:
        """End all processes in order: the newest first, each with time to finish what it has in hand."""
        for child in reversed(self._children):
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for child in reversed(self._children):
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("killed", process=child.name)
                child.process.kill()
                child.process.wait()
        self._children.clear()
        for server in (self._redis, self._kafka):
            if server is not None:
                server.stop()
        self._redis = self._kafka = None

    def _start_servers(self) -> None:
        changes: dict[str, object] = {}
        if self.embedded_kafka:
            self._kafka = EmbeddedKafka()
            self._kafka.start()
            # The embedded broker lets the first member of a group wait for half of its session.
            changes |= {"kafka": self._kafka.bootstrap, "session_timeout_seconds": 6}
        if self.embedded_redis:
            self._redis = EmbeddedValkey(self.keep_redis_in)
            self._redis.start()
            changes |= {"redis": self._redis.url}
        self.settings = Settings.model_validate(dict(self.settings) | changes)

    def _create_topics(self) -> None:
        admin = KafkaAdmin(self.settings)
        try:
            made = admin.create(topics(self.policy.monitor.topics, namespace=self.settings.namespace))
        finally:
            admin.close()
        log.info("topics_ready", created=len(made))

    def _spawn(self, name: str, arguments: Sequence[str]) -> None:
        log_file = None
        output = None
        if self.log_folder is not None:
            self.log_folder.mkdir(parents=True, exist_ok=True)
            log_file = self.log_folder / f"{name}.log"
            output = log_file.open("ab")
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "monitor.cli.main", *arguments],
            env=process_environment(self.settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C reaches the supervisor, which ends its processes in order.
            process_group=0,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - no thread of ours runs between fork and exec
        )
        if output is not None:
            output.close()
        self._children.append(_Child(name, arguments, process, log_file))


def _tail(log_file: Path, lines: int = 12) -> str:
    return "\n".join(log_file.read_text(errors="replace").splitlines()[-lines:])
