"""`monitor judge-health`: how each judge was in the last hours, and what is wrong with it."""

import json
from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agents.anchors import load_anchors
from monitor.cli.asking import (
    JsonOption,
    Looks,
    NameOption,
    latest,
    looking,
    moment,
    printed,
    screen,
    show_table,
)
from monitor.cli.status import who_judges
from monitor.detection.judge_drift import Anchored
from monitor.judging.anchors import as_expected, newest
from monitor.judging.health import HealthPolicy, JudgeHealth, Share, complaints
from monitor.judging.judgment import JudgeIdentity
from monitor.policy import Policy
from monitor.settings import Settings


def judge_health(
    hours: Annotated[int, typer.Option(help="How far back to look.", min=1, max=200)] = 24,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show failures, latency and cost of every judge, and the live one's drift; exit status 1 if one is not well."""
    with looking(name) as (settings, policy, looks):
        end = latest(policy, looks)
        found = looks.judge_health(end, hours)
        limits = policy.monitor.judge.health
        judge, _ = who_judges(settings, policy)
        known = looks.anchored(looks.live_anchors(judge), end) if judge else None
        anchors = expected_of(settings, policy, looks, judge, end) if judge else {}
    wrong = {one.judge_version: complaints(one, limits) for one in found}
    if as_json:
        judges = [
            one.model_dump(mode="json")
            | {"complaints": [each.model_dump(mode="json") for each in wrong[one.judge_version]]}
            for one in found
        ]
        told = {
            "judges": judges,
            "anchors": known.model_dump(mode="json") if known else None,
            "anchors_as_expected": {name: share.model_dump() for name, share in anchors.items()},
        }
        printed(json.dumps(told, indent=2))
    else:
        console = screen()
        show_table(table_of(found, hours), f"No judge has a record in the last {hours} h.")
        for one in found:
            for line in details_of(one, limits):
                console.print(line, soft_wrap=True, markup=False)
        if known is not None:
            show_anchors(known, anchors, console)
    raise SystemExit(1 if any(wrong.values()) or (known and known.drifted) else 0)


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


def expected_of(
    settings: Settings, policy: Policy, looks: Looks, judge: JudgeIdentity, end: datetime
) -> dict[str, Share]:
    """Return how many of the configured anchors pass or fail as their author wrote, by their newest scores."""
    if policy.monitor.judge.anchors.every_minutes is None:
        return {}
    pins, scores = looks.anchor_scores(looks.live_anchors(judge), end)
    return as_expected(load_anchors(settings, policy), newest(pins, scores))


def show_anchors(known: Anchored, expected: dict[str, Share], console: Console) -> None:
    """Print what the anchors say of the live judge."""
    if not known.anchors:
        console.print(f"Anchors of {known.judge_version}: none is scored yet")
        return
    console.print(
        f"Anchors of {known.judge_version}: {known.anchors} pinned at {moment(known.pinned_at)}, "
        f"last round {moment(known.last_round_at)}",
        soft_wrap=True,
    )
    table = Table(title="Shift against the pinned scores, points", title_justify="left")
    for head in ("dimension", "shift [95 %]", "anchors", "scores", "noise", "as expected", "drift"):
        table.add_column(head)
    for name in sorted(known.shifts.keys() | expected.keys()):
        shift = known.shifts.get(name)
        since = known.drifted.get(name)
        table.add_row(
            name,
            shift.words if shift else "-",
            str(shift.n) if shift else "0",
            str(shift.repeats) if shift else "0",
            "-" if shift is None or shift.noise is None else f"{shift.noise:.2f}",
            _share(expected[name]) if name in expected else "-",
            f"DRIFTED since {moment(since)}" if since else "none" if shift else "-",
        )
    console.print(table)


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
