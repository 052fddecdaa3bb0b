"""`monitor baseline pin|carry|show|diff|list`: what is normal, from which span, and who vouched for it."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from agents.services import build_judge, wall_now
from monitor.cli.asking import JsonOption, Looks, NameOption, looking, moment, printed, screen
from monitor.cli.baseline_named import named, pairs_of, the_one, weeks_of
from monitor.cli.baseline_pinning import chosen_span, pin_scope
from monitor.cli.baseline_shown import (
    HOW,
    difference_table,
    hours_line,
    line_of,
    missing_line,
    table_of,
    trailing_line,
    trailing_values,
    values_of,
    whose_of,
)
from monitor.cli.context import refused
from monitor.cli.judge_compare import LIVE, version_of
from monitor.cli.last_week import FOR_DISPLAY
from monitor.detection.baseline import diff
from monitor.detection.pinning import Pinned
from monitor.detection.trailing import TRAILING, Trailing
from monitor.judging.rubric import TargetKind
from monitor.policy import Policy
from monitor.review.migration import Splice, carried_over
from monitor.settings import Settings
from monitor.windows.bucket import Scope, readable

app = typer.Typer(help="What is normal, pinned by people; it never moves by itself.", no_args_is_help=True)
AssistantOption = Annotated[str | None, typer.Option(help="One assistant; without it all that are watched.")]
NOW_HOURS_MAX = 24 * 9


@app.command("pin")
def pin(  # noqa: PLR0917 - typer's options
    release: Annotated[str, typer.Option(help="Name of what was accepted, such as a release.")],
    start: Annotated[datetime | None, typer.Option("--from", help="Begin of the span, UTC.")] = None,
    end: Annotated[
        datetime | None, typer.Option("--to", help="Its end, UTC; without it as far as is evaluated.")
    ] = None,
    assistant: AssistantOption = None,
    short: Annotated[
        bool, typer.Option("--short", help="Take a span of fewer days than are wanted.")
    ] = False,
    author: Annotated[
        str, typer.Option("--by", "--author", help="Who vouches for it.", envvar="USER")
    ] = "unknown",
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a span of judged traffic the normal of its assistant, judge and rubric; until the next pin."""
    if release == TRAILING:
        refused(
            f"{TRAILING} is the name of the week before the last day, which is computed when people look and "
            "never pinned; give another --release"
        )
    with looking(name) as (settings, policy, looks):
        span = chosen_span(looks, policy, _utc(start), _utc(end))
        scopes = _speaking(looks, settings, policy, assistant)
        census = looks.census(span.start, span.end, policy.sampling.strata)
        done = [
            pin_scope(looks, policy, scope, span, census=census, release=release, author=author, short=short)
            for scope in scopes
        ]
    if as_json:
        printed(json.dumps([values_of(one) for one in done], indent=2))
        return
    for one in done:
        printed(f"{line_of(one)}; id {one.baseline.id}")
        printed(hours_line(one.baseline))


@app.command("carry")
def carry(  # noqa: PLR0917 - typer's options
    old: Annotated[str, typer.Argument(help="Version of the judge that the baselines are of.")],
    new: Annotated[str, typer.Argument(help="The judge after it: its version, live or shadow.")] = LIVE,
    assistant: AssistantOption = None,
    author: Annotated[str, typer.Option("--author", help="Who vouches for it.", envvar="USER")] = "unknown",
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Carry the baselines of an old judge over to a new one, by the offsets of `monitor judge migrate`."""
    with looking(name) as (settings, policy, looks):
        versions = (version_of(old, settings, policy), version_of(new, settings, policy))
        splice = looks.splice(*versions)
        if splice is None:
            refused(
                f"nobody migrated from {versions[0]} to {versions[1]}: run `monitor judge migrate {old} {new}`"
            )
        kept = looks.baselines()
        current = {one.scope.id: one for one in reversed(kept)}
        chosen = [
            one
            for one in current.values()
            if (one.scope.judge_version, one.scope.rubric_version) == (splice.old_judge, splice.old_rubric)
            and assistant in {None, readable(one.scope.assistant)}
        ]
        if not chosen:
            refused(
                f"the judge {splice.old_judge} has no baseline to carry over; see `monitor baseline list`"
            )
        done = [_carried(one, splice, policy, author) for one in chosen]
        for one in done:
            looks.pin(one)
    if as_json:
        printed(json.dumps([values_of(one) for one in done], indent=2))
        return
    for one in done:
        printed(f"{line_of(one)}; id {one.baseline.id}")
    printed("Critical failures, and dimensions without an offset, are watched again from the next pin on.")


@app.command("show")
def show(
    release: Annotated[
        str | None,
        typer.Argument(
            help="Its name or id; without it the current one; `trailing`: the week before the last day."
        ),
    ] = None,
    assistant: AssistantOption = None,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is normal: per dimension and stratum its mean, units and tolerance."""
    with looking(name) as (settings, policy, looks):
        if release == TRAILING:
            weeks = weeks_of(looks, policy, _speaking(looks, settings, policy, assistant))
            _show_weeks(weeks, as_json=as_json)
            return
        chosen = (
            named(looks, release, assistant)
            if release
            else _current(looks, _speaking(looks, settings, policy, assistant))
        )
    if not chosen:
        refused(
            f"no baseline is called {release}; see `monitor baseline list`"
            if release
            else f"no baseline: {HOW}"
        )
    if as_json:
        printed(
            json.dumps(
                [values_of(one) | {"baseline": one.baseline.model_dump(mode="json")} for one in chosen]
            )
        )
        return
    for one in chosen:
        printed(line_of(one))
        printed(hours_line(one.baseline))
        screen().print(table_of(one.baseline))


@app.command("diff")
def diff_baselines(  # noqa: PLR0917 - typer's options
    before: Annotated[
        str, typer.Argument(help="Name or id of a baseline; `trailing`: the week before the last day.")
    ],
    after: Annotated[str | None, typer.Argument(help="Another one; without it the last hours.")] = None,
    hours: Annotated[float, typer.Option(help="Those hours.", min=1, max=NOW_HOURS_MAX)] = 24,
    assistant: AssistantOption = None,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two baselines, or one with the last hours, stratum by stratum."""
    with looking(name) as (settings, policy, looks):
        wanted = [one for one in (before, after) if one is not None and one != TRAILING]
        pinned = {one: the_one(looks, one, assistant) for one in wanted}
        scopes = [pinned[wanted[0]].scope] if wanted else _speaking(looks, settings, policy, assistant)
        pairs = pairs_of(looks, policy, scopes, pinned, (before, after), hours=hours)
    changes = [(pair, diff(pair.before, pair.after)) for pair in pairs]
    if as_json:
        values = [
            one.model_dump(mode="json") | {"scope": pair.scope.id} for pair, found in changes for one in found
        ]
        printed(json.dumps(values, indent=2))
        return
    for (scope, old, new, week), found in changes:
        printed(trailing_line(week) if week else f"{whose_of(scope)}:")
        printed(f"{old.label} ({moment(old.start)} on) against {new.label} ({moment(new.start)} on)")
        screen().print(difference_table(found))
    if TRAILING in {before, after}:
        printed(f"{TRAILING}: {FOR_DISPLAY}")


@app.command("list")
def list_baselines(name: NameOption = None, as_json: JsonOption = False) -> None:
    """List all that are kept, the current one of each scope first; and the scopes that have none."""
    with looking(name) as (settings, policy, looks):
        kept = looks.baselines()
        without = [
            scope
            for scope in speaking_scopes(looks, policy, _judge_version(settings, policy))
            if scope.id not in {one.scope.id for one in kept}
        ]
    if as_json:
        printed(json.dumps([values_of(one) for one in kept], indent=2))
        return
    current: set[str] = set()
    for one in kept:
        mark = "before " if one.scope.id in current else "current"
        current.add(one.scope.id)
        printed(f"{mark}  {one.baseline.id}  {line_of(one)}")
    for scope in without:
        printed(missing_line(scope))
    if not kept and not without:
        printed("no baseline, and nothing judged yet that could become one")


def baseline_lines(looks: Looks, policy: Policy, judge_version: str) -> tuple[str, ...]:
    """Return a line for each scope whose series speak: its baseline, or that it has none."""
    return tuple(
        missing_line(scope) if pinned is None else line_of(pinned)
        for scope in speaking_scopes(looks, policy, judge_version)
        for pinned in (looks.baseline(scope.id),)
    )


def unpinned_lines(looks: Looks, scopes: Iterable[Scope], judge_version: str | None) -> tuple[str, ...]:
    """Return a line for each scope of a judge's conversations that has no baseline."""
    return tuple(
        missing_line(scope)
        for scope in scopes
        if scope.target is TargetKind.CONVERSATION
        and judge_version in {None, scope.judge_version}
        and looks.baseline(scope.id) is None
    )


def speaking_scopes(looks: Looks, policy: Policy, judge_version: str) -> list[Scope]:
    """Return the scopes whose series speak under a judge and the present rubric."""
    return [
        scope
        for scope in looks.scopes()
        if scope.target is TargetKind.CONVERSATION
        and scope.environment in policy.gates.environments
        and scope.judge_version == judge_version
        and scope.rubric_version == policy.rubric.version
    ]


def _show_weeks(weeks: Sequence[Trailing], *, as_json: bool) -> None:
    if as_json:
        values = [trailing_values(one) | {"baseline": one.baseline.model_dump(mode="json")} for one in weeks]
        printed(json.dumps(values))
        return
    for one in weeks:
        printed(trailing_line(one))
        printed(f"  {FOR_DISPLAY}")
        screen().print(table_of(one.baseline))


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at else None


def _carried(pinned: Pinned, splice: Splice, policy: Policy, author: str) -> Pinned:
    scope = Scope.model_validate(
        pinned.scope.model_dump() | {"judge_version": splice.new_judge, "rubric_version": splice.new_rubric}
    )
    wanted = policy.monitor.detection.baseline
    baseline = carried_over(pinned.baseline, splice, scope_id=scope.id, policy=wanted)
    return Pinned(scope=scope, baseline=baseline, pinned_at=wall_now(), pinned_by=author)


def _speaking(looks: Looks, settings: Settings, policy: Policy, assistant: str | None) -> list[Scope]:
    version = _judge_version(settings, policy)
    found = [
        scope
        for scope in speaking_scopes(looks, policy, version)
        if assistant in {None, readable(scope.assistant)}
    ]
    if not found:
        whose = f"the assistant {assistant}" if assistant else "any assistant"
        refused(
            f"no conversation of {whose} was judged by the present judge ({version}) and rubric "
            f"({policy.rubric.version}) in {', '.join(policy.gates.environments)}"
        )
    return found


def _judge_version(settings: Settings, policy: Policy) -> str:
    judge = build_judge(settings, policy)
    asyncio.run(judge.close())
    return judge.identity.version


def _current(looks: Looks, scopes: Sequence[Scope]) -> list[Pinned]:
    return [one for one in (looks.baseline(scope.id) for scope in scopes) if one is not None]
