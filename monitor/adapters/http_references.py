"""Reference documents from an HTTP endpoint, in versions by time; bounded, remembered, failures as values.

GET of the configured address with `{id}` in it, and `at` (RFC 3339) or `version` as query. The reply is
JSON with `text` and optional `version` and `valid_from`, or plain text with its version in the header
`X-Document-Version` or `ETag`. 404 and 410 say that there is no such document.
"""

import asyncio
import json
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, wait_random_exponential

from monitor.intake.event import Reference
from monitor.judging.references import Document, Gap, HttpReferencesPolicy, NoDocument, shortened

REMEMBERED_MAX = 512
"""Documents remembered; with the default limit of a document they take 100 MB at the very most."""
FAILED_SECONDS = 10.0
"""How long a failure is remembered, so that an endpoint that is down is not asked for every turn."""
BYTES_PER_CHAR = 4
GONE = (404, 410)
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500
Found = Document | NoDocument


class _Kept(NamedTuple):
    found: Found
    until: float


class HttpReferences:
    """The port `DocumentSource` on HTTP."""

    def __init__(self, policy: HttpReferencesPolicy, *, max_chars: int, token: str | None = None) -> None:
        """Take the address; nothing is connected before the first document."""
        self._policy = policy
        self._max_chars = max_chars
        self._headers = {"accept": "application/json, text/markdown, text/plain"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._client: httpx2.AsyncClient | None = None
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._on_their_way: dict[tuple[str, str], asyncio.Task[Found]] = {}

    async def fetch(self, reference: Reference, *, at: datetime, version: str | None = None) -> Found:
        """Return the version in force at a time, to the exactness of `ttl_seconds`, or the one named."""
        asked = f"version={quote(version, safe='')}" if version is not None else f"at={self._floored(at)}"
        key = (reference.id, asked)
        now = asyncio.get_running_loop().time()
        known = self._kept.get(key)
        if known is not None and known.until > now:
            return known.found
        task = self._on_their_way.get(key)
        if task is None:
            # One request for all turns that want it; one of them may be cancelled, the others still wait.
            task = asyncio.create_task(self._fetched(key))
            self._on_their_way[key] = task
            task.add_done_callback(lambda _: self._on_their_way.pop(key, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _floored(self, at: datetime) -> str:
        seconds = at.timestamp() // self._policy.ttl_seconds * self._policy.ttl_seconds
        # A short name for UTC: a plus sign in a query means a blank.
        return quote(f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}", safe="")

    async def _fetched(self, key: tuple[str, str]) -> Found:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self._policy.attempts),
            wait=wait_random_exponential(multiplier=0.2, max=2),
            retry=retry_if_result(
                lambda found: isinstance(found, NoDocument) and found.gap is Gap.UNAVAILABLE
            ),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        found: Found = await tries(self._asked, *key)
        failed = isinstance(found, NoDocument) and found.gap in (Gap.UNAVAILABLE, Gap.UNREADABLE)
        seconds = min(FAILED_SECONDS, self._policy.ttl_seconds) if failed else self._policy.ttl_seconds
        self._kept[key] = _Kept(found, asyncio.get_running_loop().time() + seconds)
        self._kept.move_to_end(key)
        if len(self._kept) > REMEMBERED_MAX:
            self._kept.popitem(last=False)
        return found

    async def _asked(self, doc_id: str, asked: str) -> Found:
        url = self._policy.url.replace("{id}", quote(doc_id, safe=""))
        url += ("&" if "?" in url else "?") + asked
        try:
            async with (
                asyncio.timeout(self._policy.timeout_seconds),
                self._open().stream("GET", url) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    return _refused(doc_id, response.status_code)
                body = await self._bounded(response)
                if body is None:
                    limit = f"references.max_chars ({self._max_chars})"
                    return NoDocument(id=doc_id, gap=Gap.TOO_LARGE, reason=f"it is larger than {limit}")
                return self._read(doc_id, body, response.headers)
        except (httpx2.HTTPError, TimeoutError) as error:
            return NoDocument(
                id=doc_id, gap=Gap.UNAVAILABLE, reason=f"the endpoint did not answer ({type(error).__name__})"
            )

    async def _bounded(self, response: httpx2.Response) -> bytes | None:
        """Read no further than a document may be long."""
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self._max_chars * BYTES_PER_CHAR:
                return None
        return body

    def _read(self, doc_id: str, body: bytes, headers: Any) -> Found:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        text = body.decode("utf-8", errors="replace")
        version = headers.get("x-document-version") or headers.get("etag", "").strip('W/"') or None
        valid_from = None
        if kind == "application/json":
            try:
                told = json.loads(text)
            except (ValueError, RecursionError):
                told = None
            if not isinstance(told, dict) or not isinstance(told.get("text"), str):
                return NoDocument(id=doc_id, gap=Gap.UNREADABLE, reason="its JSON has no `text`")
            text = told["text"]
            version = str(told["version"]) if told.get("version") is not None else version
            valid_from = _moment(told.get("valid_from"))
        elif kind == "text/html":
            # A login page or an error page; judging by it would fail every answer.
            return NoDocument(
                id=doc_id, gap=Gap.UNREADABLE, reason="the endpoint answered with a page of HTML"
            )
        return Document.of(doc_id, shortened(text, self._max_chars), version, valid_from)

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            # A redirect would hand the token to an address that nobody configured.
            self._client = httpx2.AsyncClient(
                headers=self._headers, timeout=self._policy.timeout_seconds, follow_redirects=False
            )
        return self._client


def _refused(doc_id: str, status: int) -> NoDocument:
    if status in GONE:
        return NoDocument(id=doc_id, gap=Gap.UNKNOWN, reason="the endpoint has no such document")
    if status == TOO_MANY_REQUESTS or status >= SERVER_ERROR:
        return NoDocument(id=doc_id, gap=Gap.UNAVAILABLE, reason=f"the endpoint answered {status}")
    return NoDocument(id=doc_id, gap=Gap.UNREADABLE, reason=f"the endpoint answered {status}")


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment is not None and moment.tzinfo is not None else None
