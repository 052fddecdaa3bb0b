"""Conversations of the archive or a file in, judgments of both judges out: what a migration is reckoned from."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from agents.services import Services, build_services, wall_now
from agents.shadow import shadow_services
from monitor.cli.asking import broker
from monitor.cli.judge import judgments_of
from monitor.cli.judge_compare import LIVE, SHADOW, version_of
from monitor.cli.replay_file import START
from monitor.conversations.bounds import bounded
from monitor.conversations.conversation import Conversation
from monitor.conversations.transcripts import read_conversations
from monitor.intake.decode import Rejected
from monitor.judging.judgment import JudgeRequest, Judgment, Record, Target
from monitor.judging.rubric import TargetKind
from monitor.policy import ConfigError, Policy
from monitor.settings import Settings
from monitor.topics import ARCHIVE

_REVISION = re.compile(rb"(.+)/r(\d+)", re.DOTALL)


class Rejudged(NamedTuple):
    """What was judged again."""

    pairs: list[tuple[Judgment, Judgment]]
    without_text: int
    """Drawn conversations that the archive no longer holds."""
    failed: int


def archived_texts(settings: Settings, targets: Collection[Target]) -> dict[tuple[str, int], Conversation]:
    """Return the archived conversations of targets, by id and revision; one that cannot be read counts as gone."""
    wanted = {(one.conversation_id, one.revision) for one in targets}
    found: dict[tuple[str, int], Conversation] = {}
    with broker(settings) as admin:
        for held in admin.read(settings.topic_prefix + ARCHIVE):
            named = _REVISION.fullmatch(held.key or b"")
            key = (named[1].decode(errors="replace"), int(named[2])) if named else None
            if key is None or key not in wanted:
                continue
            found.pop(key, None)
            if held.value is not None:
                try:
                    found[key] = Conversation.model_validate_json(held.value)
                except ValidationError:
                    continue
    return found


def judged_again(
    settings: Settings,
    policy: Policy,
    drawn: Sequence[Judgment],
    texts: Mapping[tuple[str, int], Conversation],
    *,
    version: str,
) -> Rejudged:
    """Let the judge of a version judge the archived conversations of another's judgments; one that was is not paid."""
    requests = [
        (one, _request(one, texts[key], policy))
        for one in drawn
        if (key := (one.target.conversation_id, one.target.revision)) in texts
    ]

    async def run() -> list[Record]:
        async with _services(settings, policy, version) as services:
            places = asyncio.Semaphore(services.policy.monitor.judge.concurrency)

            async def one(request: JudgeRequest) -> Record:
                async with places:
                    return await services.executor.record_of(request, now=wall_now)

            return list(await asyncio.gather(*(one(request) for _, request in requests)))

    records = asyncio.run(run()) if requests else []
    pairs = [
        (old, record)
        for (old, _), record in zip(requests, records, strict=True)
        # A fallback may have spoken in the judge's place.
        if isinstance(record, Judgment) and record.judge.version == version
    ]
    return Rejudged(pairs, len(drawn) - len(requests), len(requests) - len(pairs))


def judged_by_both(settings: Settings, policy: Policy, file: Path, *, versions: tuple[str, str]) -> Rejudged:
    """Let two configured judges judge the conversations of a file."""
    conversations = list(_of_file(file, policy))

    async def run(version: str) -> list[Record]:
        async with _services(settings, policy, version) as services:
            places = asyncio.Semaphore(services.policy.monitor.judge.concurrency)

            async def one(conversation: Conversation) -> Record:
                async with places:
                    whole = (TargetKind.CONVERSATION,)
                    told = judgments_of(conversation, executor=services.executor, now=wall_now, kinds=whole)
                    return await anext(told)

            return list(await asyncio.gather(*map(one, conversations)))

    both = [asyncio.run(run(version)) for version in versions]
    pairs = [
        (old, new)
        for old, new in zip(*both, strict=True)
        if isinstance(old, Judgment) and isinstance(new, Judgment)
    ]
    return Rejudged(pairs, 0, len(conversations) - len(pairs))


@asynccontextmanager
async def _services(settings: Settings, policy: Policy, version: str) -> AsyncIterator[Services]:
    if version == version_of(LIVE, settings, policy):
        services = build_services(settings, policy)
    elif policy.monitor.judge.shadow and version == version_of(SHADOW, settings, policy):
        services = shadow_services(settings, policy)
    else:
        raise ConfigError(
            f"the judge {version} is neither the live one of monitor.yaml nor judge.shadow, so it cannot judge anew; "
            "configure it as judge.shadow"
        )
    try:
        await services.stores.start()
        yield services
    finally:
        await services.close()


def _request(old: Judgment, conversation: Conversation, policy: Policy) -> JudgeRequest:
    return JudgeRequest(
        target=old.target,
        conversation=bounded(conversation, max_chars=policy.monitor.conversations.max_chars),
        rate=old.rate,
        observed_at=old.observed_at,
        requested_at=wall_now(),
    )


def _of_file(file: Path, policy: Policy) -> Iterator[Conversation]:
    lines = file.read_text(encoding="utf-8").split("\n")
    for number, found in read_conversations(lines, start=START, region=policy.monitor.intake.phone_region):
        if isinstance(found, Rejected):
            raise ConfigError(f"{file}:{number}: {found.reason}")
        if found.last_answered is not None:
            # A file may hold other words under an id of the traffic, whose stored answer this must not become.
            yield found.model_copy(update={"id": f"migrate/{found.id}"})
