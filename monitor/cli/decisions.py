"""`monitor calibrate --decisions`: what people on call said of a judge's scores, kept beside what raters say."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from agents.services import wall_now
from monitor.cli.asking import looking, printed, screen
from monitor.review.decisions import DecisionLabel, decided_by_judge, labels_of, with_decisions

SHOWN_MAX = 20
"""Disputed scores in the table, the newest; all of them are in the file."""


def from_decisions(name: str | None, disputed_file: Path | None, *, store: bool, as_json: bool) -> None:
    """Count what decisions uphold and dispute, by judge and dimension; keep it for the evidence of alerts."""
    with looking(name) as (_, _, looks):
        labels = labels_of(looks.alerts())
        found = decided_by_judge(labels)
        for (judge_version, rubric_version), decided in found.items():
            if store:
                known = looks.calibration(judge_version, rubric_version)
                looks.put_calibration(
                    with_decisions(
                        known,
                        decided,
                        judge_version=judge_version,
                        rubric_version=rubric_version,
                        at=wall_now(),
                    )
                )
    disputed = sorted((one for one in labels if not one.upheld), key=lambda one: one.at, reverse=True)
    if disputed_file:
        disputed_file.write_text("".join(one.model_dump_json() + "\n" for one in disputed), encoding="utf-8")
    if as_json:
        printed(json.dumps([one.model_dump(mode="json") for one in labels], indent=2))
        return
    if not labels:
        printed(
            "No decision says anything of the judge yet: close alerts with "
            "`monitor alerts resolve ID --as regression|judge-error`."
        )
        return
    table = Table(title="The judge's scores in decided alerts, the worst ones", title_justify="left")
    for head in ("judge", "rubric", "dimension", "scores", "upheld"):
        table.add_column(head)
    for (judge_version, rubric_version), decided in found.items():
        for one in decided:
            table.add_row(judge_version, rubric_version, one.dimension, str(one.upheld.n), one.upheld.words)
    screen().print(table)
    for line in _disputes(disputed):
        printed(line)


def _disputes(disputed: Sequence[DecisionLabel]) -> list[str]:
    lines = [
        f"disputed: {one.dimension} {one.score} by {one.by}{f': {one.note}' if one.note else ''}; "
        f"`monitor explain {one.conversation_id}`"
        for one in disputed[:SHOWN_MAX]
    ]
    if disputed:
        lines.append(
            "A dispute names no better score: have these conversations rated, and calibrate on the ratings."
        )
    return lines
