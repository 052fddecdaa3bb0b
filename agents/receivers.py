"""The receivers of the routing, built with their secrets from the environment."""

from monitor.adapters.console_receiver import ConsoleReceiver
from monitor.adapters.webhook_receiver import WebhookReceiver
from monitor.alerting import routing
from monitor.alerting.receiver import Receiver
from monitor.policy import ConfigError
from monitor.settings import secret


def build_receivers(policy: routing.RoutingPolicy) -> dict[str, Receiver]:
    """Build every receiver by its name; a secret that is not in the environment is an error that names it."""
    found: dict[str, Receiver] = {}
    for name, one in policy.receivers.items():
        match one:
            case routing.ConsoleReceiver():
                found[name] = ConsoleReceiver(name)
            case routing.WebhookReceiver():
                found[name] = WebhookReceiver(
                    name,
                    url=one.url or _needed(name, one.url_env),
                    secret=_needed(name, one.secret_env).encode() if one.secret_env else None,
                    timeout_seconds=one.timeout_seconds,
                    attempts=one.attempts,
                    external_url=policy.external_url,
                )
    return found


def _needed(receiver: str, variable: str | None) -> str:
    value = secret(variable) if variable else None
    if not value:
        raise ConfigError(f"routing.yaml: receivers.{receiver}: the environment has no {variable}; set it")
    return value
