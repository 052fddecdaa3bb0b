"""What may go wrong on the way to a model, in our words: what to try again and when, what to give up."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec
from openai import APIStatusError

from monitor.judging.judge import NotScored
from monitor.judging.judgment import FailureKind

_TOO_MANY = 429
_TRY_AGAIN = frozenset({408, 409, _TOO_MANY})
_SERVER_ERRORS = 500
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a body raises that is no JSON, or JSON nested too deep for any judgment."""


class Retryable(Exception):  # noqa: N818 - it is no error until the attempts are used up
    """A failure that another attempt may cure."""

    def __init__(self, kind: FailureKind, reason: str, *, wait_seconds: float | None = None) -> None:
        """Say what failed, and how long the endpoint asks to wait."""
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.wait_seconds = wait_seconds


class Refused(Exception):  # noqa: N818 - the endpoint's answer to the request itself, the same each time
    """A refusal of the request; it would be refused again."""

    def __init__(self, failure: NotScored, *, status: int) -> None:
        """Say what failed, and with which status."""
        super().__init__(failure.reason)
        self.failure = failure
        self.status = status


def answer_of(response: httpx2.Response, content: bytes) -> Any:
    """Return what an answer holds; raises Retryable for 429, 5xx and broken JSON, Refused for other statuses."""
    if response.is_success:
        try:
            return msgspec.json.decode(content)
        except _BROKEN as error:
            reason = "the endpoint answered 200 with broken JSON"
            raise Retryable(FailureKind.UNAVAILABLE, reason) from error
    refusal = _status_error(response, content)
    # An empty account answers 429 too, and no waiting fills it.
    again = refusal.status_code in _TRY_AGAIN or refusal.status_code >= _SERVER_ERRORS
    if refusal.code == "insufficient_quota" or not again:
        failure = NotScored(kind=FailureKind.REJECTED, reason=_said(refusal))
        raise Refused(failure, status=refusal.status_code) from refusal
    kind = FailureKind.RATE_LIMITED if refusal.status_code == _TOO_MANY else FailureKind.UNAVAILABLE
    raise Retryable(kind, _said(refusal), wait_seconds=_told_to_wait(refusal)) from refusal


def retryable_of(error: Exception) -> Retryable:
    """Return what a call that got no answer failed of; another attempt may cure it."""
    # With the aiohttp transport a refused or dropped connection may arrive as a timeout as well; whether time ran
    # out, only the causes below it say.
    causes: list[BaseException | None] = [error.__cause__]
    while causes[-1] is not None:
        causes.append(causes[-1].__cause__ or causes[-1].__context__)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return Retryable(FailureKind.TIMEOUT, "the endpoint did not answer in time")
    known = [cause for cause in causes if cause is not None]
    return Retryable(
        FailureKind.UNAVAILABLE, f"the endpoint is out of reach ({type((known or [error])[-1]).__name__})"
    )


def _status_error(response: httpx2.Response, content: bytes) -> APIStatusError:
    try:
        body = msgspec.json.decode(content)
    except _BROKEN:
        body = None
    said = body.get("error", body) if isinstance(body, dict) else body
    return APIStatusError("refused", response=response, body=said)


def _said(error: APIStatusError) -> str:
    # The message may quote the prompt or the key, so only the code and the parameter are repeated.
    details = [detail for detail in (error.code, error.param) if isinstance(detail, str)]
    named = f" ({', '.join(detail[:60] for detail in details)})" if details else ""
    return f"the endpoint answered {error.status_code}{named}"


def _told_to_wait(error: APIStatusError) -> float | None:
    headers = error.response.headers
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None:
        return seconds
    at, now = _moment(told), _moment(headers.get("date"))
    # By the endpoint's own clock, which is the one that counts here.
    return max(0.0, (at - now).total_seconds()) if at and now else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _moment(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, OverflowError):
        return None
    # A date in "-0000" has no zone for Python; HTTP knows only UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
