"""`monitor up|work|sample`: the processes."""

import asyncio
import signal
import sys
import threading
from typing import Annotated

import typer

from agents.supervisor import Deployment, ProcessFailed
from monitor.cli.context import load, sentences
from monitor.cli.logs import configure
from monitor.judging.shadow import SHADOW
from monitor.settings import given

RESTARTS_MAX = 20
"""Processes that `monitor up` starts again before it gives up; more than that is no accident."""


def up() -> None:
    """Run everything on this machine; servers that MONITOR_KAFKA and MONITOR_REDIS do not name are embedded."""
    with sentences():
        settings, policy = load()
        configure(settings)
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        deployment = Deployment(
            settings,
            policy,
            embedded_kafka=not given("kafka"),
            embedded_redis=not given("redis"),
            keep_redis_in=settings.data_dir / "valkey",
            restarts_max=RESTARTS_MAX,
        )
        try:
            with deployment:
                sys.stderr.write(
                    f"monitor: up, with Kafka at {deployment.settings.kafka} and Redis at "
                    f"{deployment.settings.redis}; Ctrl-C ends it\n"
                )
                while not stopping.wait(1.0):
                    deployment.check()
        except ProcessFailed as error:
            sys.stderr.write(f"monitor: {error}\n")
            raise SystemExit(1) from None


def work(
    stages: Annotated[list[str] | None, typer.Argument(help="Stages to run; all without.")] = None,
) -> None:
    """Run Faust stages in this process: assemble, judge, aggregate, changes, evaluate, notify; or shadow, alone."""
    # Faust is slow to import, and only this command needs it.
    from agents.services import build_services  # noqa: PLC0415
    from agents.shadow import shadow_services  # noqa: PLC0415
    from agents.worker import STAGES  # noqa: PLC0415
    from agents.worker import work as run  # noqa: PLC0415

    with sentences():
        settings, policy = load()
        wanted = stages or list(STAGES)
        unknown = sorted(set(wanted) - {*STAGES, SHADOW})
        if unknown:
            raise typer.BadParameter(f"no stage {unknown[0]!r}; there are {', '.join(STAGES)}, and {SHADOW}")
        if SHADOW in wanted and wanted != [SHADOW]:
            raise typer.BadParameter(
                "shadow runs in a process of its own, so that it cannot stop the live judge"
            )
        configure(settings)
        build = shadow_services if wanted == [SHADOW] else build_services
        raise SystemExit(asyncio.run(run(build(settings, policy), wanted)))


def sample() -> None:
    """Run the sampler in this process."""
    from agents.sampling import run_sampler  # noqa: PLC0415 - only this command needs the hot path's libraries

    with sentences():
        settings, policy = load()
        configure(settings)
        raise SystemExit(run_sampler(settings, policy))
