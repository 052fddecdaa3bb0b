"""A dead letter in, the message that puts it back where it came from out; sending it twice changes nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from monitor.intake.dead_letter import DeadLetter
from monitor.intake.event import Value
from monitor.judging.judgment import JudgeRequest
from monitor.publishing import Outgoing
from monitor.topics import JUDGE_REQUESTS, JUDGMENTS, SAMPLED_EVENTS, SOURCES

CAME_FROM: Mapping[str, Sequence[str]] = {
    "sample": SOURCES,
    "assemble": (SAMPLED_EVENTS,),
    "judge": (JUDGE_REQUESTS,),
    "aggregate": (JUDGMENTS,),
}
"""The topics that a stage's dead letters come from."""


class NoWayBack(Value):
    """A dead letter that cannot be retried, and why."""

    id: str
    reason: str


def way_back(letter: DeadLetter, *, prefix: str, now: datetime) -> Outgoing | NoWayBack:
    """Return the message to send again: the same bytes, key, headers and partition.

    Events, judge requests and judgments carry their ids, so every stage recognises what it has had already.
    """
    topic = letter.position.topic
    known = [prefix + name for name in CAME_FROM.get(letter.stage, ())]
    if topic not in known:
        reason = f"the stage {letter.stage} reads {', '.join(known) or 'nothing that is known'}, not {topic}"
        return NoWayBack(id=letter.id, reason=reason)
    if letter.is_cut:
        reason = (
            f"of its {letter.size} bytes only {len(letter.value)} were kept; send it again from its producer"
        )
        return NoWayBack(id=letter.id, reason=reason)
    value = _asked_anew(letter.value, now) if letter.stage == "judge" else letter.value
    return Outgoing(topic, letter.key, value, letter.position.partition, letter.headers)


def _asked_anew(value: bytes, now: datetime) -> bytes:
    """Return a judge request with the time of its retry: by its old one it would only expire again."""
    try:
        request = JudgeRequest.model_validate_json(value)
    except ValueError:
        return value
    return request.model_copy(update={"requested_at": now}).model_dump_json().encode()
