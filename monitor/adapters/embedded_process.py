"""A server of another project as our child: on loopback, waited for, and ended with us however we end."""

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

READY_TIMEOUT_SECONDS = 20.0
_PR_SET_PDEATHSIG = 1


class EmbeddedUnavailable(Exception):  # noqa: N818 - it states a condition, in our words
    """An embedded server cannot run here; the message says what to install or look at."""


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ChildServer:
    """One server process that listens on a port of the loopback interface."""

    def __init__(self, name: str, port: int, folder: Path | None = None) -> None:
        """Take what it is called in errors, where it listens and where it runs."""
        self._name = name
        self._port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str]) -> None:
        """Start it and wait until it accepts connections; raises EmbeddedUnavailable."""
        self._process = subprocess.Popen(  # noqa: S603 - the command is the installed package's own
            command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=kill_with_parent,  # noqa: PLW1509 - no thread of ours runs between fork and exec
            # Ctrl-C goes to the terminal's whole group; the server must outlive the workers that drain to it.
            start_new_session=True,
        )
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise EmbeddedUnavailable(f"{self._name} ended at once, status {self._process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        self.stop()
        raise EmbeddedUnavailable(f"{self._name} did not answer within {READY_TIMEOUT_SECONDS:g} s")

    def stop(self) -> None:
        """End it and wait for its end."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End it without a word, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


def kill_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with_parent() -> None:
    """Ask Linux to end this process in order when its parent ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
