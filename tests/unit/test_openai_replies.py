"""What an endpoint may send instead of an answer, byte by byte: each of it is a failure in our words, and bounded."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from monitor.adapters.openai_endpoint import REPLY_BYTES_MAX, Endpoint
from monitor.adapters.openai_failures import Retryable
from monitor.judging.judgment import FailureKind

OLD_DATE = b"Wed, 21 Oct 2015 07:28:00"
GOOD = b'{"choices":[{"message":{"content":"x"}}]}'


def reply(status: bytes, body: bytes = b"", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@contextlib.asynccontextmanager
async def answering(said: bytes, *, endless: bytes = b"") -> AsyncIterator[Endpoint]:
    """Serve these bytes to every request, and after them, if wanted, one chunk again and again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(said)
            await writer.drain()
            while endless:
                writer.write(endless)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = Endpoint(api_key="k", base_url=f"http://127.0.0.1:{port}/v1", timeout_seconds=10)
    try:
        yield endpoint
    finally:
        await endpoint.close()
        server.close()


async def failure_of(said: bytes, *, endless: bytes = b"") -> Retryable:
    async with answering(said, endless=endless) as endpoint:
        with pytest.raises(Retryable) as raised:
            await endpoint.post({"model": "m"}, tokens=1)
    return raised.value


@pytest.mark.parametrize(
    ("headers", "wait_seconds"),
    [
        # No zone, or one that says that nothing is known of it, is UTC (RFC 5322, 3.3).
        ([b"Retry-After: " + OLD_DATE + b" -0000", b"Date: " + OLD_DATE + b" GMT"], 0.0),
        ([b"Retry-After: Wed, 21 Oct 2015 07:28:09 GMT", b"Date: " + OLD_DATE + b" -0000"], 9.0),
        ([b"Retry-After: Wed, 21 Oct 99999999999999 07:28:00 GMT", b"Date: " + OLD_DATE + b" GMT"], None),
        ([b"Retry-After: \xff"], None),
    ],
)
async def test_no_date_makes_a_bug_of_a_full_endpoint(
    headers: list[bytes], wait_seconds: float | None
) -> None:
    """A bug is not tried again, and in a storm every judgment would be lost to one proxy's clock."""
    failed = await failure_of(reply(b"429 Too Many Requests", b"", *headers))

    assert (failed.kind, failed.wait_seconds) == (FailureKind.RATE_LIMITED, wait_seconds)


@pytest.mark.parametrize(
    "said",
    [
        b"nonsense\r\n\r\n",
        reply(b"200 OK"),
        b"HTTP/1.1 204 No Content\r\n\r\n",
        reply(b"200 OK", b"[" * 200_000),
        reply(b"200 OK", b"no gzip", b"Content-Encoding: gzip"),
        reply(b"200 OK", GOOD + b"}"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + GOOD,
        reply(b"307 Moved", b"", b"Location: http://[::1/x"),
        reply(b"307 Moved", b"", b"Location: http://127.0.0.1:99999/x"),
    ],
)
async def test_what_is_no_answer_is_tried_again(said: bytes) -> None:
    """A proxy that restarts says anything; whatever escapes here as a bug loses a judgment."""
    assert (await failure_of(said)).kind is FailureKind.UNAVAILABLE


async def test_a_reply_without_an_end_is_given_up_at_its_bound() -> None:
    """A gigabyte a second for fifteen seconds, in each slot, would take the worker and all that it holds."""
    block = b"%x\r\n" % REPLY_BYTES_MAX + b" " * REPLY_BYTES_MAX + b"\r\n"

    failed = await failure_of(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", endless=block)

    assert failed.kind is FailureKind.UNAVAILABLE
    assert failed.reason == "the endpoint answered with more than 4 MB"
