"""Notifications posted to a URL, in Alertmanager's shape, signed, in bounded attempts."""

from collections.abc import Callable
from datetime import UTC, datetime

import httpx2
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, wait_random_exponential

from monitor.alerting.receiver import Delivered, Delivery, Notification, Undelivered
from monitor.alerting.webhook import body, headers

WAIT_MAX_SECONDS = 8
"""Longest pause between two attempts; it bounds how long a dead receiver holds up the others."""
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


def _wall_clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a receiver checks the signature's age against its own wall clock


class WebhookReceiver:
    """The port `Receiver` on HTTP."""

    def __init__(
        self,
        name: str,
        *,
        url: str,
        secret: bytes | None = None,
        timeout_seconds: float = 10,
        attempts: int = 4,
        wait_seconds: float = 0.5,
        external_url: str = "",
        clock: Callable[[], datetime] = _wall_clock,
    ) -> None:
        """Take what config/routing.yaml says, with the values of the variables that it names."""
        self._name = name
        self._url = url
        self._secret = secret
        self._attempts = attempts
        self._wait_seconds = wait_seconds
        self._external_url = external_url
        self._clock = clock
        # A redirect would hand the body to an address that nobody configured.
        self._client = httpx2.AsyncClient(timeout=timeout_seconds, follow_redirects=False)

    @property
    def name(self) -> str:
        """Return its name in config/routing.yaml."""
        return self._name

    async def deliver(self, notification: Notification) -> Delivery:
        """Post a notification; try again on 429, 5xx and transport errors only."""
        content = body(notification, receiver=self._name, external_url=self._external_url)
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            wait=wait_random_exponential(multiplier=self._wait_seconds, max=WAIT_MAX_SECONDS),
            retry=retry_if_result(lambda delivery: isinstance(delivery, Undelivered) and delivery.retry),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        delivery: Delivery = await tries(self._post, content, notification)
        return delivery

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _post(self, content: bytes, notification: Notification) -> Delivery:
        fields = headers(content, notification, secret=self._secret, now=self._clock())
        try:
            response = await self._client.post(self._url, content=content, headers=fields)
        except httpx2.InvalidURL:
            return Undelivered(receiver=self._name, reason="the URL is none", retry=False)
        except httpx2.RequestError as error:
            # The address may itself be a secret: the error's kind is enough.
            return Undelivered(receiver=self._name, reason=type(error).__name__, retry=True)
        if response.is_success:
            return Delivered(receiver=self._name)
        retry = response.status_code == TOO_MANY_REQUESTS or response.status_code >= SERVER_ERROR
        return Undelivered(receiver=self._name, reason=f"HTTP {response.status_code}", retry=retry)
