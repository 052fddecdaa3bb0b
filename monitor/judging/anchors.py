"""The anchor set: frozen conversations, judged again and again, so that a judge's drift is told from an assistant's.

An anchor's first score under a judge and a rubric is its pinned one; later scores are held against it (`drift.py`).
None of them is traffic: they enter no window, no sample and no coverage.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from monitor.conversations.conversation import Conversation
from monitor.conversations.transcripts import conversation_of
from monitor.intake.decode import Fault, Rejected
from monitor.intake.event import Moment, Value
from monitor.intake.redaction import REGION
from monitor.judging.health import Share
from monitor.judging.judgment import JudgeRequest, Judgment, Target
from monitor.judging.rubric import PASS_MIN, SCORE_MAX, SCORE_MIN, TargetKind

TENANT = "anchors"
"""Whose budget of a day they spend."""
_START = datetime(2026, 1, 5, tzinfo=UTC)
"""Of conversations without times; fixed, for the judge may be shown it."""
_Score = Annotated[int, Field(ge=SCORE_MIN, le=SCORE_MAX)]


class AnchorPolicy(BaseModel):
    """Which anchors are judged how often, and from when on their shift counts as a drift."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str = "anchors.jsonl"
    every_minutes: Annotated[int, Field(ge=5, le=10_080)] | None = 60
    per_round: Annotated[int, Field(ge=1, le=1000)] = 64
    window_hours: Annotated[int, Field(ge=1, le=168)] = 24
    recent_hours: Annotated[int, Field(ge=1, le=168)] = 3
    min_anchors: Annotated[int, Field(ge=5)] = 20
    floor_points: Annotated[float, Field(gt=0, le=4)] = 0.15


class _Line(BaseModel):
    """What an anchor's line says beside the conversation."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    target: TargetKind = TargetKind.CONVERSATION
    references: tuple[str | dict[str, Any], ...] = ()
    expected: dict[str, _Score | None] = {}


_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


class Anchor(Value):
    """One frozen conversation."""

    id: str
    key: str
    """Its id and the hash of its content: a changed conversation is another anchor, and pinned anew."""
    conversation: Conversation
    kind: TargetKind
    expected: dict[str, int | None]
    """What its author would have scored; shown beside the judge's scores, and never to the judge."""

    def request(self, *, number: int, now: datetime) -> JudgeRequest:
        """Return what is asked of a judge in a round; each round is a judgment of its own."""
        turn = self.conversation.last_answered
        if turn is None:
            raise ValueError(f"the anchor {self.id} has no answer; `read_anchors` lets none of those in")
        return JudgeRequest(
            target=Target(
                kind=self.kind,
                conversation_id=self.conversation.id,
                revision=number + 1,
                turn_event_id=turn.event_id if self.kind is TargetKind.TURN else None,
            ),
            conversation=self.conversation,
            rate=None,
            observed_at=turn.answered_at or turn.occurred_at,
            requested_at=now,
        )


class AnchorScore(Value):
    """What a judge said of one anchor in one round."""

    anchor: str
    """Its key."""
    round: int
    at: Moment
    """By the deployment's clock."""
    scores: dict[str, int | None]
    """By dimension; None for an abstention."""


class AnchorReader(Protocol):
    """Whoever knows the anchors' scores, by judge and rubric; raises StoreUnavailable."""

    async def pins(self, *, judge_version: str, rubric_version: str) -> Mapping[str, AnchorScore]:
        """Return the pinned scores by anchor."""
        ...

    async def scores(
        self, start: datetime, end: datetime, *, judge_version: str, rubric_version: str
    ) -> Sequence[AnchorScore]:
        """Return the scores of [start, end) that are not pinned, by time; older than 90 days are gone."""
        ...


class AnchorStore(AnchorReader, Protocol):
    """Where anchors' scores are kept. Safe to repeat; raises StoreUnavailable."""

    async def claim(self, number: int, *, judge_version: str, rubric_version: str) -> bool:
        """Take a round; False if another worker has it, or had it within the last day."""
        ...

    async def add(self, score: AnchorScore, *, judge_version: str, rubric_version: str) -> bool:
        """Keep a score; return whether it is the anchor's first, and so its pinned one."""
        ...

    async def last_rounds(self, *, judge_version: str, rubric_version: str) -> Mapping[str, int]:
        """Return by anchor in which round it was last scored."""
        ...

    async def repin(self, pins: Sequence[AnchorScore], *, judge_version: str, rubric_version: str) -> None:
        """Put these in the place of all pinned scores."""
        ...


def read_anchors(lines: Iterable[str], *, region: str = REGION) -> Iterator[tuple[int, Anchor | Rejected]]:
    """Read anchors from JSON lines, each with its line number; what is wrong with a line is told in its place.

    A line is a conversation in the chat shape with `target`, `references` and `expected`; or a document,
    `{"document": "returns", "text": "..."}`, that later lines name in their references.
    """
    documents: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, Rejected(fault=Fault.UNDECODABLE, reason=f"not JSON: {error}")
            continue
        if isinstance(record, dict) and isinstance(record.get("document"), str):
            documents[record["document"]] = str(record.get("text", ""))
            continue
        yield number, _anchor(record, documents, region)


def round_of(moment: datetime, every_minutes: int) -> int:
    """Return the number of the round that a moment lies in."""
    return int(moment.timestamp() // (every_minutes * 60))


def due(anchors: Sequence[Anchor], last: Mapping[str, int], *, number: int, per_round: int) -> list[Anchor]:
    """Return the anchors that a round has to judge.

    Each round has a part of the set in turn. What was missed since, by a round that did not take place or a judge
    that failed, is due as well; so the first round of a judge takes them all, and none takes one twice.
    """
    parts = max(1, -(-len(anchors) // per_round))
    return [
        anchor
        for place, anchor in enumerate(anchors)
        # The newest round up to this one that has this part.
        if last.get(anchor.key, -1) < number - (number - place) % parts
    ]


def score_of(anchor: Anchor, judgment: Judgment, *, number: int, at: datetime) -> AnchorScore:
    """Return what is kept of a judgment: figures, and no words."""
    scores = {score.dimension: score.score for score in judgment.scores}
    return AnchorScore(anchor=anchor.key, round=number, at=at, scores=scores)


def newest(pins: Mapping[str, AnchorScore], scores: Iterable[AnchorScore]) -> list[AnchorScore]:
    """Return the newest score of each anchor, its pinned one where there is no other."""
    found = dict(pins)
    for score in scores:
        if score.anchor not in found or score.round > found[score.anchor].round:
            found[score.anchor] = score
    return [found[anchor] for anchor in sorted(found)]


def as_expected(anchors: Iterable[Anchor], scores: Iterable[AnchorScore]) -> dict[str, Share]:
    """Return by dimension how many anchors pass or fail (4) as their author wrote; abstentions count nowhere."""
    given = {score.anchor: score.scores for score in scores}
    same: defaultdict[str, list[bool]] = defaultdict(list)
    for anchor in anchors:
        for dimension, wanted in anchor.expected.items():
            score = given.get(anchor.key, {}).get(dimension)
            if wanted is not None and score is not None:
                same[dimension].append((score >= PASS_MIN) == (wanted >= PASS_MIN))
    return {name: Share(part=sum(told), of=len(told)) for name, told in sorted(same.items())}


def _anchor(record: Any, documents: Mapping[str, str], region: str) -> Anchor | Rejected:
    if not isinstance(record, dict):
        return _invalid("not an object with `id` and `messages`")
    try:
        line = _LINE.validate_python(record)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        return _invalid(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}")
    unknown = [name for name in line.references if isinstance(name, str) and name not in documents]
    if unknown:
        return _invalid(f"references: no line above has the document {unknown[0]}")
    # An id that no folder has, or the anchor would change with the document in it.
    references = [
        {"id": f"anchor-{one}", "text": documents[one]} if isinstance(one, str) else one
        for one in line.references
    ]
    told = dict(record) | {"references": references, "tenant": TENANT}
    conversation = conversation_of(told, start=_START, region=region)
    if isinstance(conversation, Rejected):
        return conversation
    if conversation.last_answered is None:
        return _invalid("no answer of an assistant that could be judged")
    content = json.dumps([record["messages"], references, line.target], sort_keys=True)
    digest = hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
    return Anchor(
        id=conversation.id,
        key=f"{conversation.id}~{digest}",
        conversation=conversation.model_copy(update={"id": f"anchor/{conversation.id}~{digest}"}),
        kind=line.target,
        expected=line.expected,
    )


def _invalid(reason: str) -> Rejected:
    return Rejected(fault=Fault.INVALID, reason=reason)
