"""A small model on loopback behind llama.cpp's own server, which speaks OpenAI's protocol: `... small_model.py FILE`.

It needs `xllamacpp` and a GGUF file. The server runs in a process of its own, so that it ends with its user.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTEXT_TOKENS = 8192
"""Room for the longest prompt and its reply; memory grows with it."""
START_LIMIT_SECONDS = 120.0


def serve(model: Path, *, threads: int = 2) -> None:
    """Serve a model until the process is ended; its address is the only line on stdout."""
    from xllamacpp import CommonParams, Server  # noqa: PLC0415 - only this process needs it

    params = CommonParams()
    params.model.path = str(model)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # On a busy machine threads that wait for each other at every token are slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = threads
    server = Server(params)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - it is how the parent learns it
    threading.Event().wait()


@contextmanager
def small_model(model: Path) -> Iterator[str]:
    """Run the server beside; yield its address."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(model)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    alarm = threading.Timer(START_LIMIT_SECONDS, process.kill)
    alarm.start()
    try:
        url = process.stdout.readline().strip() if process.stdout else ""
        alarm.cancel()
        if not url.startswith("http"):
            raise RuntimeError(f"no model server for {model}: {url or 'it ended without an address'}")
        yield url
    finally:
        alarm.cancel()
        process.kill()
        process.wait(30)
        if process.stdout:
            process.stdout.close()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
