"""Text in, its sentences and telling words out; two words for one thing of customer care become one."""

import re
from functools import lru_cache
from typing import NamedTuple

CACHED_TEXTS = 4096
"""How many texts stay parsed: a conversation's earlier turns are read again with each later one."""


_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2018": "'"})


def plain(text: str) -> str:
    """Return the text with plain apostrophes, every character in its place."""
    return text.translate(_APOSTROPHES)


def mentions(text: str, hints: tuple[str, ...]) -> bool:
    """Tell whether one of some substrings is there: a cheap question before a costly pattern."""
    return any(hint in text for hint in hints)


class Sentence(NamedTuple):
    """One sentence with its place in the text."""

    text: str
    start: int

    @property
    def is_question(self) -> bool:
        """Tell whether it asks."""
        return self.text.rstrip("\"'\u201d) ").endswith("?")


_BREAK = re.compile(r"(?<=[.!?])[\"\u201d')]*\s+(?=[\"\u201c(]?[A-Z0-9*\[]|[a-z]+\b)|\n+|(?<=[!?])\s+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|approx|incl|max|min|no|nr|vs|mr|mrs|ms|dr|st)\.|\bP\.O\.)$", re.IGNORECASE
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)]|#{1,6})\s+")


@lru_cache(maxsize=CACHED_TEXTS)
def sentences(text: str) -> tuple[Sentence, ...]:
    """Cut a text at full stops, question and exclamation marks and line ends; bullets lose their mark."""
    found: list[Sentence] = []
    start = 0
    for match in [*_BREAK.finditer(text), None]:
        end = match.start() if match else len(text)
        piece = text[start:end]
        if match and _ABBREVIATED.search(piece):
            continue
        bullet = _BULLET.match(piece)
        lead = bullet.end() if bullet else len(piece) - len(piece.lstrip())
        if piece[lead:].strip():
            found.append(Sentence(piece[lead:].rstrip(), start + lead))
        start = match.end() if match else end
    return tuple(found)


# Phrases that mean one word; the longest first, as the pattern tries them in order.
_PHRASES = {
    r"no questions? asked": "unquestioned",
    r"(?:send|sent|give|gave|given|bring|brought|take|took|taken|put|go|goes)(?: (?:it|them|that|this"
    r"|one))? back": "return",
    r"(?:money|price|amount|everything|all|payment|sum|it|the rest)(?: (?:comes?|goes|paid"
    r"|will come))? back": "refund",
    r"pay (?:it |you |that )?(?:out|back)": "refund",
    r"free of charge|at no (?:extra |additional )?(?:cost|charge)|without (?:any )?(?:cost|charge)"
    r"|on (?:us|the house)": "free",
    r"for free": "free",
    r"costs? (?:you )?nothing|nothing (?:will be|is|gets) deducted|(?:don't|do not"
    r"|won't) have to pay": "free",
    r"for sure|one hundred percent|100 ?%|without (?:any )?doubt|you have my word": "guarantee",
    r"make sure": "ensure",
    r"out of (?:the )?(?:warranty|guarantee)": "outside warranty",
    r"call off": "cancel",
    r"pick(?:ed)? up": "pickup",
    r"get (?:in touch|hold)": "contact",
}
_PHRASE = re.compile(r"\b(?:" + "|".join(rf"(?P<p{i}>{p})" for i, p in enumerate(_PHRASES)) + r")(?!\w)")
_PHRASE_HINTS = (" back", "free", "cost", "question", "sure", "doubt", "word", "percent", "100", "deducted")
_MORE_HINTS = ("pay ", "warranty", "guarantee", " off", " up", " touch", " hold", " charge", " us", " house")
"""Every phrase has one of these words; looking for them first is twenty times as fast as the pattern."""
_PHRASE_WORDS = tuple(_PHRASES.values())

_ONE_WORD = {
    "refund": "reimburse reimbursement repay repayment payback moneyback refundable",
    "guarantee": "promise assure assurance definitely certainly surely guaranteed guaranty",
    "exception": "override overrule exempt exemption",
    "extend": "extension prolong lengthen",
    "waive": "waiver remove forgive drop skip",
    "free": "complimentary gratis",
    "compensate": "compensation goodwill voucher inconvenience",
    "pickup": "collection collect",
    "use": "used worn wore wear",
    "replace": "replacement",
    "repair": "fix",
    "cancel": "cancellation canceled cancelled canceling cancelling cancelation",
    "deliver": "delivery arrive arrival",
    "change": "modify modification alter altered changeable amend",
    "day": "today tomorrow tonight monday tuesday wednesday thursday friday saturday sunday date",
    "photo": "picture image photograph",
    "fee": "charge cost surcharge",
    "approve": "approval authorize authorise",
    "ship": "shipment shipping dispatch",
    "parcel": "package packet",
    "inspect": "inspection",
    "product": "item article goods",
    "person": "people customer user passenger",
    "outside": "out beyond past",
    "buy": "purchase bought order",
    "unlock": "reopen",
    "pay": "payment paid",
    "claim": "case",
    "valid": "validity expire expiry expiration",
    "money": "cash",
}
_ROOT = {word: root for root, words in _ONE_WORD.items() for word in [root, *words.split()]}


def word_set(words: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(words.split())


STOP_WORDS = word_set(
    """
    a about after all already also am an and another any are aren aren't as at be because been before being
    both but by can can't cannot could couldn't d dear did didn didn't do does doesn doesn't don don't done
    down during each either even every for from get gets getting go goes going got had has hasn't have
    haven't having he hello her here hey hi his how i i'll i'm i've if in into is isn isn't it it's its just
    know let let's like ll look m made make makes many may me might more most much must my n't need needs
    never no nor not now of ok okay on one ones only onto or other our over own per please re really s same
    see shall she should shouldn't so some sorry still such sure t than thank thanks that that's the their
    them then there there's these they this those through till to too under until up us ve very via want was
    wasn wasn't we we'll we're we've well were what what's when where which while who whom whose why will
    with within won won't would wouldn't yes yet you you'll you're you've your
    """
)
_LINK = re.compile(r"https?://\S+|www\.\S+|\[[A-Z]+(?:_[0-9a-f]+)?\]")
_WORD = re.compile(r"[A-Za-zÀ-ÿ][A-Za-zÀ-ÿ']*")
_SHORT = 3


@lru_cache(maxsize=16384)
def root(word: str) -> str:
    """Bring a lower-case word to the form that it shares with its inflections and its synonyms."""
    word = word.removesuffix("'s")
    forms = [word, *_stems(word)]
    return next((_ROOT[form] for form in forms if form in _ROOT), forms[-1])


def _stems(word: str) -> list[str]:
    """Return ever shorter forms of a word; the last is the same for all its inflections."""
    if len(word) <= _SHORT:
        return []
    for ending, instead in (
        ("ies", "y"),
        ("ied", "y"),
        ("sses", "ss"),
        ("shes", "sh"),
        ("ches", "ch"),
        ("xes", "x"),
    ):
        if word.endswith(ending):
            return [word.removesuffix(ending) + instead]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return [word[:-1], *_stems(word[:-1])]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= _SHORT:
            undoubled = stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "sl" else stem
            return [stem + "e", stem, undoubled]
    return [word[:-1]] if word.endswith("e") else []


@lru_cache(maxsize=CACHED_TEXTS)
def spoken(text: str) -> str:
    """Return the text in lower case with phrases of one meaning as one word."""
    text = text.lower()
    if not mentions(text, _PHRASE_HINTS + _MORE_HINTS):
        return text
    return _PHRASE.sub(lambda match: _PHRASE_WORDS[int((match.lastgroup or "p0")[1:])], text)


@lru_cache(maxsize=CACHED_TEXTS)
def content(text: str) -> frozenset[str]:
    """Return the roots of the words that carry meaning."""
    words = _WORD.findall(spoken(_LINK.sub(" ", text)))
    return frozenset(root(word) for word in words if word not in STOP_WORDS and len(word) > 1)


_CONDITION = re.compile(
    r"^\W*(?:if|once|when|as soon as|provided|in case|unless|should you)\b"
    r"|\b(?:if|whether|eligib\w+|might|may be|could be|as long as|provided(?: that)?|unless|once"
    r"|only (?:if|while|when|after|until|before)|depend(?:s|ing) on)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|unable|neither|nor|nobody|nothing|without|excluded?|except|unfortunately"
    r"|sadly|afraid|decline|refuse|prohibited|forbidden|ineligible|too late|past|no longer"
    r"|(?:isn|can|won|don|doesn)t)\b|n't\b"
    r"|\bno\b(?! (?:problem|worr|need|matter|question|limit|hurry|rush|deduction|inspection|photo|receipt"
    r"|proof))",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\bnot (?:too late|at all|only|a problem|to worry)\b|\b(?:don'?t|do not) worry\b|\bwhy not\b"
    r"|\b(?:don'?t|do not)"
    r" need\b|\b(?:doesn'?t|does not) matter\b|\b(?:isn'?t|is not|aren'?t) (?:important|a problem"
    r"|an issue|needed"
    r"|necessary|required)\b|\b(?:don'?t|do not) hesitate\b|\bnot fair\b|\bnothing (?:will be|is"
    r"|gets) deducted\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:()\u2013\u2014]|\s-\s|\b(?:but|however|although|though|yet|while|whereas|instead)\b", re.IGNORECASE
)


@lru_cache(maxsize=CACHED_TEXTS)
def conditional(text: str) -> bool:
    """Tell whether a sentence speaks under a condition."""
    return bool(_CONDITION.search(text))


@lru_cache(maxsize=CACHED_TEXTS)
def negated(text: str) -> bool:
    """Tell whether a clause denies; `no problem` and the like do not."""
    return bool(_NEGATION.search(_HARMLESS.sub(" ", text)))


@lru_cache(maxsize=CACHED_TEXTS)
def clauses(text: str) -> tuple[str, ...]:
    """Cut a sentence into its clauses."""
    return tuple(clause for clause in _CLAUSE.split(text) if clause and clause.strip())
