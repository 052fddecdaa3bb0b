"""A threshold from people's labels: fitted on one half, told by the other, and refused where there is too little."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from monitor.cli.main import app
from monitor.judging.judgment import DimensionScore, Judgment
from monitor.judging.probability import scored
from monitor.policy import load_policy
from monitor.review.calibrate import Labels
from monitor.review.threshold import Probability, area_under_curve, fit_threshold, fit_thresholds
from tests.conversations import the_rubric
from tests.judgments import a_failure, a_judgment
from tests.servers.held_judge import HeldJudge

FACTS = "factual_correctness"


def cases(count: int, *, yes: Sequence[float], no: Sequence[float]) -> list[Probability]:
    """Return cases that are good and bad by turns, their probabilities by turns too."""
    found = []
    for number in range(count):
        place, good = divmod(number, 2)
        some = yes if good else no
        found.append(Probability(f"c{number}", some[place % len(some)], yes=bool(good)))
    return found


def test_a_judge_that_nearly_always_says_yes_gets_a_high_threshold() -> None:
    """At .5 it would pass everything, though it knows better from worse."""
    found = fit_threshold(cases(100, yes=(0.96, 0.98), no=(0.90, 0.94)))

    assert found.value == pytest.approx(0.95)
    assert found.held_out.value == found.held_out_balanced == found.auc == 1.0
    assert found.held_out_at_half.value == 0.5
    assert found.fitted + found.held_out.n == 100


def test_the_figures_are_of_cases_that_the_threshold_has_not_seen() -> None:
    """Chance fits the half that it sees; that it says nothing shows only on the other."""
    noise = [Probability(f"c{n}", (n * 37 % 101) / 101, yes=n * 53 % 97 < 48) for n in range(120)]

    found = fit_threshold(noise)

    assert found.fitted_balanced is not None
    assert found.held_out_balanced is not None
    assert found.held_out_balanced < found.fitted_balanced
    if found.held_out_balanced <= 0.5:
        assert (found.value, found.reason) == (None, "no better than a coin on cases it was not fitted to")


@pytest.mark.parametrize(("count", "needed"), [(20, "about 40"), (0, "20 cases that pass")])
def test_too_few_are_refused_with_how_many_it_needs(count: int, needed: str) -> None:
    found = fit_threshold(cases(count, yes=(0.9,), no=(0.1,)))

    assert found.value is None
    assert found.reason.startswith(f"too few ({needed}")


def test_what_is_needed_is_enough() -> None:
    """Who labels as many as were asked for is not sent away again."""
    few = [*cases(20, yes=(0.9,), no=(0.1,)), *(Probability(f"y{n}", 0.9, yes=True) for n in range(10))]
    needed = fit_threshold(few).needed
    assert needed == 60

    more = [case._replace(case=f"{case.case}-{copy}") for copy in range(needed // len(few)) for case in few]
    assert fit_threshold(more).value == pytest.approx(0.5)


def test_the_area_under_the_curve_is_the_chance_to_be_right_about_a_pair() -> None:
    told = [
        Probability("a", 0.9, yes=True),
        Probability("b", 0.5, yes=True),
        Probability("c", 0.5, yes=False),
    ]

    assert area_under_curve(told) == 0.75
    assert area_under_curve(told[:2]) is None


def a_probable(case: str, passes: float) -> Judgment:
    score = scored(FACTS, {2: 0.99, 3: 0.98, 4: passes, 5: 0.1}, threshold=0.5)
    return a_judgment(case, scores={FACTS: 4}).model_copy(update={"scores": (score,)})


def test_cases_of_which_nothing_is_known_are_left_out() -> None:
    """Failures, abstentions, written scores and raters who split: none of them says which side a case is on."""
    good, bad = {"a": {FACTS: 5}}, {"a": {FACTS: 1}, "b": {FACTS: 2}, "c": {FACTS: 5}}
    labelled, records = [], {}
    for number in range(60):
        case = f"c{number}"
        labelled.append(Labels(case=case, labels=good if number % 2 else bad))
        records[case] = a_probable(case, 0.9 if number % 2 else 0.8)
    labelled += [Labels(case=case, labels=good) for case in ("failed", "abstained", "written", "not judged")]
    labelled += [
        Labels(case="split", labels={"a": {FACTS: 5}, "b": {FACTS: 1}}),
        Labels(case="none", labels={"a": {FACTS: None}}),
    ]
    records |= {case: a_probable(case, 0.1) for case in ("split", "none")}
    more = {"failed": a_failure("failed"), "written": a_judgment("written", scores={FACTS: 5})}
    nothing = DimensionScore(dimension=FACTS, score=None, reason="no answer to judge")
    more["abstained"] = a_judgment("abstained", scores={FACTS: 5}).model_copy(update={"scores": (nothing,)})

    found = fit_thresholds(labelled, records | more)

    assert found[FACTS].value == pytest.approx(0.85)
    assert found[FACTS].fitted + found[FACTS].held_out.n == 60


# the command


@contextmanager
def a_model(folder: Path, monkeypatch: pytest.MonkeyPatch, **judge: object) -> Iterator[None]:
    """Serve a model that says Yes to everything, to good answers a little more; configure it."""
    stub = HeldJudge()
    stub.yes = lambda prompt: 0.97 if "30 days for you" in prompt else 0.93
    with stub.serving():
        told = {"backend": "llm", "model": "stub", "base_url": stub.url, "scoring": "probability"} | judge
        (folder / "monitor.yaml").write_text(yaml.safe_dump({"judge": told}))
        # One dimension, so that a judgment is four calls and not twenty.
        facts = the_rubric().dimensions[0].model_dump(mode="json")
        (folder / "rubric.yaml").write_text(yaml.safe_dump({"dimensions": [facts]}))
        (folder / "gates.yaml").write_text(
            yaml.safe_dump({"gates": {FACTS: {"mean_min": 4.0, "pass_at_4_min": 0.85, "severity": "ticket"}}})
        )
        monkeypatch.setenv("MONITOR_CONFIG", str(folder))
        monkeypatch.setenv("MONITOR_JUDGE_API_KEY", "k")
        yield


def a_file(folder: Path, count: int) -> Path:
    file = folder / "labels.jsonl"
    lines = []
    for number in range(count):
        good = bool(number % 2)
        answer = "It is 30 days for you." if good else "It is 60 days for you."
        messages = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": answer}]
        labels = {"a": {FACTS: 5 if good else 1}}
        lines.append(json.dumps({"id": f"c{number}", "messages": messages, "labels": labels}))
    file.write_text("\n".join(lines))
    return file


def test_the_command_prints_lines_that_the_configuration_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From labels to a judge with its threshold, by copying what is printed."""
    with a_model(tmp_path, monkeypatch):
        arguments = ["calibrate", str(a_file(tmp_path, 40)), "--fit-threshold", "--no-store"]
        result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 0, result.output
    assert "100 %" in result.output
    printed = result.output[result.output.index("judge:\n") :]
    (tmp_path / "monitor.yaml").write_text(printed)
    judge = load_policy(tmp_path).monitor.judge
    assert judge.probability_thresholds == {FACTS: pytest.approx(0.95)}


def test_the_command_refuses_too_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_model(tmp_path, monkeypatch):
        arguments = ["calibrate", str(a_file(tmp_path, 12)), "--fit-threshold", "--no-store", "--json"]
        result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 1, result.output
    assert (
        "too few (about 40 labelled cases needed)" in json.loads(result.stdout)["thresholds"][FACTS]["reason"]
    )


@pytest.mark.parametrize("more", [["--judge", "rules"], []])
def test_a_judge_without_probabilities_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    with a_model(tmp_path, monkeypatch, scoring="probability" if more else "written"):
        result = CliRunner().invoke(app, ["calibrate", str(a_file(tmp_path, 2)), "--fit-threshold", *more])

    assert result.exit_code == 2
    assert "judge.scoring" in result.output
