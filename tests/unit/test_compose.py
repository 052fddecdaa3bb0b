"""docker-compose.yml against the code: it cannot be run on every machine, so it is read on every one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import SecretStr
from typer.main import get_command

from agents.worker import STAGES
from monitor.cli.main import app
from monitor.judging.shadow import SHADOW
from monitor.settings import Settings
from tests.servers.apache_kafka import KAFKA_VERSION

ROOT = Path(__file__).parent.parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
PREFIX = "MONITOR_"
SECRET_NAME = re.compile(r"PASSWORD|SECRET|TOKEN|KEY$")


def fields_of(service: dict[str, Any]) -> dict[str, Any]:
    """Return the service's MONITOR_* variables by the name of the setting that they mean."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in service.get("environment", {}).items()
        if name.startswith(PREFIX)
    }


def secret_fields() -> set[str]:
    """Return the names of the settings that hold secrets."""
    return {
        name
        for name, field in Settings.model_fields.items()
        if SecretStr in (field.annotation, *get_args(field.annotation))
    }


def known_commands() -> Iterator[tuple[str, ...]]:
    """Return every command and sub-command of `monitor`."""
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        yield (name,)
        for below in getattr(command, "commands", {}):
            yield (name, below)


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    """A variable with a slip in its name is ignored, and its default takes over in silence."""
    assert set(fields_of(OURS[name])) <= set(Settings.model_fields)


@pytest.mark.parametrize("name", OURS)
def test_every_value_is_accepted(name: str) -> None:
    """Otherwise the first start ends with a sentence about the environment."""
    given = {field: value for field, value in fields_of(OURS[name]).items() if value is not None}

    settings = Settings(**given)

    assert settings.kafka == "kafka:19092"
    assert settings.redis == "redis://valkey:6379/0"


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_of_monitor(name: str) -> None:
    """A renamed command would leave a container that restarts for ever."""
    command = tuple(OURS[name]["command"])

    assert command[:2] in set(known_commands()) or command[:1] in set(known_commands())
    if command[0] == "work":
        assert set(command[1:]) <= {*STAGES, SHADOW}
    elif len(command) > 1:
        assert command in set(known_commands())


def test_every_stage_runs_once() -> None:
    """A stage that nobody runs is a topic that nobody reads."""
    always = [service for service in OURS.values() if "profiles" not in service]
    commands = [tuple(service["command"]) for service in always]
    stages = [stage for command in commands if command[0] == "work" for stage in command[1:]]

    assert sorted(stages) == sorted(STAGES)
    assert ("sample",) in commands
    assert OURS["shadow"]["profiles"] == ["trial"], "without a judge on trial it would restart for ever"


def test_no_secret_stands_in_the_file() -> None:
    """The file is committed; a secret in it is everybody's."""
    secrets = {PREFIX + name.upper() for name in secret_fields()}
    variables = [pair for service in SERVICES.values() for pair in service.get("environment", {}).items()]
    secret = {name: value for name, value in variables if name in secrets or SECRET_NAME.search(name)}

    assert "MONITOR_JUDGE_API_KEY" in secret
    assert set(secret.values()) == {None}
    assert not [url for _, url in variables if re.search(r"://[^/]*:[^/]*@", str(url))]


def test_published_ports_bind_loopback() -> None:
    """Neither server asks for a password: only this host may reach them."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_processes_start_after_their_topics_and_topics_after_their_servers() -> None:
    """Faust does not make topics, and one made by accident has the wrong number of partitions."""
    assert SERVICES["topics"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "valkey": {"condition": "service_healthy"},
    }
    for name, service in OURS.items():
        if name != "topics":
            assert service["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    for name in ("kafka", "valkey"):
        assert SERVICES[name]["healthcheck"]["test"]


def test_what_the_processes_mount_is_where_they_look() -> None:
    """A configuration that is mounted beside the place where it is sought leaves the defaults in force."""
    for service in OURS.values():
        mounted = {volume.split(":")[1] for volume in service["volumes"]}
        fields = fields_of(service)
        assert {fields["config"], fields["documents"]} == mounted
        assert all(volume.endswith(":ro") for volume in service["volumes"])


def test_the_broker_is_the_one_that_the_tests_run_against() -> None:
    """What was proved on one version says nothing of another."""
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{KAFKA_VERSION}"


def test_the_image_installs_what_was_tested_and_drops_its_rights() -> None:
    """The image is built from the same constraints as everything else, and nobody in it is root."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()

    assert any("pip install" in line and "-c constraints.txt" in line for line in lines)
    assert lines.index("USER monitor") < lines.index('ENTRYPOINT ["monitor"]')


def test_the_image_copies_only_what_exists() -> None:
    """A renamed folder would break the build, which nobody sees until they need it."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    sources = [source for line in lines if line.startswith("COPY ") for source in line.split()[1:-1]]

    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []
