"""`monitor config check|show`: whether the configuration can be worked with, and what the defaults are."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from agents.anchors import load_anchors
from monitor.cli.context import EXIT_USAGE, load, sentences
from monitor.cli.status import who_judges
from monitor.detection.finding import Severity
from monitor.detection.gates import Gate
from monitor.policy import Policy, default_config
from monitor.settings import Settings

FILES = ("monitor", "sampling", "rubric", "gates", "routing")

app = typer.Typer(help="The configuration.", no_args_is_help=True)


@app.command()
def check(
    config: Annotated[
        Path | None, typer.Option(help="Folder of the files; without it MONITOR_CONFIG, then the defaults.")
    ] = None,
) -> None:
    """Check all files together and say in a few lines what is watched; exit status 2 with what is wrong."""
    with sentences():
        settings, policy = load(config=config) if config else load()
        lines = tuple(watched(settings, policy))
    typer.echo("\n".join(lines))


@app.command()
def show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="One of monitor, sampling, rubric, gates, routing.")
    ],
) -> None:
    """Print a default file, with its comments, to begin your own from."""
    name = file.removesuffix(".yaml")
    if name not in FILES:
        sys.stderr.write(f"monitor: there is no default {file}; there are {', '.join(FILES)}\n")
        raise SystemExit(EXIT_USAGE)
    typer.echo((default_config() / f"{name}.yaml").read_text(encoding="utf-8"), nl=False)


def watched(settings: Settings, policy: Policy) -> Iterable[str]:
    """Return what a configuration watches, a line each."""
    gates, sampling = policy.gates, policy.sampling
    yield f"Configuration: {settings.config or 'the defaults'}, namespace {settings.namespace}"
    rows = f", {len(sampling.rates)} rates by attribute" if sampling.rates else ""
    yield f"Sample: {sampling.default_rate:.1%} of conversations{rows}, cohort {sampling.cohort}"
    judge, fault = who_judges(settings, policy)
    yield f"Judge: {judge.backend}, model {judge.model_asked}" if judge else f"Judge: none can start. {fault}"
    yield f"Rubric: version {policy.rubric.version}, {', '.join(policy.rubric.names)}"
    where = ", ".join(gates.environments)
    yield f"Gates: windows of {gates.window_minutes} minutes, {where}, at least {gates.min_count} judgments"
    for name, gate in gates.gates.items():
        yield f"  {name}: {_gate(gate)}; {gate.severity}"
    if gates.critical_rate:
        yield f"  critical rate: at most {gates.critical_rate.max:.2%}; {gates.critical_rate.severity}"
    for name, share in gates.slo.objectives.items():
        yield f"  objective {name}: pass@4 of {share:.1%} over {gates.slo.period_days} days"
    detection = policy.monitor.detection
    yield (
        f"Sustained changes: beside {', '.join(detection.segments) or 'no segment'}, "
        "once a baseline is pinned; see `monitor baseline list`"
    )
    anchors, shadow = policy.monitor.judge.anchors, policy.monitor.judge.shadow
    yield (
        f"Anchors: {len(load_anchors(settings, policy))}, of which {anchors.per_round} are judged "
        f"every {anchors.every_minutes:g} minutes"
        if anchors.every_minutes
        else "Anchors: none, so that a drift of the judge is not seen"
    )
    yield (
        f"On trial: {shadow.cohort.share:.0%} of the sample; start `monitor work shadow`"
        if shadow
        else "On trial: no judge"
    )
    for severity in Severity:
        names = policy.routing.receivers_of(severity)
        yield f"Told of {severity}: {', '.join(names) or 'nobody'}; see `monitor routes test severity={severity}`"
    yield f"Clock: {policy.monitor.clock.kind}; topics of {policy.monitor.topics.partitions} partitions"


def _gate(gate: Gate) -> str:
    parts = []
    if gate.mean_min is not None:
        parts.append(f"mean at least {gate.mean_min:g}")
    if gate.pass_at_4_min is not None:
        parts.append(f"pass@4 at least {gate.pass_at_4_min:.0%}")
    return ", ".join(parts)
