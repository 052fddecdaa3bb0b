"""`monitor judge anchors pin`: the newest scores of the anchors become those that later ones are held against."""

from typing import Annotated

import typer

from agents.anchors import load_anchors
from agents.services import wall_now
from monitor.cli.asking import NameOption, looking
from monitor.cli.status import who_judges
from monitor.judging.anchors import newest
from monitor.policy import ConfigError

app = typer.Typer(no_args_is_help=True, help="The frozen conversations by which a judge's drift is seen.")


@app.callback()
def anchors() -> None:
    """Keep the group, of one command as it is."""


@app.command()
def pin(
    name: NameOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Pin the anchors anew: what the live judge scored last is right from now on. Its drift is over by that."""
    with looking(name) as (settings, policy, looks):
        judge, fault = who_judges(settings, policy)
        if judge is None:
            raise ConfigError(f"no judge: {fault}")
        live = looks.live_anchors(judge)
        keys = {one.key for one in load_anchors(settings, policy)}
        pins, scores = looks.anchor_scores(live, looks.newest() or wall_now())
        wanted = [one for one in newest(pins, scores) if one.anchor in keys]
        if not wanted:
            raise ConfigError(
                f"the judge {judge.version} has scored no anchor yet; its first round does, within "
                f"judge.anchors.every_minutes ({live.policy.every_minutes}) of a worker's start"
            )
        moved = sum(one != pins.get(one.anchor) for one in wanted)
        if not moved:
            typer.echo(f"Judge {judge.version} has no score that is newer than the {len(pins)} pinned ones.")
            return
        if not yes:
            typer.confirm(
                f"Pin {len(wanted)} anchors of judge {judge.version}, {moved} of them to newer scores?",
                abort=True,
            )
        looks.repin(live, wanted)
    typer.echo(
        f"Pinned {len(wanted)} of {len(keys)} anchors of judge {judge.version}; {moved} took a newer score. "
        "Baselines still hold the old scores: pin them anew as well."
    )
