"""A reference document in, its statements out: what each says, in figures, forbids or requires."""

import math
import re
from functools import lru_cache
from typing import NamedTuple

from monitor.judging.claims import Figure, figures
from monitor.judging.wording import Sentence, content, plain, sentences, spoken, word_set

CACHED_DOCUMENTS = 256
"""How many documents stay parsed in a process."""


class Ban(NamedTuple):
    """Something that must not be promised or done."""

    words: frozenset[str]
    """All of them together make the forbidden thing."""
    case: frozenset[str] = frozenset()
    """Only in this case; at least one of these words must be there too. Empty means always."""
    act: frozenset[str] = frozenset()
    """Those of the words that say what is done; without them nothing is."""


class Statement(NamedTuple):
    """One sentence or bullet of a document, with the words of its heading."""

    text: str
    words: frozenset[str]
    heading: frozenset[str]
    figures: tuple[Figure, ...]
    bans: tuple[Ban, ...] = ()
    requires: bool = False
    """It names a condition that someone has to meet."""


class Facts(NamedTuple):
    """What a document says, how telling each of its words is, and where it stands."""

    statements: tuple[Statement, ...]
    weights: dict[str, float]
    places: dict[str, tuple[tuple[int, float], ...]]
    """Statements by word, each with what the word weighs there; words of a heading count half."""

    def overlaps(self, words: frozenset[str]) -> list[float]:
        """Weigh for every statement the words that a text shares with it."""
        shared = [0.0] * len(self.statements)
        for word in words:
            for position, weight in self.places.get(word, ()):
                shared[position] += weight
        return shared


_NEVER = re.compile(
    r"\b(?:never|must not|mustn't|may not|should not|shouldn't|do not|don't|not allowed to|not permitted to"
    r"|cannot|can't|can not|will not|won't)\s+(?P<act>.+)",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"^(?P<what>.+?)\b(?:cannot|can't|can not|may not|must not|are never|is never|(?:is|are) no longer)\b"
    r"(?P<act>.*)$",
    re.IGNORECASE,
)
_EXCLUDED = re.compile(
    r"^(?P<what>.+?)\b(?<!that )(?<!which )(?:is|are)\s+(?:excluded|ineligible|prohibited|forbidden"
    r"|not \w+)\b(?P<act>.*)$",
    re.IGNORECASE,
)
_NOT_COVERED = re.compile(r"^\W*not (?P<head>\w+)\W*:(?P<list>.+)", re.IGNORECASE)
_BAD_HEADING = re.compile(
    r"\b(?:cannot|can't|excluded|exclusions|ineligible|not (?:accepted|allowed|covered|eligible|included"
    r"|possible))\b",
    re.IGNORECASE,
)
_ONLY = re.compile(
    r"\bonly (?:if|while|when|after|within|for|with|on)\b|\bmust\b|\bneed(?:s|ed)?\b|\brequired?\b"
    r"|\bhave to\b|\bwith \d"
)
_SUBJECT = re.compile(r"^(?:the )?(?:assistant|agents?|bot|we|you) (?=\w)", re.IGNORECASE)
_VERB = re.compile(
    r"\s*(?:add|accept|approve|book|change|combine|confirm|extend|give|grant|guarantee|make|mark|offer"
    r"|promise|refund"
    r"|remove|repeat|replace|send|switch|waive|unlock|cancel|reserve)\b",
    re.IGNORECASE,
)
_CASE = re.compile(
    r"\b(?:outside|beyond|unless|without|except|if|when|while|(?<!ask )(?<!wait )for|that (?:is|are|was"
    r"|were|has|have)|after)\b(?P<case>.*)$",
    re.IGNORECASE,
)
_ANYWAY = re.compile(r"\b(?:before|until|in the chat|of any kind|at any time|by itself)\b.*$", re.IGNORECASE)
_OR = re.compile(r",\s*(?:and|or)\s+|,|;|\bor\b|\band\b", re.IGNORECASE)
_TOO_GENERAL = word_set(
    "assistant agent chat kind person product thing anything offer say tell give provide anyone someone allow"
    " possible state available happen user api tool database sure just"
)
_WEAK = word_set("offer provide return use change open order request")
_ALONE = word_set("exception compensate waive unquestioned")
"""Words that are a forbidden thing by themselves."""
_FEW, _MANY = 2, 7
_RAREST = 3.5
"""The weight of a word that stands in one statement only; the thresholds of the rules count in it."""


@lru_cache(maxsize=CACHED_DOCUMENTS)
def read_document(text: str) -> Facts:
    """Read a document once; the same text is read only once."""
    statements: list[Statement] = []
    heading = ""
    for line in _lines(plain(text)):
        if line.lstrip().startswith("#"):
            heading = line.lstrip("# \t")
            continue
        statements.extend(_statement(sentence, heading) for sentence in sentences(line))
    weights = _weights(statements)
    return Facts(tuple(statements), weights, _index(statements, weights))


def _lines(text: str) -> list[str]:
    # A paragraph that is wrapped over several lines is one; bullets, headings and blank lines begin anew.
    lines: list[str] = []
    for line in text.splitlines():
        begins = (
            not line.strip() or re.match(r"\s*(?:[-*•#]|\d+[.)])", line) or not lines or not lines[-1].strip()
        )
        if begins or lines[-1].lstrip().startswith("#"):
            lines.append(line)
        else:
            lines[-1] += " " + line.strip()
    return lines


def _statement(sentence: Sentence, heading: str) -> Statement:
    text = sentence.text
    return Statement(
        text=text,
        words=content(text),
        heading=content(heading),
        figures=figures(text),
        bans=tuple(_bans(text, heading)),
        requires=bool(_ONLY.search(text)),
    )


def _weights(statements: list[Statement]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for statement in statements:
        for word in statement.words | statement.heading:
            counts[word] = counts.get(word, 0) + 1
    total = len(statements)
    # A word of one statement alone weighs the same in a short document as in a long one.
    scale = _RAREST / math.log(1 + total) if total else 0.0
    return {word: scale * math.log(1 + total / count) for word, count in counts.items()}


def _index(
    statements: list[Statement], weights: dict[str, float]
) -> dict[str, tuple[tuple[int, float], ...]]:
    index: dict[str, list[tuple[int, float]]] = {}
    for position, statement in enumerate(statements):
        for word in statement.words:
            index.setdefault(word, []).append((position, weights[word]))
        for word in statement.heading - statement.words:
            index.setdefault(word, []).append((position, weights[word] / 2))
    return {word: tuple(places) for word, places in index.items()}


def _bans(text: str, heading: str) -> list[Ban]:
    if re.match(r"if\b", text, re.IGNORECASE):
        return []
    listed = _NOT_COVERED.search(text)
    if listed:
        return _of_list(content(listed["head"]) | {"warranty"}, listed["list"])
    never = _NEVER.match(_SUBJECT.sub("", text))
    if never:
        return _of_act(never["act"])
    if _BAD_HEADING.search(heading):
        return _of_list(content(heading) - _TOO_GENERAL, text)
    passive = _EXCLUDED.search(text) or _PASSIVE.search(text)
    if passive and not _ONLY.search(text):
        return _of_fact(passive["what"], passive["act"])
    return []


def _of_act(act: str) -> list[Ban]:
    """Read `promise a refund or a repair before the inspection`: the first verb governs each alternative.

    A verb alone (`cancel or change an order`) shares the object, a shared predicate (`a cracked frame or
    a swollen battery is fine to use`) goes with each subject.
    """
    act, case = _split_case(_ANYWAY.sub("", re.split(r"[;:]", act)[0]))
    act, _, predicate = act.partition(" is ") if " is " in act else act.partition(" are ")
    pieces = [piece for piece in _OR.split(act) if piece.strip()]
    if not pieces:
        return []
    shared = content(predicate) - _TOO_GENERAL
    head = content(" ".join(spoken(pieces[0]).split()[:1])) - _TOO_GENERAL
    target = content(" ".join(spoken(pieces[-1]).split()[1:])) - _TOO_GENERAL
    bans = []
    for piece in pieces:
        words = (content(piece) - _TOO_GENERAL) | shared
        if len(piece.split()) <= _FEW and len(words) == 1 and len(pieces) > 1:
            words |= target
        elif not _VERB.match(piece):
            words |= head
        bans += _worth(words, case, shared or head)
    return bans


def _of_list(head: frozenset[str], items: str) -> list[Ban]:
    bans = []
    for listed in _OR.split(items):
        item, case = _split_case(listed)
        words = content(item) - _TOO_GENERAL
        if words and len(words) <= _MANY:
            bans.append(Ban(words | head, case, head - {"warranty"}))
    return bans


def _of_fact(what: str, act: str) -> list[Ban]:
    act, case = _split_case(_ANYWAY.sub("", act))
    done = content(act) - _TOO_GENERAL
    return [
        ban for piece in _OR.split(what) for ban in _worth((content(piece) - _TOO_GENERAL) | done, case, done)
    ]


def _split_case(text: str) -> tuple[str, frozenset[str]]:
    match = _CASE.search(text)
    if not match:
        return text, frozenset()
    return text[: match.start()], content(match.group()) - _TOO_GENERAL


def _worth(words: frozenset[str], case: frozenset[str], act: frozenset[str]) -> list[Ban]:
    if len(words) > _MANY:
        return []
    telling = words & _ALONE or (len(words) >= _FEW and not words <= _WEAK) or (words and case)
    return [Ban(words, case, act & words)] if telling else []
