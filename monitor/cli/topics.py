"""`monitor topics create|check`: the topics of a namespace, made and looked at."""

import sys

import typer

from monitor.cli.asking import NameOption, broker, loaded
from monitor.cli.context import sentences
from monitor.topics import topics

app = typer.Typer(help="The topics of a namespace.", no_args_is_help=True)


@app.command()
def create(name: NameOption = None) -> None:
    """Create the topics that are missing; what is there stays as it is."""
    with sentences():
        settings, policy = loaded(name)
        wanted = topics(policy.monitor.topics, namespace=settings.namespace)
        with broker(settings) as admin:
            made = admin.create(wanted)
    for topic in made:
        typer.echo(f"created {topic}")
    typer.echo(f"{len(made)} topics created, {len(wanted) - len(made)} were there")


@app.command()
def check(name: NameOption = None) -> None:
    """Say what is wrong with the topics, each fault with its cure; exit status 1 if anything is."""
    with sentences():
        settings, policy = loaded(name)
        wanted = topics(policy.monitor.topics, namespace=settings.namespace)
        with broker(settings) as admin:
            faults = admin.check(wanted, prefix=settings.topic_prefix)
    for fault in faults:
        sys.stderr.write(f"monitor: {fault}\n")
    if faults:
        raise SystemExit(1)
    typer.echo(f"{len(wanted)} topics are as they should be")
