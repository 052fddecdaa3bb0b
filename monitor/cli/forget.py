"""`monitor forget ID`: a person's words erased, the figures kept."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Annotated

import typer
import xxhash

from agents.services import wall_now
from monitor.adapters.kafka_admin import Held
from monitor.adapters.kafka_sender import KafkaSender
from monitor.cli.asking import Forgotten, NameOption, broker, looking, moment
from monitor.conversations.store import Explained
from monitor.judging.judgment import Record
from monitor.publishing import Outgoing
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
        gone = looks.forget(conversation_id, [record.judgment_id for record in known.records])
        rest = remains(
            topics(policy.monitor.topics, namespace=settings.namespace), prefix=prefix, now=wall_now()
        )
    for line in report(conversation_id, len(wanted), gone, known, rest):
        typer.echo(line)


def keys_of(conversation_id: str, known: Explained[Record]) -> list[bytes]:
    """Return the archive's keys that follow from the record."""
    revisions = range(1, known.stored.revision + 1) if known.stored else ()
    return [
        *(f"{conversation_id}/r{revision}".encode() for revision in revisions),
        *(f"{conversation_id}/j/{record.judgment_id}".encode() for record in known.records),
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


def _partition(conversation_id: str, partitions: int) -> int:
    return xxhash.xxh3_64_intdigest(conversation_id.encode()) % partitions
