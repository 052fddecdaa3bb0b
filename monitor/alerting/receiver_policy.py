"""The receivers of config/routing.yaml: types and settings. A secret never stands here, only its variable's name."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.detection.finding import Severity

VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
"""The name of an environment variable; what it holds never stands in a file."""
Url = Annotated[str, Field(pattern=r"^https?://")]
Timeout = Annotated[float, Field(gt=0, le=60)]
"""Seconds that a call may take."""
PagerDutySeverity = Literal["critical", "error", "warning", "info"]
DEFAULT_SEVERITIES: dict[Severity, PagerDutySeverity] = {
    Severity.PAGE: "critical",
    Severity.TICKET: "warning",
    Severity.INFO: "info",
}


class _Receiver(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    send_resolved: bool = True
    """Whether an end is told; a ticket system that people close themselves may not want it."""


class ConsoleReceiver(_Receiver):
    """Prints to the terminal of the notifying process."""

    type: Literal["console"]


class WebhookReceiver(_Receiver):
    """Posts Alertmanager's JSON to a URL, signed."""

    type: Literal["webhook"]
    url: Url | None = None
    url_env: VariableName | None = None
    secret_env: VariableName | None = None
    timeout_seconds: Timeout = 10

    @model_validator(mode="after")
    def _has_one_url(self) -> Self:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("a webhook needs url, or url_env where the URL itself is a secret; one of them")
        return self


class PagerDutyReceiver(_Receiver):
    """Opens and resolves one incident a group, by the Events API v2."""

    type: Literal["pagerduty"]
    routing_key_env: VariableName
    url: Url = "https://events.pagerduty.com/v2/enqueue"
    severities: dict[Severity, PagerDutySeverity] = DEFAULT_SEVERITIES
    timeout_seconds: Timeout = 10

    @model_validator(mode="after")
    def _knows_every_severity(self) -> Self:
        missing = [str(severity) for severity in Severity if severity not in self.severities]
        if missing:
            raise ValueError(f"severities has no {missing[0]}; give PagerDuty's word for each of ours")
        return self


class SlackReceiver(_Receiver):
    """Posts to a channel by its incoming webhook, whose address is a secret."""

    type: Literal["slack"]
    url_env: VariableName
    timeout_seconds: Timeout = 10


class AlertmanagerReceiver(_Receiver):
    """Keeps alerts alive in one or several Alertmanagers of a cluster until they are over."""

    type: Literal["alertmanager"]
    urls: Annotated[tuple[Url, ...], Field(min_length=1, max_length=10)]
    username_env: VariableName | None = None
    password_env: VariableName | None = None
    bearer_env: VariableName | None = None
    resend_seconds: Annotated[int, Field(ge=5, le=3600)] = 60
    timeout_seconds: Timeout = 10

    @model_validator(mode="after")
    def _has_one_way_in(self) -> Self:
        if (self.username_env is None) != (self.password_env is None):
            raise ValueError("username_env and password_env come together")
        if self.bearer_env is not None and self.username_env is not None:
            raise ValueError("give bearer_env, or username_env with password_env; not both")
        return self


class AppriseReceiver(_Receiver):
    """Tells anything that apprise speaks: mail, Teams, Discord, Telegram, ntfy and a hundred more."""

    type: Literal["apprise"]
    url_env: VariableName
    format: Literal["text", "markdown", "html"] = "text"
    timeout_seconds: Timeout = 30


class KafkaReceiver(_Receiver):
    """Writes each notification as JSON to a topic of the deployment's own broker."""

    type: Literal["kafka"]
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    timeout_seconds: Timeout = 10


ReceiverPolicy = Annotated[
    ConsoleReceiver
    | WebhookReceiver
    | PagerDutyReceiver
    | SlackReceiver
    | AlertmanagerReceiver
    | AppriseReceiver
    | KafkaReceiver,
    Field(discriminator="type"),
]
