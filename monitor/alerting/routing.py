"""config/routing.yaml: who is told of what."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.detection.finding import Severity

VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
"""The name of an environment variable; what it holds never stands in a file."""


class ConsoleReceiver(BaseModel):
    """Prints to the terminal of the notifying process."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["console"]


class WebhookReceiver(BaseModel):
    """Posts Alertmanager's JSON to a URL, signed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["webhook"]
    url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    url_env: VariableName | None = None
    secret_env: VariableName | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 10
    attempts: Annotated[int, Field(ge=1, le=10)] = 4

    @model_validator(mode="after")
    def _has_one_url(self) -> Self:
        if (self.url is None) == (self.url_env is None):
            raise ValueError("a webhook needs url, or url_env where the URL itself is a secret; one of them")
        return self


ReceiverPolicy = Annotated[ConsoleReceiver | WebhookReceiver, Field(discriminator="type")]


class RoutingPolicy(BaseModel):
    """Receivers by name, and the names that each severity goes to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    receivers: Annotated[dict[str, ReceiverPolicy], Field(min_length=1)]
    routes: dict[Severity, tuple[str, ...]]
    external_url: str = ""

    @model_validator(mode="after")
    def _every_route_leads_somewhere(self) -> Self:
        for severity, names in self.routes.items():
            for name in names:
                if name not in self.receivers:
                    known = ", ".join(sorted(self.receivers))
                    raise ValueError(f"{severity} goes to the receiver {name}, which is not among: {known}")
        if not self.routes.get(Severity.PAGE):
            raise ValueError("page goes to nobody; name at least one receiver for it")
        return self

    def receivers_of(self, severity: Severity) -> tuple[str, ...]:
        """Return the names of whoever is told of this severity."""
        return self.routes.get(severity, ())
