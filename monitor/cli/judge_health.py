"""`monitor judge-health`: how each judge was in the last hours, and what is wrong with it."""

import json
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from agents.services import wall_now
from monitor.cli.asking import JsonOption, NameOption, looking, printed, screen
from monitor.judging.health import HealthPolicy, JudgeHealth, Share, complaints


def judge_health(
    hours: Annotated[int, typer.Option(help="How far back to look.", min=1, max=200)] = 24,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show failures, abstentions, latency, cost and disagreement of every judge; exit status 1 if one is not well."""
    with looking(name) as (_, policy, looks):
        end: datetime = looks.newest() or wall_now()
        found = looks.judge_health(end, hours)
        limits = policy.monitor.judge.health
    wrong = {one.judge_version: complaints(one, limits) for one in found}
    if as_json:
        told = [
            one.model_dump(mode="json")
            | {"complaints": [each.model_dump(mode="json") for each in wrong[one.judge_version]]}
            for one in found
        ]
        printed(json.dumps(told, indent=2))
    else:
        console = screen()
        console.print(table_of(found, hours))
        for one in found:
            for line in details_of(one, limits):
                console.print(line, soft_wrap=True, markup=False)
    raise SystemExit(1 if any(wrong.values()) else 0)


def table_of(found: list[JudgeHealth], hours: int) -> Table:
    """Return one row for each judge."""
    table = Table(title=f"Judges of the last {hours} h", title_justify="left")
    for head in (
        "judge",
        "stage",
        "model",
        "records",
        "failed",
        "unconfirmed",
        "flags disagree",
        "mean s",
        "p90 s",
        "tokens",
        "cost",
    ):
        table.add_column(head)
    for one in found:
        failed = Share(part=sum(one.failed.values()), of=one.total)
        p90 = "over 45" if one.latency_p90_seconds is None else f"up to {one.latency_p90_seconds:g}"
        mean = "-" if one.latency_mean_seconds is None else f"{one.latency_mean_seconds:.2f}"
        cost = "-" if one.cost is None else f"{one.cost:.4f}"
        table.add_row(
            one.judge_version,
            one.stage,
            one.model,
            str(one.total),
            _share(failed),
            str(one.unconfirmed),
            str(one.flags_disagree),
            mean,
            p90,
            str(one.tokens),
            cost,
        )
    return table


def details_of(one: JudgeHealth, limits: HealthPolicy) -> list[str]:
    """Return what else is known of a judge, what is wrong first."""
    lines = [f"{one.judge_version}: NOT WELL: {each.sentence}" for each in complaints(one, limits)]
    for words, counts in (
        ("failed", one.failed),
        ("left out by the budget", one.unpaid),
        ("refused or filtered, by prompt hash", one.held_back),
    ):
        if counts:
            told = ", ".join(f"{key} {count}" for key, count in counts.items())
            lines.append(f"{one.judge_version}: {words}: {told}")
    for words, shares in (("abstained", one.abstained), ("disagrees with the first stage", one.disagreed)):
        if shares:
            told = ", ".join(f"{key} {_share(share)}" for key, share in shares.items())
            lines.append(f"{one.judge_version}: {words}: {told}")
    return lines


def _share(share: Share) -> str:
    return "-" if share.value is None else f"{share.part} of {share.of} ({share.value:.0%})"
