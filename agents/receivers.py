"""The receivers of the routing, built with their secrets from the environment."""

from typing import assert_never

from monitor.adapters.alertmanager_receiver import AlertmanagerReceiver, basic
from monitor.adapters.apprise_receiver import AppriseReceiver
from monitor.adapters.console_receiver import ConsoleReceiver
from monitor.adapters.kafka_receiver import KafkaReceiver
from monitor.adapters.pagerduty_receiver import PagerDutyReceiver
from monitor.adapters.slack_receiver import SlackReceiver
from monitor.adapters.webhook_receiver import WebhookReceiver
from monitor.alerting import receiver_policy as policies
from monitor.alerting.links import Links
from monitor.alerting.receiver import Receiver
from monitor.alerting.routing import RoutingPolicy
from monitor.policy import ConfigError
from monitor.settings import Settings, secret


def build_receivers(policy: RoutingPolicy, settings: Settings) -> dict[str, Receiver]:
    """Build every receiver by its name; a secret that is not in the environment is an error that names it."""
    return {
        name: build_receiver(name, one, settings, links=policy.links)
        for name, one in policy.receivers.items()
    }


def build_receiver(  # noqa: PLR0911 - one branch a type, each returns
    name: str, one: policies.ReceiverPolicy, settings: Settings, *, links: Links = Links()
) -> Receiver:
    """Build one receiver."""
    match one:
        case policies.ConsoleReceiver():
            return ConsoleReceiver(name, links=links)
        case policies.WebhookReceiver():
            return WebhookReceiver(
                name,
                url=one.url or _needed(name, one.url_env),
                secret=_needed(name, one.secret_env).encode() if one.secret_env else None,
                timeout_seconds=one.timeout_seconds,
                links=links,
            )
        case policies.PagerDutyReceiver():
            return PagerDutyReceiver(
                name,
                url=one.url,
                routing_key=_needed(name, one.routing_key_env),
                severities=one.severities,
                timeout_seconds=one.timeout_seconds,
                links=links,
            )
        case policies.SlackReceiver():
            return SlackReceiver(
                name,
                url=_needed(name, one.url_env),
                timeout_seconds=one.timeout_seconds,
                links=links,
            )
        case policies.AlertmanagerReceiver():
            return AlertmanagerReceiver(
                name,
                urls=one.urls,
                headers=_credentials(name, one),
                resend_seconds=one.resend_seconds,
                timeout_seconds=one.timeout_seconds,
                links=links,
            )
        case policies.AppriseReceiver():
            return _apprise(name, one, links)
        case policies.KafkaReceiver():
            return KafkaReceiver(
                name, topic=one.topic, settings=settings, timeout_seconds=one.timeout_seconds
            )
        case _:
            assert_never(one)


def _apprise(name: str, one: policies.AppriseReceiver, links: Links) -> AppriseReceiver:
    try:
        return AppriseReceiver(
            name,
            url=_needed(name, one.url_env),
            format=one.format,
            timeout_seconds=one.timeout_seconds,
            links=links,
        )
    except ValueError as error:
        raise ConfigError(f"routing.yaml: receivers.{name}: {one.url_env}: {error}") from None


def _credentials(name: str, one: policies.AlertmanagerReceiver) -> dict[str, str]:
    if one.bearer_env:
        return {"Authorization": f"Bearer {_needed(name, one.bearer_env)}"}
    if one.username_env:
        return basic(_needed(name, one.username_env), _needed(name, one.password_env))
    return {}


def _needed(receiver: str, variable: str | None) -> str:
    value = secret(variable) if variable else None
    if not value:
        raise ConfigError(f"routing.yaml: receivers.{receiver}: the environment has no {variable}; set it")
    return value
