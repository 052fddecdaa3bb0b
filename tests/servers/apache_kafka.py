"""A real Apache Kafka for the tests: an empty folder in, one KRaft node on loopback out.

The jars come from Maven once and stay in a cache folder. The broker dies with the process that started it.
"""

import fcntl
import functools
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

KAFKA_VERSION = "4.4.0"
JAVA_MIN = 17  # the oldest Java that runs a Kafka 4 broker

RESOLVE_LIMIT_SECONDS = 150  # a cold Maven cache fetches 45 MB in half a minute
START_LIMIT_SECONDS = 60  # twelve times what two busy cores need
STOP_LIMIT_SECONDS = 20  # a controlled shutdown takes about one second
ADMIN_LIMIT_SECONDS = 10
LOG_TAIL_LINES = 40

HEAP = "512m"


class BrokerError(RuntimeError):
    """The broker did not do what it was told; the message ends with the tail of its log."""


class ApacheKafka:
    """One broker that is also its own controller.

    It keeps its ports and its data over any number of stops and kills, so that clients find it again.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._port, self._controller_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def log_path(self) -> Path:
        return self.data_dir / "broker.log"

    def start(self) -> Self:
        """Start on the data that is there, and return once the broker answers, or raise BrokerError.

        The broker is killed when the calling thread ends, so start it from one that outlives its use.
        """
        if self._process is not None and self._process.poll() is None:
            return self
        self._prepare_storage()
        command = ["-Xms128m", f"-Xmx{HEAP}", "-XX:+UseSerialGC", "kafka.Kafka", str(self._properties_path)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                dying_with_parent(_java(*command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Shut down in order; kill what does not. Calling it twice does nothing."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End the broker by SIGKILL, as a power cut would. Calling it twice does nothing."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def restart(self) -> Self:
        """Stop in order and start again on the same data and ports."""
        self.stop()
        return self.start()

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(
        self, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, and return once it can be written to."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        admin = self.admin()  # held: the request dies with its client
        created = admin.create_topics([topic], operation_timeout=ADMIN_LIMIT_SECONDS)
        created[name].result(ADMIN_LIMIT_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _properties_path(self) -> Path:
        return self.data_dir / "server.properties"

    def _prepare_storage(self) -> None:
        if (self.data_dir / "log" / "meta.properties").exists():
            return
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._properties_path.write_text(self._properties(), encoding="utf-8")
        arguments = ["kafka.tools.StorageTool", "format", "--standalone", "--ignore-formatted"]
        done = subprocess.run(
            _java(*arguments, "--cluster-id", _CLUSTER_ID, "--config", str(self._properties_path)),
            capture_output=True,
            text=True,
            timeout=START_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise BrokerError(f"The storage could not be formatted:\n{_tail(done.stdout + done.stderr)}")

    def _properties(self) -> str:
        return f"""\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{self._controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{self._port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{self._controller_port}
log.dirs={self.data_dir / "log"}

# A topic that nobody created is a mistake that a test should see.
auto.create.topics.enable=false

# One broker cannot hold three replicas.
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1

# Quick rather than fair: few internal partitions, no pause for stragglers, short sessions allowed.
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=4194304

# After a kill the controller waits this long before it lets the same broker back in; the default is 9 s.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise BrokerError(f"The broker ended while starting:\n{self._log_tail()}")
            if _answers("127.0.0.1", self._port) and self._lists_itself():
                return
            time.sleep(0.1)
        raise BrokerError(f"The broker did not answer in {START_LIMIT_SECONDS} s:\n{self._log_tail()}")

    def _lists_itself(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _log_tail(self) -> str:
        return _tail(self.log_path.read_text(encoding="utf-8", errors="replace"))


def dying_with_parent(command: list[str]) -> list[str]:
    """Have Linux kill the command when the thread that starts it is gone, even by SIGKILL."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else command


@functools.cache
def why_unavailable() -> str | None:
    """Say why no broker can run here, or None if one can. The first call may fetch 45 MB."""
    if shutil.which("java") is None:
        return "java is not installed"
    java = _java_version()
    if java < JAVA_MIN:
        return f"java is version {java}, and Kafka {KAFKA_VERSION} needs {JAVA_MIN}"
    if _jars_dir().is_dir():
        return None
    if shutil.which("mvn") is None:
        return "mvn is not installed, and the broker's jars are not in the cache"
    return _resolve(_jars_dir())


def _resolve(jars_dir: Path) -> str | None:
    """Copy the jars beside the cache folder, then move them in at once: half a folder is never used."""
    jars_dir.parent.mkdir(parents=True, exist_ok=True)
    # The tests' processes start together, and Maven's own cache is not made for two at once.
    with jars_dir.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return None if jars_dir.is_dir() else _fetch(jars_dir)


def _fetch(jars_dir: Path) -> str | None:
    pom = Path(__file__).with_name("kafka_pom.xml")
    with tempfile.TemporaryDirectory(dir=jars_dir.parent, prefix="resolving-") as scratch:
        fresh = Path(scratch) / "jars"
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), "dependency:copy-dependencies"]
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={fresh}", f"-Dkafka.version={KAFKA_VERSION}"]
        try:
            done = subprocess.run(
                [*command, *options],
                capture_output=True,
                text=True,
                timeout=RESOLVE_LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"mvn did not resolve Kafka {KAFKA_VERSION} in {RESOLVE_LIMIT_SECONDS} s"
        if done.returncode != 0:
            return f"mvn could not resolve Kafka {KAFKA_VERSION}:\n{_tail(done.stdout + done.stderr)}"
        fresh.rename(jars_dir)
    return None


def _jars_dir() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"  # noqa: TID251 - no setting of ours
    return Path(cache) / "conversation-monitor" / f"kafka-{KAFKA_VERSION}"


def _java(*arguments: str) -> list[str]:
    return ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{_jars_dir()}/*", *arguments]


def _java_version() -> int:
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else 0


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in held]
    for holder in held:
        holder.close()
    return ports


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])


# Any 16 bytes in base64: the cluster is never more than this one node.
_CLUSTER_ID = "Y29udmVyc2F0aW9uLW1vbg"
