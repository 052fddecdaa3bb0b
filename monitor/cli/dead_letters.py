"""`monitor dead-letters list|retry`: what stages could not take, and its way back."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.table import Table

from agents.services import wall_now
from monitor.adapters.kafka_admin import Held
from monitor.adapters.kafka_sender import KafkaSender
from monitor.cli.asking import JsonOption, NameOption, broker, loaded, minute, printed, screen, show_table
from monitor.cli.context import EXIT_USAGE, sentences
from monitor.hops.retry import NoWayBack, way_back
from monitor.intake.dead_letter import DeadLetter
from monitor.publishing import Outgoing
from monitor.topics import DEAD_LETTERS

REASON_MAX = 200
"""Characters of a reason that a line shows."""
_QUOTED_INPUT = re.compile(r"input_value=.*?(?=, input_type=|\]|$)", re.DOTALL)

StageOption = Annotated[
    str | None, typer.Option(help="Only of this stage: sample, assemble, judge, aggregate.")
]
FaultOption = Annotated[
    str | None, typer.Option(help="Only with this fault: undecodable, oversize, failed ...")
]

app = typer.Typer(help="What stages could not take, and its way back.", no_args_is_help=True)


@dataclass(frozen=True)
class Kept:
    """A dead letter as the topic holds it."""

    letter: DeadLetter
    partition: int
    retried: bool = False

    @property
    def reason(self) -> str:
        """Return why, without the input that a validator may have quoted."""
        text = _QUOTED_INPUT.sub("input_value=...", self.letter.reason)
        return " ".join(text.split())


@app.command("list")
def list_letters(
    stage: StageOption = None,
    fault: FaultOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those that were retried.")] = False,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead letters: stage, fault, reason, position, bytes, time; never what is in them."""
    with sentences():
        settings, _ = loaded(name)
        with broker(settings) as admin:
            kept = letters_of(admin.read(settings.topic_prefix + DEAD_LETTERS))
    chosen = [one for one in matching(kept, stage, fault) if everything or not one.retried]
    if as_json:
        printed(json.dumps([values_of(one) for one in chosen], indent=2))
        return
    retried = f"{sum(one.retried for one in kept)} retried before"
    show_table(table_of(chosen), f"No dead letters; {retried}.")
    if chosen:
        screen().print(f"{len(chosen)} dead letters, {retried}")


@app.command("retry")
def retry(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Positions, as listed.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that were not retried yet.")] = False,
    stage: StageOption = None,
    fault: FaultOption = None,
    name: NameOption = None,
) -> None:
    """Send dead letters back to where they came from; doing it twice changes nothing."""
    if bool(ids) == everything:
        sys.stderr.write("monitor: give ids, or --all with or without --stage and --fault; one of them\n")
        raise SystemExit(EXIT_USAGE)
    with sentences():
        settings, _ = loaded(name)
        topic = settings.topic_prefix + DEAD_LETTERS
        with broker(settings) as admin:
            kept = letters_of(admin.read(topic))
        # An id that is named is sent again; --all leaves out what is on its way already.
        wanted = [one for one in matching(kept, stage, fault) if _wanted(one, ids)]
        missing = sorted(set(ids or ()) - {one.letter.id for one in kept})
        sent = _send(wanted, KafkaSender(settings), prefix=settings.topic_prefix, topic=topic)
    for one in missing:
        sys.stderr.write(
            f"monitor: {one}: no such dead letter; `monitor dead-letters list --all` names them\n"
        )
    typer.echo(f"{sent} of {len(wanted)} dead letters were sent back")
    if missing or sent < len(wanted):
        raise SystemExit(1)


def letters_of(records: Iterable[Held]) -> list[Kept]:
    """Return the letters of the topic, oldest first; a tombstone says that the one before it was retried."""
    found: dict[str, Kept] = {}
    for held in records:
        key = (held.key or b"").decode(errors="replace")
        if held.value is None:
            if key in found:
                found[key] = Kept(found[key].letter, found[key].partition, retried=True)
            continue
        try:
            letter = DeadLetter.model_validate_json(held.value)
        except ValueError:
            sys.stderr.write(
                f"monitor: {held.topic}/{held.partition}/{held.offset}: no dead letter; left alone\n"
            )
            continue
        found[letter.id] = Kept(letter, held.partition)
    return sorted(found.values(), key=lambda one: one.letter.failed_at)


def matching(kept: Iterable[Kept], stage: str | None, fault: str | None) -> list[Kept]:
    """Return the letters of a stage and a fault; None stands for any."""
    return [one for one in kept if stage in {None, one.letter.stage} and fault in {None, one.letter.fault}]


def values_of(one: Kept) -> dict[str, Any]:
    """Return what may be shown of a letter."""
    letter = one.letter
    return {
        "id": letter.id,
        "stage": letter.stage,
        "fault": letter.fault,
        "reason": one.reason,
        "bytes": len(letter.value),
        "failed_at": letter.failed_at.isoformat(),
        "retried": one.retried,
    }


def table_of(kept: Sequence[Kept]) -> Table:
    """Return letters for people."""
    table = Table()
    for column in ("id", "stage", "fault", "reason"):
        table.add_column(column, overflow="fold")
    table.add_column("bytes", justify="right")
    table.add_column("time, UTC", no_wrap=True)
    for one in kept:
        letter = one.letter
        fault = f"{letter.fault}, retried" if one.retried else letter.fault
        reason = one.reason if len(one.reason) <= REASON_MAX else one.reason[: REASON_MAX - 1] + "…"
        # Square brackets in a reason are no markup.
        cells = (letter.id, letter.stage, fault, reason.replace("[", r"\["))
        table.add_row(*cells, f"{len(letter.value)}", minute(letter.failed_at))
    return table


def _wanted(one: Kept, ids: Sequence[str] | None) -> bool:
    return one.letter.id in ids if ids else not one.retried


def _send(wanted: Sequence[Kept], sender: KafkaSender, *, prefix: str, topic: str) -> int:
    messages = []
    marks = []
    for one in wanted:
        back = way_back(one.letter, prefix=prefix, now=wall_now())
        if isinstance(back, NoWayBack):
            sys.stderr.write(f"monitor: {back.id}: cannot be sent back: {back.reason}\n")
            continue
        messages.append(back)
        marks.append(Outgoing(topic, one.letter.id.encode(), None, one.partition))
    sender.send(messages)
    # Marked only once it is on its way: a kill in between sends it again, which changes nothing.
    sender.send(marks)
    return len(messages)
