"""The offline judge: a request in, scores with their reasons out, by rules alone. No key, no network.

It finds what can be found by reading: figures that contradict the document, promises that it forbids,
personal data, tool calls with invented arguments. What needs understanding it leaves to people and to a model,
and says so by abstaining.
"""

import hashlib
from collections.abc import Callable

from monitor.conversations.conversation import Conversation
from monitor.intake.redaction import REGION
from monitor.judging.exchange import Exchange, exchanges
from monitor.judging.facts import score_facts
from monitor.judging.judge import JudgeReply, Scored
from monitor.judging.judgment import DimensionScore, JudgeIdentity, JudgeRequest, Quote
from monitor.judging.next_steps import score_next_steps
from monitor.judging.promises import score_promises
from monitor.judging.references import Document, ReferenceSource
from monitor.judging.rubric import Rubric, TargetKind
from monitor.judging.safety import score_safety
from monitor.judging.statements import Facts, read_document
from monitor.judging.tool_calls import score_tool_calls
from monitor.judging.wording import plain

RULES_VERSION = "1"
"""Raised by hand when a rule changes what is scored: it starts a new series."""
BACKEND = "rules"

_Rule = Callable[[Exchange, tuple[Document, ...], tuple[Facts, ...], str], DimensionScore]
_RULES: dict[str, _Rule] = {
    "factual_correctness": lambda exchange, _, facts, __: score_facts(exchange, facts),
    "policy_adherence": lambda exchange, _, facts, __: score_promises(exchange, facts),
    "actionability": lambda exchange, *_: score_next_steps(exchange),
    "safety": lambda exchange, documents, _, region: score_safety(exchange, documents, region=region),
    "tool_calls": lambda exchange, *_: score_tool_calls(exchange),
}
_LAST_COUNTS = frozenset({"actionability"})
"""Dimensions in which a conversation is as good as its last turn of substance; in all others as its worst."""


class RuleJudge:
    """Score by rules; the same request always has the same answer."""

    def __init__(
        self, rubric: Rubric, references: ReferenceSource, *, stage: str = "rules", region: str = REGION
    ) -> None:
        """Take the region in which phone numbers were masked, so that those of documents are recognised."""
        self._region = region
        self._rubric = rubric
        self._references = references
        parts = (stage, BACKEND, RULES_VERSION, rubric.version)
        version = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=6).hexdigest()
        self._identity = JudgeIdentity(
            stage=stage, backend=BACKEND, version=version, model_asked=BACKEND, model_answered=BACKEND
        )

    @property
    def identity(self) -> JudgeIdentity:
        """Return who judges, before any call."""
        return self._identity

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Score one target on all its dimensions."""
        wanted = {
            reference.id: reference for turn in request.conversation.turns for reference in turn.references
        }
        documents = await self._references.find(tuple(wanted.values())) if wanted else ()
        by_id = {document.id: document for document in documents}
        return Scored(scores=self._scores(request, by_id), model_answered=BACKEND)

    async def close(self) -> None:
        """Hold nothing, so there is nothing to let go of."""

    def _scores(self, request: JudgeRequest, documents: dict[str, Document]) -> tuple[DimensionScore, ...]:
        kind = request.target.kind
        judged = _judged(request.conversation, request.target.turn_event_id)
        names = [dimension.name for dimension in self._rubric.for_target(kind)]
        whole = kind is TargetKind.CONVERSATION
        return tuple(_dimension(name, judged, documents, self._region, whole=whole) for name in names)


def _judged(conversation: Conversation, turn_event_id: str | None) -> tuple[Exchange, ...]:
    told = exchanges(conversation)
    return told if turn_event_id is None else tuple(e for e in told if e.turn.event_id == turn_event_id)


def _dimension(
    name: str, judged: tuple[Exchange, ...], documents: dict[str, Document], region: str, *, whole: bool
) -> DimensionScore:
    rule = _RULES.get(name)
    if rule is None:
        return DimensionScore(
            dimension=name, score=None, reason="the offline judge has no rule for this dimension"
        )
    scores = []
    for exchange in judged:
        named = tuple(documents[r.id] for r in exchange.turn.references if r.id in documents)
        score = rule(exchange, named, tuple(read_document(document.text) for document in named), region)
        scores.append(_with_original_quotes(score, exchange.turn.answer, named))
    if not scores:
        return DimensionScore(dimension=name, score=None, reason="the judged turn is not in the conversation")
    return _combined(name, scores) if whole else scores[0]


def _with_original_quotes(
    score: DimensionScore, answer: str, documents: tuple[Document, ...]
) -> DimensionScore:
    if not score.quotes:
        return score
    sources = {"answer": (answer,), "reference": tuple(document.text for document in documents)}
    quotes = tuple(_original(quote, sources.get(quote.source, ())) for quote in score.quotes)
    return DimensionScore(
        dimension=score.dimension, score=score.score, reason=score.reason, quotes=quotes, kind=score.kind
    )


def _original(quote: Quote, texts: tuple[str, ...]) -> Quote:
    """Return the words as they stand in the source; a sentence that was wrapped there is not verbatim."""
    for text in texts:
        position = plain(text).find(quote.text)
        if position >= 0:
            return Quote(text=text[position : position + len(quote.text)], source=quote.source)
    return Quote(text=quote.text, source=quote.source, verbatim=not texts)


def _combined(name: str, scores: list[DimensionScore]) -> DimensionScore:
    """Bring the turns of a conversation to one score: the worst, or the last that has one."""
    scored = [(number, score) for number, score in enumerate(scores, start=1) if score.score is not None]
    if not scored:
        return scores[-1].model_copy(
            update={"reason": f"all {len(scores)} turns abstain; the last: {scores[-1].reason}"}
        )
    if name in _LAST_COUNTS:
        number, chosen = scored[-1]
        rule = "last turn of substance"
    else:
        number, chosen = min(scored, key=lambda each: each[1].score or 0)
        rule = "worst turn"
    reason = f"{rule} ({number} of {len(scores)}): {chosen.reason}"
    return DimensionScore(
        dimension=name, score=chosen.score, reason=reason, quotes=chosen.quotes, kind=chosen.kind
    )
