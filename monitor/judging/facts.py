"""An answer's figures held against documents, tool results and the user's own words: factual correctness."""

from monitor.judging.claims import Figure, FigureKind, figures
from monitor.judging.exchange import Exchange, small_talk
from monitor.judging.judgment import DimensionScore, Quote
from monitor.judging.known import Contradiction, Known
from monitor.judging.statements import Facts

DIMENSION = "factual_correctness"
_TELLING = frozenset(
    {FigureKind.DURATION, FigureKind.MONEY, FigureKind.PERCENT, FigureKind.DATE, FigureKind.TIME}
)
"""Kinds that are claims wherever they stand; a bare count of things may be a list's length."""


def score_facts(exchange: Exchange, documents: tuple[Facts, ...]) -> DimensionScore:
    """Score one answer; it abstains where there is nothing to check or nothing to check against."""
    if not exchange.answer:
        return _abstain("no answer to check")
    if not documents and not exchange.tools_said:
        return _abstain("no reference document and no tool result to check against")
    if small_talk(exchange):
        return _abstain("small talk; no fact to check")
    return _checked(exchange, documents)


def _checked(exchange: Exchange, documents: tuple[Facts, ...]) -> DimensionScore:
    known = Known.of(exchange, documents)
    contradictions, unsupported, supported = [], [], 0
    for claim in figures(exchange.answer):
        if claim.kind is FigureKind.NUMBER:
            continue
        against = known.contradiction(claim, exchange.answer)
        if against:
            contradictions.append(against)
        elif known.supports(claim):
            supported += 1
        elif claim.kind in _TELLING:
            unsupported.append(claim)
    if contradictions:
        return _contradicted(contradictions)
    if unsupported:
        return _unsupported(unsupported, documented=bool(documents))
    if not supported:
        return _abstain("the answer states no figure that could be checked")
    return DimensionScore(
        dimension=DIMENSION, score=5, reason=f"all {supported} checked figures are in the sources"
    )


def _abstain(reason: str) -> DimensionScore:
    return DimensionScore(dimension=DIMENSION, score=None, reason=reason)


def _contradicted(found: list[Contradiction]) -> DimensionScore:
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    says = f"'{first.figure.text}'" if first.figure.text in first.statement.text else "otherwise"
    return DimensionScore(
        dimension=DIMENSION,
        score=1,
        reason=f"the answer says '{first.claim.text}' where the document says {says}{more}",
        quotes=(
            Quote(text=first.sentence, source="answer"),
            Quote(text=first.statement.text, source="reference"),
        ),
        kind=f"wrong_{first.claim.kind}",
    )


def _unsupported(claims: list[Figure], *, documented: bool) -> DimensionScore:
    where = "the documents, the tool results" if documented else "the tool results"
    named = ", ".join(f"'{claim.text}'" for claim in claims[:3])
    return DimensionScore(
        dimension=DIMENSION,
        score=3,
        reason=f"{named} is neither in {where} nor in what the user said",
        quotes=tuple(Quote(text=claim.text, source="answer") for claim in claims[:3]),
        kind=f"unsupported_{claims[0].kind}",
    )
