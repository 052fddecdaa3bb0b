"""`monitor judge FILE`: a file judged by the configured judge, one line of JSON per judgment."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agents.services import build_judge, wall_now
from monitor.cli.context import load, sentences
from monitor.cli.judge import judge_file
from monitor.cli.replay_file import START


def judge(
    file: Annotated[
        Path,
        typer.Argument(help="JSON lines of conversations in OpenAI's shape.", exists=True, dir_okay=False),
    ],
    documents: Annotated[
        Path | None, typer.Option(help="Folder of the reference documents.", exists=True, file_okay=False)
    ] = None,
    start: Annotated[
        datetime, typer.Option(help="UTC; where conversations without times begin.")
    ] = START.replace(tzinfo=None),
) -> None:
    """Judge a file without Kafka and Redis; JSON lines out, exit status 1 if anything could not be judged."""
    with sentences():
        settings, policy = load(documents=documents.resolve()) if documents else load()
        failed = judge_file(
            file,
            judge=build_judge(settings, policy),
            rubric_version=policy.rubric.version,
            start=start.replace(tzinfo=UTC),
            now=wall_now,
            out=sys.stdout,
            errors=sys.stderr,
            deadline_seconds=policy.monitor.judge.deadline_seconds,
            region=policy.monitor.intake.phone_region,
        )
    raise SystemExit(1 if failed else 0)
