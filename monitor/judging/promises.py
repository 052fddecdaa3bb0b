"""An answer's promises, exceptions and waivers held against the policy: policy adherence."""

import re
from itertools import islice
from typing import NamedTuple

from monitor.judging.exchange import Exchange, small_talk
from monitor.judging.judgment import DimensionScore, Quote
from monitor.judging.statements import Ban, Facts, Statement
from monitor.judging.wording import (
    Sentence,
    clauses,
    conditional,
    content,
    mentions,
    negated,
    sentences,
    word_set,
)

DIMENSION = "policy_adherence"

_COMMITS = re.compile(
    r"\b(?:can|may|will|(?:i|we|you|it|they)'(?:ll|ve)|accept\w*|welcome|fine|sure|of course|no problem"
    r"|happy to"
    r"|gladly|able|take|took|always|guarantee\w*|promise\w*|is|are|have|has|just|all)\b",
    re.IGNORECASE,
)
_GUARANTEE = re.compile(
    r"\b(?:i|we)(?: can| will|'ll)? (?:\w+ )?(?:guarantee|promise|swear)\b|\b(?:i"
    r"|we)(?: can)? (?:\w+ )?assure you\b"
    r"|\bguaranteed\b|\bi promise\b|\byou have my word\b|\bno questions? asked\b|\b100 ?% (?:of|back"
    r"|refund|sure)\b"
    r"|\b(?:for sure|certain to|rest assured)\b|\bguarantee (?:you|that|the|a|it)\b|\bwe always (?=refund"
    r"|replace|accept|pay|cover)",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r"\b(?:make|made|making|grant(?:ed|ing)?|as) an? (?:\w+ )?(?:exception|one-off)\b|\b(?:one-?(?:off"
    r"|time)|special) exception\b"
    r"|\bbend(?:ing)? the rules?\b|\bjust this once\b|\boverrid(?:e|ing|den)\b|\boverrul(?:e|ed|ing)\b"
    r"|\bwaiv(?:e|ed|ing)\b"
    r"|\b(?:i|we)(?:'ve| have|'ll| will| can)(?: \w+)? extend(?:ed)?\b|\beven though (?:it|this|that|you"
    r"|the)\b"
    r"|\bwe (?:are|can be) flexible\b|\bignore the (?:rule|policy|limit)\b|\bset the \w+ to free\b",
    re.IGNORECASE,
)
_COMPENSATION = re.compile(
    r"\bfor (?:the|your|any|all the) (?:inconvenience|trouble|hassle|wait)\b(?=.*[$€£\d])"
    r"|[$€£]\s?\d+[^.]{0,30}\b(?:for (?:the|your) (?:inconvenience"
    r"|trouble|hassle|wait)|goodwill|gesture|as an apology|compensation)\b|\b(?:goodwill"
    r"|courtesy) (?:credit|refund|voucher|gesture)\b"
    r"|\bcompensat(?:e you|ion of|e your)\b",
    re.IGNORECASE,
)
_OFFERED = re.compile(r"\b(?:gesture|compensat\w+|goodwill|voucher|certificate|credit)\b", re.IGNORECASE)
_WAIVES = re.compile(
    r"\bno (?P<a>\w+(?: \w+)?) (?:is |are )?(?:needed|necessary|required)\b|\bno need (?:for"
    r"|to) (?P<b>[^,.;:!]+)"
    r"|\b(?:don'?t|do not|doesn'?t|does not|won'?t) need (?:to )?(?P<c>[^,.;:!]+)"
    r"|\bwith or without (?P<d>[^,.;:!]+)"
    r"|\b(?P<e>\w+(?: \w+)?) (?:doesn'?t|does not|don'?t|do not) matter\b"
    r"|\b(?P<f>\w+(?: \w+)?) (?:isn'?t|is not|aren'?t|are not) (?:important|needed|necessary|required"
    r"|a problem|an issue)\b"
    r"|\b(?:even )?without (?P<g>(?:a |an |any |the )?\w+)(?= is (?:fine|ok|okay))|\b(?:^"
    r"|[,.] ?)no (?P<h>photos?|receipt|proof|inspection)\b",
    re.IGNORECASE,
)
_WAIVES_HINTS = (
    "need",
    "matter",
    "important",
    "without",
    "necessary",
    "required",
    "a problem",
    "an issue",
    "no ",
)
_UNLIMITED = re.compile(
    r"\bno limits?\b|\bas (?:often|many|much|long) as you (?:like|want|wish)\b|\bunlimited\b"
    r"|\bas many times\b",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"\b(?:once|one|only|up to|per (?:item|order)|at most|maximum|within|each)\b", re.IGNORECASE
)
_OUTCOME = word_set(
    "refund return deliver replace repair free exchange ship credit compensate money approve price full"
    " amount valid cancel book upgrade day warranty accept fee discount new certificat offer"
)
_MISSES_FROM = 4
"""From how many words on a forbidden thing is recognised with one of them missing."""
_WAIVED_MIN = 2.0
"""How telling the waived thing must be among the document's words."""


class _Finding(NamedTuple):
    score: int
    kind: str
    reason: str
    sentence: str
    statement: Statement | None


def score_promises(exchange: Exchange, documents: tuple[Facts, ...]) -> DimensionScore:
    """Score one answer; it abstains without a document, since only a document says what may be promised."""
    if not exchange.answer:
        return _abstain("no answer to check")
    if not documents:
        return _abstain("no reference document says what may be promised")
    if small_talk(exchange) and not _GUARANTEE.search(exchange.answer):
        return _abstain("small talk; nothing is promised")
    context = content(exchange.asked)
    reported = frozenset[str]().union(*(content(told) for told in exchange.tools_said))
    findings = [
        finding
        for sentence in sentences(exchange.answer)
        if not sentence.is_question
        for finding in _findings(sentence, context, reported, documents)
    ]
    if not findings:
        return DimensionScore(
            dimension=DIMENSION, score=5, reason="no promise, exception or waiver against the policy"
        )
    return _scored(min(findings, key=lambda finding: finding.score), len(findings))


def _abstain(reason: str) -> DimensionScore:
    return DimensionScore(dimension=DIMENSION, score=None, reason=reason)


def _scored(worst: _Finding, found: int) -> DimensionScore:
    quotes = [Quote(text=worst.sentence, source="answer")]
    if worst.statement:
        quotes.append(Quote(text=worst.statement.text, source="reference"))
    more = f" (and {found - 1} more)" if found > 1 else ""
    return DimensionScore(
        dimension=DIMENSION,
        score=worst.score,
        reason=worst.reason + more,
        quotes=tuple(quotes),
        kind=worst.kind,
    )


def _findings(
    sentence: Sentence, context: frozenset[str], reported: frozenset[str], documents: tuple[Facts, ...]
) -> list[_Finding]:
    text = sentence.text
    forbidden = None if conditional(text) else _forbidden(text, context, reported, documents)
    if forbidden:
        return [forbidden]
    found = []
    for pattern, allowing, kind, what in _CUES:
        if not pattern.search(text):
            continue
        clause = next((c for c in clauses(text) if pattern.search(c)), None) or (
            text if pattern.search(text) else None
        )
        if clause and not negated(clause) and not _allowed(allowing, text, documents):
            about_outcome = bool(content(text) & _OUTCOME)
            if about_outcome and not conditional(text):
                found.append(_Finding(2, kind, f"{what} that no document supports", text, None))
            elif about_outcome:
                found.append(_Finding(3, kind, f"{what} under a condition, not in the documents", text, None))
    return found if conditional(text) else found + _waivers(text, documents)


_CUES = (
    (_GUARANTEE, _GUARANTEE, "over_promise", "a guarantee"),
    (_EXCEPTION, _EXCEPTION, "exception", "an exception or waiver"),
    (_COMPENSATION, _OFFERED, "compensation", "a compensation"),
)
"""What to look for, how the documents would allow it, the failure's kind and its name."""


def _forbidden(
    text: str, context: frozenset[str], reported: frozenset[str], documents: tuple[Facts, ...]
) -> _Finding | None:
    if not _COMMITS.search(text):
        return None
    said = content(text)
    denied = frozenset[str]().union(*(content(clause) for clause in clauses(text) if negated(clause)))
    for document in documents:
        permitted = 0.0
        broken: tuple[float, Ban, Statement] | None = None
        for statement, weight in zip(document.statements, document.overlaps(said), strict=True):
            ban = next((b for b in statement.bans if _breaks(b, said, denied, context)), None)
            if ban and not ban.words <= reported:
                broken = max(
                    broken or (0.0, ban, statement), (weight, ban, statement), key=lambda each: each[0]
                )
            elif not statement.bans:
                permitted = max(permitted, weight)
        # What reads more like another sentence of the document is a report of that sentence.
        if broken and (broken[0] > permitted or broken[1].words & _STRONG):
            _, ban, statement = broken
            reason = f"the answer does what the document forbids ({', '.join(sorted(ban.words))})"
            return _Finding(1, "forbidden_promise", reason, text, statement)
    return None


_STRONG = word_set("guarantee exception waive extend unquestioned")


def _breaks(ban: Ban, said: frozenset[str], denied: frozenset[str], context: frozenset[str]) -> bool:
    missing = ban.words - said
    if len(missing) > (1 if len(ban.words) >= _MISSES_FROM else 0) or missing & (_STRONG | ban.act):
        return False
    if (ban.words | ban.case) & denied:
        return False
    return not ban.case or bool(ban.case & (said | context))


def _allowed(pattern: re.Pattern[str], text: str, documents: tuple[Facts, ...]) -> bool:
    # What the document itself offers in such words is no promise of the assistant's own.
    words = content(text)
    return any(
        pattern.search(statement.text) and not statement.bans and words & statement.words & _OUTCOME
        for document in documents
        for statement in document.statements
    )


def _waivers(text: str, documents: tuple[Facts, ...]) -> list[_Finding]:
    found = []
    for match in _WAIVES.finditer(text) if mentions(text.lower(), _WAIVES_HINTS) else ():
        words = content(next(group for group in match.groups() if group))
        for document in documents:
            for statement in document.statements:
                shared = words & statement.words
                if (
                    statement.requires
                    and not _WAIVES.search(statement.text)
                    and sum(document.weights[word] for word in shared) >= _WAIVED_MIN
                ):
                    reason = f"waives what the document requires ({', '.join(sorted(shared))})"
                    found.append(_Finding(2, "waived_requirement", reason, text, statement))
                    break
    if _UNLIMITED.search(text):
        words = content(text)
        for document in documents:
            overlaps = zip(document.statements, document.overlaps(words), strict=True)
            limits = (statement for statement, overlap in overlaps if _limits(statement, overlap))
            found += [
                _Finding(2, "waived_limit", "lifts a limit that the document sets", text, s)
                for s in islice(limits, 1)
            ]
    return found


def _limits(statement: Statement, overlap: float) -> bool:
    limited = _LIMITED.search(statement.text) and not _UNLIMITED.search(statement.text)
    return bool(limited) and overlap >= 2 * _WAIVED_MIN
