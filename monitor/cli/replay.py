"""`monitor replay FILE...`: recorded conversations through the whole monitor, on their own clock."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agents.supervisor import Deployment, ProcessFailed
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.alerting.alert import Alert
from monitor.alerting.render import title
from monitor.cli.asking import moment, screen
from monitor.cli.context import EXIT_USAGE, sentences
from monitor.cli.logs import configure
from monitor.cli.replay_file import START, Timed, Told, namespace_of, read
from monitor.cli.replay_shown import judgments_of, show, worst_and_best
from monitor.cli.replaying import Replayed, run_on
from monitor.cli.status import funnel_table
from monitor.cli.views import Views
from monitor.clock import ClockKind
from monitor.funnel import Funnel
from monitor.intake.formats.openai_chat import Shape
from monitor.policy import Policy, load_policy
from monitor.publishing import PublishError
from monitor.settings import Settings, given, load_settings
from monitor.topics import JUDGMENTS

_NOBODY = {
    "receivers": {"console": {"type": "console"}},
    "routes": {"page": ["console"], "ticket": ["console"], "info": []},
}
"""The console is that of a worker, which logs to a file: a replay of last week must wake nobody."""


def replay(  # noqa: PLR0917 - typer's options
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JSON lines of conversations in OpenAI's shape.",
            exists=True,
            dir_okay=False,
        ),
    ],
    speed: Annotated[
        float | None,
        typer.Option(help="Seconds of the recording a second; without it as fast as it goes.", min=0.001),
    ] = None,
    documents: Annotated[
        Path | None, typer.Option(help="Folder of the reference documents.", exists=True, file_okay=False)
    ] = None,
    shape: Annotated[
        Shape, typer.Option(help="Told turn by turn, or each conversation in one piece.")
    ] = Shape.TURNS,
    start: Annotated[
        datetime, typer.Option(help="UTC; conversations without times begin here, one every two minutes.")
    ] = START.replace(tzinfo=None),
    name: Annotated[
        str | None,
        typer.Option(help="Namespace; without it one of the files' contents, so that twice adds nothing."),
    ] = None,
    show_count: Annotated[
        int, typer.Option("--show", help="So many of the worst and of the best judgments are shown.", min=0)
    ] = 0,
    rate: Annotated[
        float,
        typer.Option(
            help="Base rate of the sample, in place of sampling.yaml's; 1 judges all.", min=0.0, max=1.0
        ),
    ] = 1.0,
) -> None:
    """Replay recorded conversations through sampling, judging, windows and alerts, in a namespace of their own."""
    console = screen()
    with sentences(), tempfile.TemporaryDirectory(prefix="cm-replay-") as folder:
        told = read(files, shape=shape, start=start.replace(tzinfo=UTC))
        for fault in told.faults:
            sys.stderr.write(f"monitor: {fault.path}:{fault.line}: {fault.reason}\n")
        if not told.events:
            sys.stderr.write("monitor: no line of the files is a conversation with `id` and `messages`\n")
            raise SystemExit(EXIT_USAGE)
        settings = load_settings(
            namespace=name or namespace_of(files),
            clock=ClockKind.STREAM,
            data_dir=Path(folder) / "data",
            **({"documents": documents.resolve()} if documents else {}),
        )
        settings = for_replay(settings, rate, Path(folder) / "config")
        # The processes log to files; what this one says is for people.
        configure(settings.model_copy(update={"log_level": "warning"}))
        deployment = Deployment(
            settings,
            load_policy(settings.config, clock=settings.clock),
            embedded_kafka=not given("kafka"),
            embedded_redis=not given("redis"),
            log_folder=Path(folder) / "logs",
        )
        try:
            with deployment:
                lost = _run(console, deployment, told, speed=speed, show_count=show_count)
        except (ProcessFailed, PublishError) as error:
            sys.stderr.write(f"monitor: {error}\n")
            raise SystemExit(1) from None
    raise SystemExit(1 if lost or told.faults else 0)


def for_replay(settings: Settings, rate: float, folder: Path) -> Settings:
    """Return settings with a copy of the configuration: another base rate, and nobody is told of old alerts.

    Neither anchors nor a judge on trial are paid for: they are about the judge of today.
    """
    policy: Policy = load_policy(settings.config, clock=settings.clock)
    folder.mkdir(parents=True)
    if settings.config is not None:
        for path in settings.config.glob("*.yaml"):
            (folder / path.name).write_bytes(path.read_bytes())
    judge = policy.monitor.judge.model_dump(mode="json", exclude_unset=True)
    judge |= {"anchors": {"every_minutes": None}, "shadow": None}
    monitor = policy.monitor.model_dump(mode="json", exclude_unset=True) | {"judge": judge}
    (folder / "monitor.yaml").write_text(yaml.safe_dump(monitor, sort_keys=False), encoding="utf-8")
    sampling = policy.sampling.model_dump(mode="json") | {"default_rate": rate, "rates": []}
    (folder / "sampling.yaml").write_text(yaml.safe_dump(sampling, sort_keys=False), encoding="utf-8")
    (folder / "routing.yaml").write_text(yaml.safe_dump(_NOBODY), encoding="utf-8")
    return Settings.model_validate(dict(settings) | {"config": folder})


def _run(
    console: Console, deployment: Deployment, told: Told, *, speed: float | None, show_count: int
) -> int:
    settings = deployment.settings
    first, last = told.events[0][0], told.events[-1][0]
    console.print(
        f"{told.conversations} conversations, {len(told.events)} events from {moment(first)} to {moment(last)}; "
        f"namespace {settings.namespace}, Kafka {settings.kafka}, Redis {settings.redis}",
        soft_wrap=True,
        highlight=False,
    )
    with closing(Views(settings, deployment.policy)) as views:
        replayed = _with_bars(console, deployment, views, told.events, speed)
        fired = [alert for alert in views.alerts() if alert.fired_at is not None]
    console.print(funnel_table(replayed.funnel))
    if show_count:
        _show_judgments(console, settings, show_count)
    for line in last_lines(replayed, fired):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    return replayed.lost


def last_lines(replayed: Replayed, fired: Sequence[Alert]) -> Iterator[str]:
    """Return the alerts and the count of everything, the count last."""
    for alert in sorted(fired, key=lambda one: one.since):
        yield f"Alert {alert.fingerprint} ({alert.state}, since {moment(alert.since)}): {title(alert)}"
    funnel = replayed.funnel
    judged = sum(count for name, count in funnel.judgments.items() if name.endswith(" judged"))
    yield (
        f"replay: {replayed.events} events, {funnel.sampled} sampled, {judged} judged, "
        f"{len(fired)} alerts, {replayed.lost} lost"
    )


def _with_bars(
    console: Console, deployment: Deployment, views: Views, events: Sequence[Timed], speed: float | None
) -> Replayed:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        sending = progress.add_task("events sent", total=len(events))
        ending = progress.add_task("events with their outcome", total=len(events))

        def counted() -> Iterator[Timed]:
            for one in events:
                yield one
                progress.advance(sending)

        def sent(count: int, at: datetime) -> None:
            del count, at

        def look(funnel: Funnel) -> None:
            progress.update(ending, completed=funnel.finished)

        return run_on(deployment, views, counted(), speed=speed, sent=sent, look=look)


def _show_judgments(console: Console, settings: Settings, count: int) -> None:
    with closing(KafkaAdmin(settings)) as admin:
        judgments = judgments_of(admin.read(settings.topic_prefix + JUDGMENTS))
    worst, best = worst_and_best(judgments, count)
    show(f"The {len(worst)} worst of {len(judgments)} judgments", worst, console)
    show(f"The {len(best)} best", best, console)
