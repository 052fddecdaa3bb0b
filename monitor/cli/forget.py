"""`monitor forget ID`: a person's words erased, the figures kept."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated

import typer
import xxhash

from agents.services import build_judge, wall_now
from monitor.adapters.kafka_admin import Held
from monitor.adapters.kafka_sender import KafkaSender
from monitor.cli.asking import Forgotten, NameOption, broker, looking, moment
from monitor.conversations.store import Explained
from monitor.judging.judgment import Record, Target, judgment_id
from monitor.judging.rubric import TargetKind
from monitor.policy import ConfigError, Policy, shadow_of
from monitor.publishing import Outgoing
from monitor.settings import Settings
from monitor.topics import (
    ALERTS,
    ARCHIVE,
    COPARTITIONED,
    DEAD_LETTERS,
    SOURCES,
    Topic,
    topics,
)

WITH_WORDS = (*SOURCES, *COPARTITIONED, DEAD_LETTERS, ALERTS)
"""Topics that hold what people said and that only their retention empties."""


def forget(
    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")],
    name: NameOption = None,
) -> None:
    """Erase the words of a conversation from the archive and from Redis; outcomes and scores stay.

    Reads the whole archive, for what Redis no longer knows. Doing it again changes nothing.
    """
    with looking(name) as (settings, policy, looks):
        prefix = settings.topic_prefix
        known = looks.explain(conversation_id)
        with broker(settings) as admin:
            held = archived(admin.read(prefix + ARCHIVE), conversation_id)
        partitions = policy.monitor.topics.partitions
        wanted = (
            dict.fromkeys(keys_of(conversation_id, known), _partition(conversation_id, partitions)) | held
        )
        # The archive first: if this ends half-way, Redis still names what has to be erased.
        KafkaSender(settings).send(
            [Outgoing(prefix + ARCHIVE, key, None, partition) for key, partition in wanted.items()]
        )
        revisions = {*revisions_of(conversation_id, held), *_revisions(known)}
        gone = looks.forget(
            conversation_id,
            [record.judgment_id for record in known.records],
            again=rejudged_ids(conversation_id, revisions, _judges(settings, policy)),
        )
        rest = remains(
            topics(policy.monitor.topics, namespace=settings.namespace), prefix=prefix, now=wall_now()
        )
    for line in report(conversation_id, len(wanted), gone, known, rest):
        typer.echo(line)


def keys_of(conversation_id: str, known: Explained[Record]) -> list[bytes]:
    """Return the archive's keys that follow from the record."""
    return [
        *(f"{conversation_id}/r{revision}".encode() for revision in _revisions(known)),
        *(f"{conversation_id}/j/{record.judgment_id}".encode() for record in known.records),
    ]


def revisions_of(conversation_id: str, keys: Iterable[bytes]) -> set[int]:
    """Return the revisions whose texts the archive holds."""
    own = re.compile(re.escape(conversation_id).encode() + rb"/r(\d+)")
    return {int(found[1]) for key in keys if (found := own.fullmatch(key))}


def rejudged_ids(
    conversation_id: str, revisions: Iterable[int], judges: Iterable[tuple[str, str]]
) -> list[str]:
    """Return under which ids `monitor judge migrate` may have kept an answer, which no record names.

    `judges` are those that can judge anew, by rubric and judge version.
    """
    whole = [
        Target(kind=TargetKind.CONVERSATION, conversation_id=conversation_id, revision=revision)
        for revision in sorted(revisions)
    ]
    return [
        judgment_id(target, rubric_version=rubric, judge_version=judge)
        for rubric, judge in judges
        for target in whole
    ]


def archived(records: Iterable[Held], conversation_id: str) -> dict[bytes, int]:
    """Return the keys of a conversation that the archive holds, each with its partition."""
    # An id may hold a slash, so the beginning of a key alone does not say whose it is.
    own = re.compile(re.escape(conversation_id).encode() + rb"/(?:r\d+|j/[0-9a-f]{32})")
    found: dict[bytes, int] = {}
    for held in records:
        if held.key is None or not own.fullmatch(held.key):
            continue
        if held.value is None:
            found.pop(held.key, None)
        else:
            found[held.key] = held.partition
    return found


def remains(all_topics: Iterable[Topic], *, prefix: str, now: datetime) -> dict[str, datetime]:
    """Return the topics that still hold raw bytes, and when the last of them is gone at the latest."""
    with_words = {prefix + name for name in WITH_WORDS}
    return {
        topic.name: now + timedelta(milliseconds=int(topic.config["retention.ms"]))
        for topic in all_topics
        if topic.name in with_words
    }


def report(
    conversation_id: str,
    tombstones: int,
    gone: Forgotten,
    known: Explained[Record],
    rest: Mapping[str, datetime],
) -> Iterable[str]:
    """Return what was erased, what stays, and until when, a line each."""
    if known.stored is None and not tombstones:
        yield f"Of conversation {conversation_id} nothing was stored."
    yield (
        f"Erased: {tombstones} entries of the archive, {gone.texts} texts, the words of {gone.answers} judgments, "
        f"{gone.cases} cases in windows, cases in {gone.alerts} alerts and {gone.messages} messages that wait. "
        "Outcomes and scores stay. What receivers have been sent already is theirs to erase."
    )
    yield "The archive's log is compacted by the broker in its own time; until then its segments hold the old bytes."
    if known.due is not None:
        yield f"It is still open until {moment(known.due)}: what comes until then is kept anew; forget it again after."
    yield "Bytes remain, and go by retention at the latest:"
    for topic, until in sorted(rest.items(), key=lambda one: one[1]):
        what = "  (messages about alerts that cited it)" if topic.endswith(ALERTS) else ""
        yield f"  {topic}: {moment(until)}{what}"


def _revisions(known: Explained[Record]) -> range:
    return range(1, known.stored.revision + 1) if known.stored else range(0)


def _judges(settings: Settings, policy: Policy) -> list[tuple[str, str]]:
    found = []
    for one in (policy, shadow_of(policy)):
        # Words are erased where no judge could be built as well.
        with contextlib.suppress(ConfigError):
            if one is not None:
                found.append((one.rubric.version, build_judge(settings, one).identity.version))
    return found


def _partition(conversation_id: str, partitions: int) -> int:
    return xxhash.xxh3_64_intdigest(conversation_id.encode()) % partitions
