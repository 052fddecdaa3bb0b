"""What people are told of their configuration, without any server."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli.main import app
from monitor.cli.schema import schemas

RUN = CliRunner()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MONITOR_CONFIG", "MONITOR_KAFKA", "MONITOR_REDIS", "MONITOR_NAMESPACE", "MONITOR_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def test_the_defaults_are_sound_and_say_what_is_watched() -> None:
    """The first thing a new user runs must not fail."""
    result = RUN.invoke(app, ["config", "check"])

    assert result.exit_code == 0, result.output
    assert "policy_adherence: mean at least 4.5" in result.output
    assert "Judge: rules" in result.output


def test_a_wrong_configuration_ends_with_2_and_names_file_and_key(tmp_path: Path) -> None:
    """A deployment pipeline reads the status, a person the sentence."""
    (tmp_path / "sampling.yaml").write_text("cohort: main\ndefault_rate: 5\n")

    result = RUN.invoke(app, ["config", "check", "--config", str(tmp_path)])

    assert result.exit_code == 2
    assert result.stderr.startswith("monitor: sampling.yaml: default_rate:")
    assert "Traceback" not in result.output


def test_anchors_that_cannot_be_read_are_named_before_a_worker_starts(tmp_path: Path) -> None:
    """The file is read by whoever judges; a check that leaves it out promises too much."""
    (tmp_path / "monitor.yaml").write_text("judge: {anchors: {file: ours.jsonl}}\n")
    missing = RUN.invoke(app, ["config", "check", "--config", str(tmp_path)])
    (tmp_path / "ours.jsonl").write_text("no anchor\n")
    broken = RUN.invoke(app, ["config", "check", "--config", str(tmp_path)])

    assert (missing.exit_code, broken.exit_code) == (2, 2)
    assert missing.stderr.startswith("monitor: monitor.yaml: judge.anchors.file: ours.jsonl")
    assert broken.stderr.startswith("monitor: ours.jsonl:1:")
    assert not broken.stdout


def test_production_without_a_judge_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes on the files alone; that no judge could start stands in its lines."""
    monkeypatch.setenv("MONITOR_PROFILE", "production")

    result = RUN.invoke(app, ["config", "check"])

    assert result.exit_code == 0
    assert "Judge: none can start" in result.output


@pytest.mark.parametrize("name", ["gates", "gates.yaml"])
def test_a_default_file_is_shown_with_its_comments(name: str) -> None:
    """People begin their own file from it."""
    result = RUN.invoke(app, ["config", "show", name])

    assert result.exit_code == 0
    assert "# minutes; length of the window" in result.output


def test_an_unknown_file_is_named_with_those_that_exist() -> None:
    """A slip of the pen must not look like an empty default."""
    result = RUN.invoke(app, ["config", "show", "gate"])

    assert result.exit_code == 2
    assert "monitor, sampling, rubric, gates, routing" in result.stderr


def test_the_schemas_are_one_json_object_by_topic() -> None:
    """Producers generate their types from it."""
    result = RUN.invoke(app, ["schema"])

    printed = json.loads(result.output)
    assert list(printed) == ["conversation-events", "summary-events", "change-events", "judgments", "alerts"]
    assert printed == schemas()
    mapping = printed["conversation-events"]["discriminator"]["mapping"]
    assert sorted(mapping) == ["conversation", "end", "feedback", "turn"]


@pytest.mark.parametrize("command", [["topics", "check"], ["topics", "create"], ["dead-letters", "list"]])
def test_a_broker_that_is_away_is_one_sentence_within_seconds(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's own patience is half a minute, and its error a stack of frames."""
    monkeypatch.setenv("MONITOR_KAFKA", "127.0.0.1:9")

    result = RUN.invoke(app, command)

    assert result.exit_code == 2
    assert result.stderr == (
        "monitor: Kafka at 127.0.0.1:9: nobody answers there; is MONITOR_KAFKA right and the broker up?\n"
    )


def test_a_retry_of_everything_or_of_some_must_be_said() -> None:
    """No argument must not mean all of them."""
    assert RUN.invoke(app, ["dead-letters", "retry"]).exit_code == 2
    assert RUN.invoke(app, ["dead-letters", "retry", "a/0/1", "--all"]).exit_code == 2
