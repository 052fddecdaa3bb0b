"""Every file of tests/bad_config/ holds one fault; loading it says which file, which key and what to do."""

import shutil
from importlib.resources import as_file
from pathlib import Path

import pytest

from monitor.judging.judgment import FailureKind
from monitor.policy import ConfigError, default_config, load_policy

CASES = sorted((Path(__file__).parent.parent / "bad_config").glob("*.yaml"))
CONFIG_FILES = {"monitor.yaml", "sampling.yaml", "rubric.yaml", "gates.yaml", "routing.yaml"}


def told(case: Path) -> tuple[str, str]:
    """Read the two lines that open a case: the file that it stands for, and what the error must say."""
    first, second = case.read_text(encoding="utf-8").splitlines()[:2]
    return first.removeprefix("# file: "), second.removeprefix("# says: ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy the default configuration, in which one file can be spoilt."""
    with as_file(default_config()) as shipped:
        shutil.copytree(shipped, tmp_path / "config")
    return tmp_path / "config"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_wrong_configuration_is_named_with_its_cure(case: Path, folder: Path) -> None:
    """Whoever made the slip must find it from the message alone."""
    name, says = told(case)
    shutil.copy(case, folder / name)

    with pytest.raises(ConfigError) as caught:
        load_policy(folder)

    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert says in message


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_one_fault_is_told_once(case: Path, folder: Path) -> None:
    """A second line for the same slip sends people looking for a second slip."""
    name, _ = told(case)
    shutil.copy(case, folder / name)

    with pytest.raises(ConfigError) as caught:
        load_policy(folder)

    assert len(str(caught.value).splitlines()) == 1


def test_every_configuration_file_has_faults_that_are_tried() -> None:
    """A file without a case is a file whose messages nobody has read."""
    assert {told(case)[0] for case in CASES} == CONFIG_FILES


def test_the_unspoilt_copy_is_accepted(folder: Path) -> None:
    """Otherwise every case above would pass for the wrong reason."""
    assert load_policy(folder).rubric.names


def test_all_faults_of_a_file_are_told_at_once(folder: Path) -> None:
    """Mending one fault a start costs a restart for each."""
    (folder / "sampling.yaml").write_text("cohort: main\ndefault_rate: 2\nremember_hours: soon\n")

    with pytest.raises(ConfigError) as caught:
        load_policy(folder)

    assert str(caught.value).splitlines() == [
        "sampling.yaml: default_rate: must be at most 1.0",
        "sampling.yaml: remember_hours: must be a whole number",
    ]


def test_what_was_written_is_not_repeated(folder: Path) -> None:
    """A secret that someone put into the file must not end in a log."""
    (folder / "routing.yaml").write_text(
        "receivers: {oncall: {type: webhook, url: hunter2, secret: hunter3}}\nroutes: {page: [oncall]}\n"
    )

    with pytest.raises(ConfigError) as caught:
        load_policy(folder)

    assert "hunter" not in str(caught.value)


def test_a_folder_without_any_configuration_file_is_no_configuration(tmp_path: Path) -> None:
    """A mistyped path must not start a monitor on its defaults."""
    with pytest.raises(ConfigError, match=r"holds none of monitor\.yaml"):
        load_policy(tmp_path)


def test_words_that_only_yaml_1_1_takes_for_booleans_are_words(folder: Path) -> None:
    """Norway is a country, and `on` is a key of the fallback."""
    (folder / "monitor.yaml").write_text(
        "intake: {phone_region: NO}\njudge:\n  probe: false\n  fallback: {backend: rules, on: [refused]}\n"
    )

    monitor = load_policy(folder).monitor

    assert monitor.intake.phone_region == "NO"
    assert monitor.judge.probe is False
    assert monitor.judge.fallback is not None
    assert monitor.judge.fallback.on == (FailureKind.REFUSED,)
