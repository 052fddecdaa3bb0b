import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli.calibrate import read_labels
from monitor.cli.main import app
from monitor.judging.calibration import UNCALIBRATED, Answer, quoted
from monitor.policy import ConfigError
from monitor.review.calibrate import Labels, calibration_of, report_on
from tests.judgments import a_failure, a_judgment

AT = datetime(2026, 3, 10, tzinfo=UTC)
FACTS = "factual_correctness"


def labels(case: str, *scores: int | None, **more: object) -> Labels:
    """Return the labels of raters a, b, ... on facts."""
    told = {rater: {FACTS: score} for rater, score in zip("abcdef", scores, strict=False)}
    return Labels(case=case, labels=told, **more)


def test_the_human_figure_stands_beside_the_judges() -> None:
    """A judge that agrees as people do is no worse than they are, whatever the 85 % say."""
    labelled = [labels("c1", 5, 5), labels("c2", 5, 3), labels("c3", 1, 1), labels("c4", 4, 5)]
    records = {f"c{n}": a_judgment(f"c{n}", scores={FACTS: score}) for n, score in enumerate((5, 5, 5, 4), 1)}

    (facts,) = report_on(labelled, records).dimensions

    assert facts.judge.exact.value == pytest.approx((1 + 0.5 + 0 + 0.5) / 4)
    assert facts.people.exact.value == pytest.approx(0.5)
    assert facts.answer is Answer.NOT_SHOWN or facts.needed


def test_a_missed_critical_failure_is_the_worst_disagreement() -> None:
    """It is what the judge is there for; four points apart on a pass are less."""
    labelled = [labels("far", 5), labels("missed", 2), labels("same", 4)]
    records = {
        "far": a_judgment("far", scores={FACTS: 1}),
        "missed": a_judgment("missed", scores={FACTS: 4}),
        "same": a_judgment("same", scores={FACTS: 4}),
    }

    told = report_on(labelled, records).disagreements

    assert [one.case for one in told] == ["missed", "far"]
    assert told[0].critical_missed


def test_abstentions_and_failures_are_counted_apart_and_agree_with_nobody() -> None:
    """None of them is a score."""
    labelled = [labels("a", 5), labels("b", None), labels("c", 5), labels("d", 5)]
    records = {
        "a": a_judgment("a", scores={FACTS: None}),
        "b": a_judgment("b", scores={FACTS: 5}),
        "c": a_failure("c"),
        "d": a_judgment("d", scores={FACTS: 5}),
    }

    told = report_on(labelled, records)

    assert told.failed == 1
    assert (told.dimensions[0].judge_abstained, told.dimensions[0].people_abstained) == (1, 1)
    assert told.dimensions[0].judge.n == 1


def test_languages_are_shown_apart() -> None:
    """A judge may be good in the language of its makers only."""
    labelled = [
        labels(f"{language}{n}", 5, language=language) for language in ("en", "de") for n in range(10)
    ]
    records = {
        one.case: a_judgment(one.case, scores={FACTS: 5 if one.language == "en" else 3}) for one in labelled
    }

    groups = {group.name: group for group in report_on(labelled, records).dimensions[0].groups}

    assert groups["language=en"].exact.value == 1.0
    assert groups["language=de"].exact.value == 0.0


def test_what_is_kept_is_quoted_in_one_sentence() -> None:
    """43 of 50 is 74 to 93 %: the alert must not claim more."""
    labelled = [labels(f"c{n}", 5, 5) for n in range(50)]
    records = {
        one.case: a_judgment(one.case, scores={FACTS: 5 if n < 43 else 3}) for n, one in enumerate(labelled)
    }
    report = report_on(labelled, records)

    kept = calibration_of(report, records["c0"], at=AT)

    assert "86 % (74-93 %, n=50)" in quoted(kept, FACTS)
    assert "too few" in quoted(kept, FACTS)
    assert "people among themselves 100 %" in quoted(kept, FACTS)
    assert report.advice is None
    assert quoted(kept, "safety") == UNCALIBRATED
    assert quoted(None, FACTS) == UNCALIBRATED


def test_a_low_agreement_says_what_to_do() -> None:
    labelled = [labels(f"c{n}", 5) for n in range(20)]
    records = {one.case: a_judgment(one.case, scores={FACTS: 3}) for one in labelled}

    assert "anchors" in (report_on(labelled, records).advice or "")


def a_line(case: str, answer: str, **more: object) -> str:
    messages = [
        {"role": "user", "content": "How long may I return it?"},
        {"role": "assistant", "content": answer},
    ]
    return json.dumps(
        {
            "id": case,
            "messages": messages,
            "references": [{"id": "returns", "text": "Returns are accepted within 30 days."}],
            "labels": {"a": {FACTS: 1 if "60" in answer else 5}},
        }
        | more
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"labels": {}}, "labels"),
        ({"labels": {"a": {FACTS: 7}}}, f"labels.a.{FACTS}"),
        ({"labels": None}, "labels"),
        ({"weight": 0}, "weight"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, more: dict[str, object], said: str) -> None:
    """A label that is silently dropped would change the figure."""
    file = tmp_path / "labels.jsonl"
    file.write_text(a_line("c1", "30 days.") + "\n" + a_line("c2", "30 days.", **more))

    with pytest.raises(ConfigError, match=rf"labels.jsonl:2: {said}"):
        list(read_labels(file, region="US"))


def test_a_case_twice_is_refused(tmp_path: Path) -> None:
    """It would be counted twice, or one of them not at all."""
    file = tmp_path / "labels.jsonl"
    file.write_text(a_line("c1", "30 days.") + "\n" + a_line("c1", "60 days."))

    with pytest.raises(ConfigError, match="stands twice"):
        list(read_labels(file, region="US"))


def test_the_command_judges_compares_and_lists(tmp_path: Path) -> None:
    """From a file to a table without a key, Kafka or Redis."""
    file, out = tmp_path / "labels.jsonl", tmp_path / "worst.jsonl"
    lines = [a_line(f"good{n}", "You may return it within 30 days.") for n in range(20)]
    lines += [a_line("bad", "You may return it within 60 days.")]
    lines += [a_line("odd", "You may return it within 60 days.", labels={"a": {FACTS: 5}})]
    file.write_text("\n".join(lines))

    arguments = ["calibrate", str(file), "--judge", "rules", "--no-store"]
    result = CliRunner().invoke(app, [*arguments, "--disagreements", str(out)])

    assert result.exit_code == 1, result.output
    assert "22 cases, 0 not judged" in result.output
    assert [json.loads(line)["case"] for line in out.read_text().splitlines()] == ["odd"]
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert told["dimensions"][0]["judge"]["critical_recall"]["value"] == 1.0
