"""One POST in, a delivery out: which answers are final and which are worth another try, the same for all receivers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2

from monitor.alerting.receiver import Delivered, Delivery, Undelivered

TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500
WORDS_MAX = 200
"""Characters of a receiver's answer that are kept; it may be a page."""


class HttpDelivery:
    """Posts for one receiver; nothing of an address or a body gets into a reason."""

    def __init__(self, name: str, *, timeout_seconds: float) -> None:
        """Take the receiver's name."""
        self._name = name
        # A redirect would hand the body to an address that nobody configured.
        self._client = httpx2.AsyncClient(timeout=timeout_seconds, follow_redirects=False)

    async def post(
        self, url: str, content: bytes, headers: Mapping[str, str], *, words: bool = False
    ) -> Delivery:
        """Post once. With `words`, a refusal tells what the receiver answered: for services that say no secrets."""
        try:
            response = await self._client.post(url, content=content, headers=dict(headers))
        except httpx2.InvalidURL:
            return Undelivered(receiver=self._name, reason="the URL is none", retry=False)
        except httpx2.RequestError as error:
            # The address may itself be a secret: the error's kind is enough.
            return Undelivered(receiver=self._name, reason=type(error).__name__, retry=True)
        if response.is_success:
            return Delivered(receiver=self._name)
        status = response.status_code
        retry = status == TOO_MANY_REQUESTS or status >= SERVER_ERROR
        said = f": {_line(response.text)}" if words and not retry and response.text else ""
        return Undelivered(
            receiver=self._name,
            reason=f"HTTP {status}{said}",
            retry=retry,
            retry_after_seconds=retry_after(response.headers.get("Retry-After")) if retry else None,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def retry_after(field: str | None, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After asks for, be it a number or a date; None for neither."""
    if field is None:
        return None
    if field.strip().isdigit():
        return float(field)
    try:
        until = parsedate_to_datetime(field)
    except ValueError:
        return None
    if until.tzinfo is None:
        return None
    present = now or datetime.now(UTC)  # noqa: TID251 - the date is of the receiver's wall clock
    return max(0.0, (until - present).total_seconds())


def _line(text: str) -> str:
    return " ".join(text.split())[:WORDS_MAX]
