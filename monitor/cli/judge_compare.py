"""`monitor judge compare LIVE SHADOW`: two judges on the same conversations, from the archive or from a file."""

import contextlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from agents.services import build_judge
from monitor.cli.asking import JsonOption, NameOption, broker, loaded, printed, screen
from monitor.cli.context import sentences
from monitor.hops.inbound import complaint
from monitor.judging.judgment import JUDGMENT_RECORD, Record
from monitor.judging.rubric import TargetKind
from monitor.policy import ConfigError, Policy, shadow_of
from monitor.review.compare import Comparison, DimensionComparison, compare
from monitor.settings import Settings
from monitor.topics import ARCHIVE

LIVE, SHADOW = "live", "shadow"
"""Words that stand for the versions of the two configured judges."""
SHOWN_MAX = 10
JUDGMENT_KEY = b"/j/"


def judge_compare(  # noqa: PLR0917 - typer's options are parameters
    first: Annotated[str, typer.Argument(metavar="LIVE", help="A judge's version, or `live`.")] = LIVE,
    second: Annotated[str, typer.Argument(metavar="SHADOW", help="A judge's version, or `shadow`.")] = SHADOW,
    target: Annotated[TargetKind, typer.Option(help="What is compared.")] = TargetKind.CONVERSATION,
    records: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines of judgments (`monitor judge FILE`), in place of the archive.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two judges where both judged: paired differences, agreement, cost, worst disagreements.

    Exit status 1 when there is no pair.
    """
    with sentences():
        settings, policy = loaded(name)
        versions = [version_of(word, settings, policy) for word in (first, second)]
        source = _of_file(records) if records else archived_records(settings, versions)
        found = compare((one for one in source if one.target.kind is target), *versions)
    if as_json:
        printed(found.model_dump_json(indent=2))
    else:
        show(found, screen())
    raise SystemExit(0 if found.pairs else 1)


def version_of(word: str, settings: Settings, policy: Policy) -> str:
    """Return the version that a word stands for; raises ConfigError where the configuration has no such judge."""
    if word == LIVE:
        return build_judge(settings, policy).identity.version
    if word == SHADOW:
        trial = shadow_of(policy)
        if trial is None:
            raise ConfigError(
                "monitor.yaml: judge.shadow: missing; name a judge's version instead of `shadow`"
            )
        return build_judge(settings, trial).identity.version
    return word


def archived_records(settings: Settings, versions: Collection[str]) -> Iterator[Record]:
    """Read the records of some judges from the archive, the newest of each judgment; forgotten ones are gone."""
    wanted = [version.encode() for version in versions]
    newest: dict[bytes, bytes] = {}
    with broker(settings) as admin:
        for held in admin.read(settings.topic_prefix + ARCHIVE):
            if held.key is None or JUDGMENT_KEY not in held.key:
                continue
            newest.pop(held.key, None)
            if held.value is not None and any(version in held.value for version in wanted):
                newest[held.key] = held.value
    for value in newest.values():
        # An id with `/j/` in it belongs to a conversation, and is no judgment.
        with contextlib.suppress(ValidationError):
            yield JUDGMENT_RECORD.validate_json(value)


def show(found: Comparison, console: Console) -> None:
    """Print a comparison for people."""
    one, other = found.first, found.second
    if not found.pairs:
        console.print(
            f"No target has a judgment of both {one.judge_version} and {other.judge_version}; "
            f"{one.records} have a record of both.",
            soft_wrap=True,
        )
        return
    console.print(
        f"{found.pairs} pairs: {one.judge_version} ({one.model}, {one.failed} failed) and then "
        f"{other.judge_version} ({other.model}, {other.failed} failed).",
        soft_wrap=True,
    )
    console.print(
        f"Second to first: cost {_ratio(found.cost_ratio)}, latency {_ratio(found.latency_ratio)}.",
        soft_wrap=True,
    )
    table = Table(title="Second less first, on the same targets", title_justify="left")
    for head in ("dimension", "n", "points [95 %]", "pass@4 [95 %]"):
        table.add_column(head, no_wrap=True)
    for head in ("exact", "kappa", "kappa quad.", "only 2nd / 1st abstains"):
        table.add_column(head)
    for each in found.dimensions:
        table.add_row(*_row(each))
    console.print(table)
    _worst(found, console)


def _row(one: DimensionComparison) -> Iterable[str]:
    yield one.dimension
    yield str(one.points.n)
    yield one.points.words
    yield one.pass_at_4.words
    exact = one.agreement.exact
    yield "-" if exact.value is None else f"{exact.value:.0%}"
    yield one.agreement.kappa.words
    yield one.agreement.kappa_quadratic.words
    yield f"{one.only_first} / {one.only_second}"


def _worst(found: Comparison, console: Console) -> None:
    if not found.disagreements:
        console.print("They agree on everything.")
        return
    table = Table(title=f"{len(found.disagreements)} disagreements, worst first", title_justify="left")
    for head in ("conversation", "target", "dimension", "1st", "2nd", "the first's reason", "the second's"):
        table.add_column(head)
    for one in found.disagreements[:SHOWN_MAX]:
        table.add_row(
            one.conversation_id,
            one.target,
            one.dimension,
            str(one.first),
            str(one.second),
            one.first_reason,
            one.second_reason,
        )
    console.print(table)


def _of_file(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield JUDGMENT_RECORD.validate_json(line)
                except ValidationError as error:
                    raise ConfigError(f"{path}:{number}: no judgment: {complaint(error)}") from None


def _ratio(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}x"
