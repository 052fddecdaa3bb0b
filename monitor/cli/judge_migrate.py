"""`monitor judge migrate OLD NEW`: by how much a new judge's series will differ, and which alerts with them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from agents.services import wall_now
from monitor.cli.asking import JsonOption, Looks, NameOption, looking, minute, printed, screen
from monitor.cli.judge_compare import archived_records, version_of
from monitor.cli.rejudging import Rejudged, archived_texts, judged_again, judged_by_both
from monitor.intake.event import Value
from monitor.judging.judgment import Judgment, Target
from monitor.judging.rubric import TargetKind
from monitor.policy import ConfigError, Policy
from monitor.review.compare import Pair, paired
from monitor.review.migration import Offset, Splice, drawn, offsets
from monitor.review.respeak import Change, changed_alerts
from monitor.settings import Settings
from monitor.windows.bucket import OVERALL, readable
from monitor.windows.window import all_stats, window


class Migration(Value):
    """What `monitor judge migrate --json` prints."""

    splice: Splice
    cohort: dict[str, Offset]
    """By the conversations that both judges judged as they came."""
    sample: dict[str, Offset]
    """By those that were judged again."""
    without_text: int
    failed: int
    days: int
    changes: tuple[Change, ...]
    kept: bool


def judge_migrate(  # noqa: PLR0917 - typer's options are parameters
    old: Annotated[str, typer.Argument(metavar="OLD", help="The version whose series are there, or `live`.")],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="The judge that is to follow: `shadow`, `live`, a version.")
    ],
    sample: Annotated[
        int, typer.Option(help="Archived conversations that NEW judges; it pays.", min=0)
    ] = 200,
    days: Annotated[int, typer.Option(help="How far back alerts are re-evaluated.", min=1, max=9)] = 7,
    start: Annotated[datetime | None, typer.Option(help="UTC; the sample is drawn from here on.")] = None,
    end: Annotated[
        datetime | None, typer.Option(help="UTC; and up to here, such as a baseline's span.")
    ] = None,
    transcripts: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines that both judge, in place of the archive.", exists=True, dir_okay=False
        ),
    ] = None,
    store: Annotated[bool, typer.Option(help="Keep the offsets, to carry baselines over.")] = True,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate NEW less OLD on archived conversations and on those that both judged, and list alerts that would differ.

    Exit status 1 when no conversation has a judgment of both.
    """
    with looking(name) as (settings, policy, looks):
        versions = (version_of(old, settings, policy), version_of(new, settings, policy))
        if versions[0] == versions[1]:
            raise ConfigError(f"OLD and NEW are one judge, {versions[0]}; name two")
        found = _migration(
            settings,
            policy,
            looks,
            versions=versions,
            count=sample,
            span=(start, end),
            days=days,
            transcripts=transcripts,
            store=store,
        )
    if found is None:
        typer.echo(
            f"No conversation has a judgment of both {versions[0]} and {versions[1]}; nothing to go by."
        )
        raise SystemExit(1)
    if as_json:
        printed(found.model_dump_json(indent=2))
    else:
        show(found, screen())


def _migration(
    settings: Settings,
    policy: Policy,
    looks: Looks,
    *,
    versions: tuple[str, str],
    count: int,
    span: tuple[datetime | None, datetime | None],
    days: int,
    transcripts: Path | None,
    store: bool,
) -> Migration | None:
    strata = policy.monitor.windows.strata
    archived: list[Judgment] = []
    cohort: list[Pair] = []
    if transcripts is not None:
        again = judged_by_both(settings, policy, transcripts, versions=versions)
    else:
        archived, cohort = _archived(settings, versions)
        known = {one.target for one, _ in cohort}
        candidates = [one for one in archived if one.target not in known and _within(one, span)]
        chosen = drawn(candidates, strata=strata, count=count) if count and candidates else []
        texts = archived_texts(settings, [one.target for one in chosen]) if chosen else {}
        again = (
            judged_again(settings, policy, chosen, texts, version=versions[1])
            if texts
            else Rejudged([], len(chosen), 0)
        )
    pairs = [*cohort, *again.pairs]
    if not pairs:
        return None
    splice = Splice(
        old_judge=versions[0],
        old_rubric=pairs[0][0].rubric_version,
        new_judge=versions[1],
        new_rubric=pairs[0][1].rubric_version,
        at=wall_now(),
        pairs=len(pairs),
        rejudged=len(again.pairs),
        offsets=offsets(pairs, archived, strata=strata),
    )
    if store:
        looks.put_splice(splice)
    return Migration(
        splice=splice,
        cohort=offsets(cohort, archived, strata=strata),
        sample=offsets(again.pairs, archived, strata=strata),
        without_text=again.without_text,
        failed=again.failed,
        days=days,
        changes=tuple(_changes(looks, policy, splice, days)),
        kept=store,
    )


def _archived(settings: Settings, versions: tuple[str, str]) -> tuple[list[Judgment], list[Pair]]:
    """Return the old judge's judgments of whole conversations, and the pairs of those that both judged."""
    old: dict[Target, Judgment] = {}
    new: dict[Target, Judgment] = {}
    for record in archived_records(settings, versions):
        if not isinstance(record, Judgment) or record.target.kind is not TargetKind.CONVERSATION:
            continue
        if record.judge.version == versions[0] and record.rate:
            old[record.target] = record
        elif record.judge.version == versions[1]:
            new[record.target] = record
    return list(old.values()), paired(old, new)


def _within(judgment: Judgment, span: tuple[datetime | None, datetime | None]) -> bool:
    start, end = (None if one is None else one.replace(tzinfo=UTC) for one in span)
    at = judgment.observed_at
    return (start is None or at >= start) and (end is None or at < end)


def _changes(looks: Looks, policy: Policy, splice: Splice, days: int) -> Sequence[Change]:
    """Evaluate the gates on each window of the last days, as they are and with the offsets."""
    step = timedelta(minutes=policy.monitor.windows.bucket_minutes)
    last = looks.evaluated_through() or wall_now()
    first = last - timedelta(days=days)
    found: list[Change] = []
    for scope, buckets in looks.buckets(first - policy.gates.window, last):
        of_old = scope.judge_version == splice.old_judge and scope.target is TargetKind.CONVERSATION
        if not of_old or scope.environment not in policy.gates.environments:
            continue
        ends = [first + number * step for number in range(1, int((last - first) / step) + 1)]
        windows = [(end, all_stats(window(buckets, end - policy.gates.window, end).counts)) for end in ends]
        found += changed_alerts(windows, splice.offsets, policy.gates, scope=scope)
    return found


def show(found: Migration, console: Console) -> None:
    """Print a migration for people."""
    splice = found.splice
    console.print(
        f"{splice.pairs} conversations judged by {splice.old_judge} and {splice.new_judge}: "
        f"{splice.pairs - splice.rejudged} as they came, {splice.rejudged} judged again; "
        f"{found.failed} could not be judged, of {found.without_text} the archive has no text.",
        soft_wrap=True,
    )
    table = Table(title="New less old, for all traffic", title_justify="left")
    for head in ("dimension", "n", "points [95 %]", "pass@4 [95 %]", "as they came", "judged again"):
        table.add_column(head, no_wrap=True)
    for name, one in splice.offsets.items():
        parts = [side[name].points.words if name in side else "-" for side in (found.cohort, found.sample)]
        table.add_row(name, str(one.points.n), one.points.words, one.pass_at_4.words, *parts)
    console.print(table)
    if found.kept:
        console.print(
            "Offsets kept: a baseline of the old judge can be carried over with them.", soft_wrap=True
        )
    _show_changes(found, console)


def _show_changes(found: Migration, console: Console) -> None:
    console.print(
        f"Alerts of gates in the last {found.days} days, by the old judge's windows with the offsets added "
        "(critical failures are left out):",
        soft_wrap=True,
    )
    if not found.changes:
        console.print("  none would differ")
    for one in found.changes:
        words = "would come newly" if one.new else "would not have come"
        sure = "" if one.sure else ", not sure: the ends of the interval differ"
        segment = "" if one.segment == OVERALL else f", {readable(one.segment)}"
        console.print(
            f"  {one.dimension} of {readable(one.assistant)} ({one.environment}{segment}), "
            f"{minute(one.start)} to {minute(one.end)}: {words}{sure}",
            soft_wrap=True,
            markup=False,
        )
