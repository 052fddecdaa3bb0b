"""The topics of the pipeline: their names, shapes and retention, in one place."""

from dataclasses import dataclass

from monitor.policy import TopicPolicy

CONVERSATION_EVENTS = "conversation-events"
SUMMARY_EVENTS = "summary-events"
CHANGE_EVENTS = "change-events"
SAMPLED_EVENTS = "sampled-events"
JUDGE_REQUESTS = "judge-requests"
JUDGMENTS = "judgments"
ALERTS = "alerts"
DEAD_LETTERS = "dead-letters"
ARCHIVE = "archive"

SOURCES = (CONVERSATION_EVENTS, SUMMARY_EVENTS)
COPARTITIONED = (SAMPLED_EVENTS, JUDGE_REQUESTS, JUDGMENTS)
"""A conversation keeps its partition from hop to hop, so that a clock marker means the same on each."""

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True)
class Topic:
    """One topic as it should be."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]


LED_STAGES = ("evaluate", "notify")
"""Stages with a timer that one worker of all runs; Faust finds that worker by a topic of one partition."""


LIVE = "cm"
"""The namespace whose topics have plain names."""
MESSAGE_BYTES_MAX = 8 * 2**20
"""Bytes of a message on the topics that carry whole conversations, and dead letters with their raw bytes."""


def prefix_of(namespace: str) -> str:
    """Return what stands before the names of a namespace's topics."""
    return "" if namespace == LIVE else f"{namespace}."


def topics(policy: TopicPolicy, *, namespace: str = LIVE) -> tuple[Topic, ...]:
    """Return all topics of a namespace."""
    prefix = prefix_of(namespace)

    def topic(name: str, partitions: int, *, retention_ms: int, compact: bool = False) -> Topic:
        config = {
            "cleanup.policy": "compact,delete" if compact else "delete",
            "retention.ms": str(retention_ms),
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
        }
        return Topic(prefix + name, partitions, policy.replication, config)

    many = policy.partitions
    return (
        topic(CONVERSATION_EVENTS, many, retention_ms=7 * _DAY_MS),
        topic(SUMMARY_EVENTS, many, retention_ms=7 * _DAY_MS),
        topic(CHANGE_EVENTS, 1, retention_ms=policy.archive_days * _DAY_MS),
        topic(SAMPLED_EVENTS, many, retention_ms=policy.sampled_hours * _HOUR_MS),
        topic(JUDGE_REQUESTS, many, retention_ms=policy.sampled_hours * _HOUR_MS),
        topic(JUDGMENTS, many, retention_ms=policy.judgments_days * _DAY_MS),
        topic(ALERTS, 1, retention_ms=policy.alerts_days * _DAY_MS),
        topic(DEAD_LETTERS, 1, retention_ms=policy.dead_letters_days * _DAY_MS),
        *(
            Topic(
                f"{namespace}-{stage}-__assignor-__leader",
                1,
                policy.replication,
                {"retention.ms": str(_DAY_MS)},
            )
            for stage in LED_STAGES
        ),
        topic(ARCHIVE, many, retention_ms=policy.archive_days * _DAY_MS, compact=True),
    )
