"""Where things live: the environment in, addresses and secrets out. The only place that reads it."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from monitor.clock import ClockKind
from monitor.topics import prefix_of


class Profile(StrEnum):
    """How strict a start is: production never falls back to the rules in silence."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class SettingsError(Exception):
    """An environment variable is wrong; the message names it and the cure."""


class Settings(BaseSettings):
    """Addresses and secrets, each from `MONITOR_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="MONITOR_", extra="ignore", frozen=True)

    kafka: str = "127.0.0.1:9092"
    kafka_security_protocol: str = "PLAINTEXT"
    kafka_sasl_mechanism: str | None = None
    kafka_username: str | None = None
    kafka_password: SecretStr | None = None
    kafka_ca_file: Path | None = None
    redis: str = "redis://127.0.0.1:6379/0"
    """One server, or a cluster: `redis+cluster://host:port,host:port` (`rediss+cluster` with TLS), any of its nodes."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")] = "cm"
    config: Path | None = None
    documents: Path | None = None
    profile: Profile = Profile.DEVELOPMENT
    clock: ClockKind | None = None
    """Overrules clock.kind of monitor.yaml; a replay sets it for its own namespace."""
    judge_api_key: SecretStr | None = None
    data_dir: Path = Path(".data")
    log_level: str = "info"
    log_json: bool = True
    metrics_host: str = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 0
    session_timeout_seconds: Annotated[int, Field(ge=6, le=300)] = 30
    """How long a dead worker's partitions wait for another one; below 10 only against the embedded broker."""

    instance: Annotated[str, Field(max_length=100)] | None = None
    """By what name this process gives signs of life; the host's name without it. Name two workers of one host."""

    @property
    def topic_prefix(self) -> str:
        """Return what stands before each topic's name; the live namespace has plain names."""
        return prefix_of(self.namespace)

    @property
    def confluent(self) -> dict[str, str | int]:
        """Return the connection for confluent-kafka."""
        found: dict[str, str | int] = {
            "bootstrap.servers": self.kafka,
            "security.protocol": self.kafka_security_protocol,
        }
        if self.kafka_sasl_mechanism:
            found["sasl.mechanism"] = self.kafka_sasl_mechanism
        if self.kafka_username and self.kafka_password:
            found["sasl.username"] = self.kafka_username
            found["sasl.password"] = self.kafka_password.get_secret_value()
        if self.kafka_ca_file:
            found["ssl.ca.location"] = str(self.kafka_ca_file)
        return found


def load_settings(**overrides: object) -> Settings:
    """Read the environment; a wrong variable raises SettingsError with its name."""
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "MONITOR_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None


def secret(variable: str) -> str | None:
    """Return a secret that a configuration file refers to by the variable's name."""
    return os.environ.get(variable)  # noqa: TID251 - the one place that reads the environment


def process_environment(settings: Settings) -> dict[str, str]:
    """Return the environment for a process of the same deployment: ours, with these settings in it."""
    own = {}
    for name, value in settings:
        if value is not None:
            plain = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            own["MONITOR_" + name.upper()] = plain
    return dict(os.environ) | own  # noqa: TID251 - the one place that reads the environment


def given(name: str) -> bool:
    """Tell whether the environment names this setting, so that a default is not taken for a wish."""
    return f"MONITOR_{name.upper()}" in os.environ  # noqa: TID251 - the one place that reads the environment
