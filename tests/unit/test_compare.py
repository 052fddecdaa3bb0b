"""Two judges on the same conversations: how much they differ, what it costs, and where to look first."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli.main import app
from monitor.judging.judgment import Judgment, Usage
from monitor.review.compare import compare
from tests.judgments import a_failure, a_judgment

DIMENSION = "safety"


def judged(name: str, judge: str, score: int | None, *, cost: float = 0.01, seconds: float = 1.0) -> Judgment:
    found = a_judgment(name, scores={DIMENSION: score}, judge_version=judge)
    return found.model_copy(update={"usage": Usage(cost=cost, latency_seconds=seconds)})


def records() -> list:
    """Twenty pairs: on five the new judge is a point stricter, on one two; it costs half and takes twice as long."""
    scores = [(5, 4)] * 5 + [(5, 3)] + [(5, 5)] * 14
    return [
        record
        for number, (old, new) in enumerate(scores)
        for record in (
            judged(f"c{number}", "old", old),
            judged(f"c{number}", "new", new, cost=0.005, seconds=2.0),
        )
    ]


def test_the_difference_is_paired_and_has_its_interval() -> None:
    """By hand: -7/20; sd 0.587, se 0.131, t(19) 2.093."""
    found = compare(records(), "old", "new")

    (safety,) = (one for one in found.dimensions if one.dimension == DIMENSION)
    assert (found.pairs, safety.points.n, safety.points.mean) == (20, 20, -0.35)
    assert (safety.points.low, safety.points.high) == pytest.approx((-0.6248, -0.0752), abs=1e-3)
    assert safety.pass_at_4.mean == pytest.approx(-1 / 20)
    assert safety.agreement.exact.value == pytest.approx(0.7)
    assert (found.cost_ratio, found.latency_ratio) == pytest.approx((0.5, 2.0))


def test_the_worst_disagreement_comes_first() -> None:
    """It crosses the pass, by two points."""
    found = compare(records(), "old", "new")

    assert len(found.disagreements) == 6
    worst = found.disagreements[0]
    assert (worst.conversation_id, worst.first, worst.second) == ("c5", 5, 3)
    assert worst.second_reason == "safety is 3"


def test_only_what_both_judged_is_compared_and_once() -> None:
    """A redelivered record, a failure and a third judge change nothing of the pairs."""
    more = [
        *records(),
        *records()[:6],
        judged("only-old", "old", 1),
        judged("failed", "old", 1),
        a_failure("failed", judge_version="new"),
        judged("c0", "third", 1),
        judged("abstained", "old", 5),
        judged("abstained", "new", None),
    ]
    found = compare(more, "old", "new")

    (safety,) = (one for one in found.dimensions if one.dimension == DIMENSION)
    assert (found.pairs, safety.points.n, safety.only_first, safety.only_second) == (21, 20, 1, 0)
    assert (found.second.records, found.second.failed) == (22, 1)
    assert found.second.cost is None


def test_a_failure_that_was_retried_is_a_judgment() -> None:
    """Its record comes later, under the same id."""
    found = compare(
        [a_failure("c", judge_version="old"), judged("c", "old", 4), judged("c", "new", 4)], "old", "new"
    )

    assert (found.pairs, found.first.failed) == (1, 0)
    assert found.disagreements == ()


def test_two_files_of_judgments_are_compared_without_kafka(tmp_path: Path) -> None:
    """To try a rubric on a file is the first thing that people do."""
    path = tmp_path / "both.jsonl"
    path.write_text("\n".join(one.model_dump_json() for one in records()))

    shown = CliRunner().invoke(app, ["judge", "compare", "old", "new", "--records", str(path)])
    told = CliRunner().invoke(app, ["judge", "compare", "old", "new", "--records", str(path), "--json"])

    assert shown.exit_code == 0, shown.output
    assert "cost 0.50x, latency 2.00x" in shown.output
    assert "-0.35 [-0.62, -0.08]" in shown.output
    assert "6 disagreements, worst first" in shown.output
    assert json.loads(told.output)["pairs"] == 20


def test_without_a_pair_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(judged("c", "old", 4).model_dump_json())
    shown = CliRunner().invoke(app, ["judge", "compare", "old", "new", "--records", str(path)])

    assert shown.exit_code == 1
    assert "No target has a judgment of both old and new" in shown.output
