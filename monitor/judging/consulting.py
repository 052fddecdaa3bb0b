"""A judge with documents: each as it was in force when the turn was answered, and what is missing said.

The documents are put into the request, so that every judge finds them there. A dimension that needs a document
abstains where one is missing. A score that fails by the document in force and passes by the one that the
assistant had retrieved is a `stale_index`: the answer was right by what the index still said.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monitor.conversations.conversation import Turn
from monitor.intake.event import Reference
from monitor.judging.judge import Judge, JudgeReply, NotScored, Scored
from monitor.judging.judgment import DimensionScore, DocumentVersion, JudgeIdentity, JudgeRequest, Usage
from monitor.judging.references import Document, DocumentSource, NoDocument, digest
from monitor.judging.rubric import PASS_MIN

STALE_INDEX = "stale_index"
"""The kind of a failing score that the version which the assistant had retrieved would have passed."""
Passages = Callable[[Document, str], Document]
"""Cuts a large document down to what matters to a text; a small one it returns as it is."""


@dataclass(frozen=True)
class _Consulted:
    request: JudgeRequest
    """With the documents in force in it."""
    versions: tuple[DocumentVersion, ...]
    as_retrieved: JudgeRequest | None
    """With what the assistant had retrieved, where that differs."""

    @property
    def missing(self) -> tuple[DocumentVersion, ...]:
        return tuple(one for one in self.versions if one.missing is not None)


class Consulting:
    """A judge that is given its documents."""

    def __init__(
        self,
        judge: Judge,
        source: DocumentSource,
        *,
        grounded: tuple[str, ...],
        passages: Passages | None = None,
        asked: str = "",
    ) -> None:
        """Take the judge, the documents, and the dimensions that cannot be judged without them.

        `asked` is what changes the question: it becomes a part of the judge's version.
        """
        self._judge = judge
        self._source = source
        self._grounded = frozenset(grounded)
        self._passages = passages
        self._asked = asked

    @property
    def identity(self) -> JudgeIdentity:
        """Return who judges, before any call."""
        identity = self._judge.identity
        if not self._asked:
            return identity
        parts = f"{identity.version}\x1f{self._asked}"
        version = hashlib.blake2b(parts.encode(), digest_size=6).hexdigest()
        return identity.model_copy(update={"version": version})

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Judge with the documents in force; a second time by the retrieved ones where a score fails."""
        consulted = await self._consulted(request)
        reply = await self._judge.judge(consulted.request)
        if isinstance(reply, Scored):
            reply = self._abstaining(reply, consulted.missing)
            if consulted.as_retrieved is not None and any(map(self._fails, reply.scores)):
                reply = self._compared(reply, await self._judge.judge(consulted.as_retrieved), consulted)
        trace = reply.trace.model_copy(update={"references": consulted.versions})
        return reply.model_copy(update={"trace": trace})

    async def close(self) -> None:
        """Let go of the judge's connections and the source's."""
        await self._judge.close()
        await self._source.close()

    async def _consulted(self, request: JudgeRequest) -> _Consulted:
        turns = [request.turn] if request.turn else request.conversation.turns
        judged = {id(turn) for turn in turns}
        said = "\n".join(m.content for turn in turns for m in turn.messages if m.content)
        now: list[Turn] = []
        then: list[Turn] = []
        versions: dict[tuple[str, str | None], DocumentVersion] = {}
        differs = False
        for turn in request.conversation.turns:
            if id(turn) not in judged or not turn.references:
                now.append(_with(turn, ()))
                then.append(_with(turn, ()))
                continue
            current, retrieved = [], []
            for reference in turn.references:
                found, before = await self._looked_up(reference, turn)
                told = _version(reference, found)
                if isinstance(found, Document):
                    shown = self._shown(found, said)
                    told = told.model_copy(update={"cut": shown.text != found.text})
                    current.append(_inline(shown))
                if before is not None:
                    differs = True
                    retrieved.append(_inline(self._shown(before, said)))
                elif isinstance(found, Document):
                    retrieved.append(_inline(self._shown(found, said)))
                versions[told.id, told.version] = told
            now.append(_with(turn, current))
            then.append(_with(turn, retrieved))
        return _Consulted(
            request=_asking(request, now),
            versions=tuple(versions.values()),
            as_retrieved=_asking(request, then) if differs else None,
        )

    async def _looked_up(
        self, reference: Reference, turn: Turn
    ) -> tuple[Document | NoDocument, Document | None]:
        """Return the document in force, and the one that the assistant had, if it is another."""
        at = turn.answered_at or turn.occurred_at
        found = await self._source.fetch(reference, at=at)
        if isinstance(found, NoDocument):
            return found, None
        if reference.text is not None:
            had: Document | NoDocument = Document.of(reference.id, reference.text, reference.version)
        elif reference.version is not None and reference.version != found.version:
            had = await self._source.fetch(reference, at=at, version=reference.version)
        else:
            return found, None
        differs = isinstance(had, Document) and digest(had.text) != digest(found.text)
        return found, had if differs and isinstance(had, Document) else None

    def _shown(self, document: Document, said: str) -> Document:
        return document if self._passages is None else self._passages(document, said)

    def _fails(self, score: DimensionScore) -> bool:
        return score.dimension in self._grounded and score.score is not None and score.score < PASS_MIN

    def _abstaining(self, reply: Scored, missing: tuple[DocumentVersion, ...]) -> Scored:
        if not missing:
            return reply
        names = ", ".join(f"{one.id} ({one.missing})" for one in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""  # noqa: PLR2004 - as many as are named
        scores = tuple(
            DimensionScore(
                dimension=score.dimension, score=None, reason=f"a document is missing: {names}{more}"
            )
            if score.dimension in self._grounded and score.score is not None and not _has_proof(score)
            else score
            for score in reply.scores
        )
        return reply.model_copy(update={"scores": scores})

    def _compared(self, reply: Scored, earlier: JudgeReply, consulted: _Consulted) -> Scored:
        usage = _added(reply.usage, earlier.usage)
        if isinstance(earlier, NotScored):
            return reply.model_copy(update={"usage": usage})
        passed = {
            score.dimension: score.score
            for score in earlier.scores
            if score.score is not None and score.score >= PASS_MIN
        }
        scores = tuple(
            _stale(score, passed, consulted.versions) if self._fails(score) else score
            for score in reply.scores
        )
        return reply.model_copy(update={"scores": scores, "usage": usage})


def _stale(
    score: DimensionScore, passed: Mapping[str, int], versions: tuple[DocumentVersion, ...]
) -> DimensionScore:
    if score.dimension not in passed:
        return score
    named = ", ".join(
        f"{one.id} {one.retrieved or 'as in the event'} (in force: {one.version})"
        for one in versions
        if one.version is not None and one.retrieved != one.version
    )
    reason = (
        f"{score.reason}; by the version that the assistant had retrieved it scores {passed[score.dimension]}, "
        f"so the index is stale: {named}"
    )
    return score.model_copy(update={"kind": STALE_INDEX, "reason": reason})


def _has_proof(score: DimensionScore) -> bool:
    """Tell whether a document that is there speaks for the score, word for word."""
    return any(quote.source == "reference" and quote.verbatim for quote in score.quotes)


def _version(reference: Reference, found: Document | NoDocument) -> DocumentVersion:
    if isinstance(found, NoDocument):
        missing = f"{found.gap}: {found.reason}"
        return DocumentVersion(id=reference.id, retrieved=reference.version, missing=missing)
    return DocumentVersion(
        id=reference.id,
        version=found.version,
        digest=digest(found.text),
        retrieved=reference.version,
    )


def _inline(document: Document) -> Reference:
    return Reference.model_construct(id=document.id, version=document.version, text=document.text)


def _with(turn: Turn, references: tuple[Reference, ...] | list[Reference]) -> Turn:
    return turn.model_copy(update={"references": tuple(references)})


def _asking(request: JudgeRequest, turns: list[Turn]) -> JudgeRequest:
    conversation = request.conversation.model_copy(update={"turns": tuple(turns)})
    return request.model_copy(update={"conversation": conversation})


def _added(one: Usage, other: Usage) -> Usage:
    cost = None if one.cost is None and other.cost is None else (one.cost or 0) + (other.cost or 0)
    return one.model_copy(
        update={
            "latency_seconds": one.latency_seconds + other.latency_seconds,
            "waited_seconds": one.waited_seconds + other.waited_seconds,
            "prompt_tokens": one.prompt_tokens + other.prompt_tokens,
            "completion_tokens": one.completion_tokens + other.completion_tokens,
            "attempts": one.attempts + other.attempts,
            "cost": cost,
        }
    )
