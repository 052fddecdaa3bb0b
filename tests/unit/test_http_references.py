"""Documents by HTTP, from a real server: what is asked, remembered, bounded, and what each refusal means."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from monitor.adapters.http_references import HttpReferences
from monitor.intake.event import Reference
from monitor.judging.references import Document, Gap, HttpReferencesPolicy, NoDocument

AT = datetime(2026, 6, 10, 12, 1, tzinfo=UTC)
Handler = Callable[[web.Request], web.StreamResponse]


@asynccontextmanager
async def served(
    answer: Handler, *, token: str | None = None, **policy: float
) -> AsyncIterator[HttpReferences]:
    async def handle(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.01)
        return answer(request)

    app = web.Application()
    app.router.add_get("/docs/{id}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    settings = HttpReferencesPolicy(url=f"http://127.0.0.1:{port}/docs/{{id}}", **policy)
    source = HttpReferences(settings, max_chars=1_000, token=token)
    try:
        yield source
    finally:
        await source.close()
        await runner.cleanup()


async def test_the_version_in_force_is_asked_for_by_time_with_the_token() -> None:
    """The endpoint decides what was in force; the id may hold a slash and must not become a path."""
    seen: list[tuple[str, str, str | None]] = []

    def answer(request: web.Request) -> web.StreamResponse:
        seen.append((request.match_info["id"], request.query["at"], request.headers.get("authorization")))
        told = {"text": "Within 14 days.", "version": 3, "valid_from": "2026-06-01T00:00:00Z"}
        return web.json_response(told)

    async with served(answer, token="t0ken") as source:  # noqa: S106 - a test's token
        found = await source.fetch(Reference(id="a b?c"), at=AT)

    assert isinstance(found, Document)
    assert (found.text, found.version) == ("Within 14 days.", "3")
    assert seen == [("a b?c", "2026-06-10T12:00:00Z", "Bearer t0ken")]


async def test_a_document_is_asked_for_once_within_its_time_and_by_many_at_once() -> None:
    """Fifty judgments in flight name the same policy."""
    asked = 0

    def answer(_: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.Response(text="Plain.", headers={"X-Document-Version": "v7"})

    async with served(answer) as source:
        found = await asyncio.gather(
            *(source.fetch(Reference(id="x"), at=AT + timedelta(seconds=n)) for n in range(50))
        )
        assert asked == 1
        await source.fetch(Reference(id="x"), at=AT + timedelta(hours=1))
        await source.fetch(Reference(id="x"), at=AT, version="v6")

    assert {one.version for one in found if isinstance(one, Document)} == {"v7"}
    assert asked == 3


@pytest.mark.parametrize(
    ("answer", "gap"),
    [
        (lambda _: web.Response(status=404), Gap.UNKNOWN),
        (lambda _: web.Response(status=410), Gap.UNKNOWN),
        (lambda _: web.Response(status=401), Gap.UNREADABLE),
        (lambda _: web.Response(status=503), Gap.UNAVAILABLE),
        (lambda _: web.Response(status=302, headers={"location": "/login"}), Gap.UNREADABLE),
        (lambda _: web.Response(text="<html>Log in</html>", content_type="text/html"), Gap.UNREADABLE),
        (lambda _: web.json_response({"body": "x"}), Gap.UNREADABLE),
        (lambda _: web.json_response([1]), Gap.UNREADABLE),
        (lambda _: web.Response(text="x" * 10_000), Gap.TOO_LARGE),
    ],
)
async def test_each_refusal_is_a_gap_of_its_own(answer: Handler, gap: Gap) -> None:
    """A login page taken for a policy would fail every answer."""
    async with served(answer, attempts=1) as source:
        found = await source.fetch(Reference(id="x"), at=AT)

    assert isinstance(found, NoDocument)
    assert found.gap is gap


async def test_an_endpoint_that_is_gone_is_unavailable_within_its_time() -> None:
    policy = HttpReferencesPolicy(url="http://127.0.0.1:9/{id}", attempts=2)
    source = HttpReferences(policy, max_chars=1_000)
    found = await source.fetch(Reference(id="x"), at=AT)
    await source.close()

    assert isinstance(found, NoDocument)
    assert found.gap is Gap.UNAVAILABLE


async def test_one_who_gives_up_does_not_take_the_document_from_the_others() -> None:
    """A judgment's deadline ends its own wait, not that of fifty others."""
    async with served(lambda _: web.Response(text="Plain.")) as source:
        first = asyncio.create_task(source.fetch(Reference(id="x"), at=AT))
        await asyncio.sleep(0)
        second = asyncio.create_task(source.fetch(Reference(id="x"), at=AT))
        await asyncio.sleep(0)
        first.cancel()
        found = await second

    assert isinstance(found, Document)
