"""`monitor calibrate LABELS|--decisions`: a judge held against people's labels, the result kept and quoted."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from agents.services import build_judge, build_stores, wall_now
from monitor.adapters.redis_functions import StoreUnavailable
from monitor.cli.asking import JsonOption, NameOption, loaded, printed, screen
from monitor.cli.context import EXIT_USAGE, sentences
from monitor.cli.decisions import from_decisions
from monitor.cli.judge import judgments_of
from monitor.cli.replay_file import START
from monitor.cli.thresholds import check_probability, show_thresholds
from monitor.conversations.conversation import Conversation
from monitor.conversations.transcripts import read_conversations
from monitor.intake.decode import Rejected
from monitor.judging.calibration import Answer, Share
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import Judge
from monitor.judging.judgment import Record
from monitor.judging.rubric import TargetKind
from monitor.policy import ConfigError, Policy
from monitor.review.alternative import EPSILON
from monitor.review.calibrate import DimensionReport, Labels, Report, calibration_of, report_on
from monitor.review.threshold import fit_thresholds
from monitor.settings import Settings

SHOWN_MAX = 10
"""Disagreements in the table; all of them are in the file."""


class Labelled(NamedTuple):
    """One line of the file."""

    labels: Labels
    conversation: Conversation


def calibrate(  # noqa: PLR0917 - typer's options are parameters
    labels: Annotated[
        Path | None,
        typer.Argument(
            help="JSON lines: a conversation with `labels` by rater and dimension.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    judge: Annotated[
        Literal["configured", "rules"], typer.Option(help="The judge of monitor.yaml, or the offline rules.")
    ] = "configured",
    documents: Annotated[
        Path | None, typer.Option(help="Folder of the reference documents.", exists=True, file_okay=False)
    ] = None,
    disagreements: Annotated[
        Path | None, typer.Option(help="File for all disagreements, JSON lines, worst first.", dir_okay=False)
    ] = None,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Instead of a file: what people said of alerts they closed.")
    ] = False,
    epsilon: Annotated[
        float, typer.Option(help="What a rater costs more than a judge: .2 expert, .15 trained, .1 crowd.")
    ] = EPSILON,
    fit_threshold: Annotated[
        bool,
        typer.Option(help="Fit judge.probability_thresholds on half of the cases, and try on the other."),
    ] = False,
    store: Annotated[bool, typer.Option(help="Keep the result, for `monitor status` and alerts.")] = True,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare a judge with people; JSON lines in the chat shape with labels in, one table out.

    Exit status 0 when every dimension is shown to reach 85 %, 1 otherwise, 2 when the file cannot be used. With
    --fit-threshold it is 0 when every dimension has a threshold that was tried on other cases.
    """
    if (labels is None) != decisions:
        sys.stderr.write("monitor: calibrate needs a file of labels, or --decisions; one of them\n")
        raise SystemExit(EXIT_USAGE)
    if labels is None:
        from_decisions(name, disagreements, store=store, as_json=as_json)
        return
    with sentences():
        settings, policy = loaded(name)
        if fit_threshold:
            check_probability(policy.monitor.judge, rules=judge == "rules")
        if documents:
            settings = settings.model_copy(update={"documents": documents.resolve()})
        if judge == "rules":
            policy = _with_rules(policy)
        cases = list(read_labels(labels, region=policy.monitor.intake.phone_region))
        records = asyncio.run(_judged(build_judge(settings, policy), policy, cases))
        report = report_on([case.labels for case in cases], records, epsilon=epsilon)
        if disagreements:
            lines = [one.model_dump_json() + "\n" for one in report.disagreements]
            disagreements.write_text("".join(lines), encoding="utf-8")
        kept = _kept(settings, policy, report, records) if store and records else "not kept"
        thresholds = fit_thresholds([case.labels for case in cases], records) if fit_threshold else {}
    if as_json:
        fitted = {name: one.model_dump(mode="json") for name, one in thresholds.items()}
        told = report.model_dump(mode="json") | ({"thresholds": fitted} if fit_threshold else {})
        printed(json.dumps(told, indent=2))
    else:
        show(report, screen(), kept=kept)
        if fit_threshold:
            show_thresholds(thresholds, screen())
    if fit_threshold:
        raise SystemExit(0 if all(one.value is not None for one in thresholds.values()) else 1)
    shown = report.dimensions and all(one.answer is Answer.SHOWN for one in report.dimensions)
    raise SystemExit(0 if shown else 1)


def read_labels(path: Path, *, region: str) -> Iterator[Labelled]:
    """Read a file of labels; a line that cannot be used raises ConfigError with its number."""
    told = path.read_text(encoding="utf-8").split("\n")  # U+2028 may stand within a line of JSON
    seen: set[str] = set()
    for number, conversation in read_conversations(told, start=START, region=region):
        where = f"{path}:{number}"
        if isinstance(conversation, Rejected):
            raise ConfigError(f"{where}: {conversation.reason}")
        if not any(turn.answer for turn in conversation.turns):
            raise ConfigError(f"{where}: no answer of an assistant that could be judged")
        if conversation.id in seen:
            raise ConfigError(f"{where}: the id {conversation.id} stands twice; give each case its own")
        seen.add(conversation.id)
        line = json.loads(told[number - 1])
        yield Labelled(_labels(where, line, conversation), conversation)


def _labels(where: str, line: dict[str, Any], conversation: Conversation) -> Labels:
    try:
        return Labels(
            case=conversation.id,
            labels=line.get("labels"),
            weight=line.get("weight", 1.0),
            language=conversation.attributes.language,
            intent=conversation.attributes.intent,
        )
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        raise ConfigError(
            f"{where}: {key}: {fault['msg']}; it must be like "
            '"labels": {"rater-a": {"factual_correctness": 4, "safety": null}}'
        ) from None


def _with_rules(policy: Policy) -> Policy:
    ruled = policy.monitor.judge.model_copy(update={"backend": "rules"})
    return policy.model_copy(update={"monitor": policy.monitor.model_copy(update={"judge": ruled})})


async def _judged(judge: Judge, policy: Policy, cases: list[Labelled]) -> dict[str, Record]:
    wanted = policy.monitor.judge
    limits = ExecutorPolicy(deadline_seconds=wanted.deadline_seconds, max_age=timedelta(days=1))
    executor = Executor(judge, Unkept(), policy.rubric.version, limits)
    gate = asyncio.Semaphore(wanted.concurrency)

    async def whole(conversation: Conversation) -> Record:
        async with gate:
            found = judgments_of(
                conversation, executor=executor, now=wall_now, kinds=(TargetKind.CONVERSATION,)
            )
            return await anext(found)

    try:
        records = await asyncio.gather(*(whole(case.conversation) for case in cases))
    finally:
        await judge.close()
    return {case.labels.case: record for case, record in zip(cases, records, strict=True)}


def _kept(settings: Settings, policy: Policy, report: Report, records: Mapping[str, Record]) -> str:
    calibration = calibration_of(report, next(iter(records.values())), at=wall_now())

    async def put() -> None:
        stores = build_stores(settings, policy)
        try:
            known = await stores.calibrations.get(
                judge_version=calibration.judge_version, rubric_version=calibration.rubric_version
            )
            decided = known.decided if known else ()
            await stores.calibrations.put(calibration.model_copy(update={"decided": decided}))
        finally:
            await stores.close()

    try:
        asyncio.run(put())
    except StoreUnavailable as error:
        return f"not kept: Redis: {error}"
    return f"kept for judge {calibration.judge_version} under rubric {calibration.rubric_version}"


def show(report: Report, console: Console, *, kept: str) -> None:
    """Print a report for people."""
    raters = ", ".join(report.raters)
    console.print(f"{report.cases} cases, {report.failed} not judged; raters: {raters}. Result {kept}.")
    table = Table(title="The judge beside people", title_justify="left")
    for head in ("dimension", "", "n", "exact", "within 1", "pass@4", "critical found", "critical right"):
        table.add_column(head)
    for head in ("kappa lin.", "kappa quad.", "AC1", "AC2", "85 %?"):
        table.add_column(head)
    for one in report.dimensions:
        _rows(table, one)
    console.print(table)
    for one in report.dimensions:
        _details(one, console)
    _worst(report, console)
    if report.advice:
        console.print(report.advice)


def _rows(table: Table, one: DimensionReport) -> None:
    said = one.answer + (f" ({one.needed or 'over 100000'} needed)" if one.answer is Answer.TOO_FEW else "")
    for side, told, verdict in (("judge", one.judge, said), ("people", one.people, "")):
        table.add_row(
            one.dimension if side == "judge" else "",
            side,
            str(told.n),
            *map(
                _share,
                (told.exact, told.within_one, told.pass_at_4, told.critical_recall, told.critical_precision),
            ),
            *(one.words for one in (told.kappa_linear, told.kappa_quadratic, told.ac1, told.ac2)),
            verdict,
        )


def _details(one: DimensionReport, console: Console) -> None:
    console.print(
        f"{one.dimension}: the judge abstained on {one.judge_abstained} cases that people scored, people on "
        f"{one.people_abstained} that it scored. Alternative annotator: {one.alternative.reason}."
    )
    for group in one.groups:
        console.print(f"  {group.name}: exact {group.exact.words}, pass@4 {group.pass_at_4.words}")
    if one.judge.confusion:
        console.print("  judge (rows, 1-5) by people (columns, 1-5):")
        for level, row in enumerate(one.judge.confusion, start=1):
            console.print(f"    {level}: " + " ".join(f"{cell:6.4g}" for cell in row))


def _worst(report: Report, console: Console) -> None:
    if not report.disagreements:
        return
    table = Table(title=f"{len(report.disagreements)} disagreements, worst first", title_justify="left")
    for head in ("case", "dimension", "judge", "people", "the judge's reason"):
        table.add_column(head)
    for one in report.disagreements[:SHOWN_MAX]:
        told = ", ".join(f"{rater} {score}" for rater, score in one.people.items())
        table.add_row(one.case, one.dimension, str(one.judge), told, one.reason)
    console.print(table)


def _share(share: Share) -> str:
    if share.value is None or share.low is None or share.high is None:
        return "-"
    return f"{share.value * 100:.0f} ({share.low * 100:.0f}-{share.high * 100:.0f})"
