"""All figures that an answer may draw on in, whether one of them supports or contradicts a claim out."""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import combinations, islice
from typing import NamedTuple

from monitor.judging.claims import Figure, FigureKind, figures, same
from monitor.judging.exchange import Exchange
from monitor.judging.statements import Facts, Statement
from monitor.judging.wording import Sentence, content, negated, sentences, word_set

_NEAR = 75
"""How many characters around a figure say what it is about."""
_CONTRADICTS_MIN = 2.6
"""How much wording a document's other figure must share, in weight, before it is a contradiction."""
_CLEARER_MIN = 2.2
"""How much more than the document's agreeing figure, when there is one elsewhere."""
_TERM_MIN = 1.4
"""How much is enough where the answer states the figure as a term of the house (`within`, `valid for`)."""
_NEVER = float("inf")
_UNITS = word_set("second minute hour day week month year business working dollar euro percent busines")
_TERM = re.compile(r"\b(?:within|valid for|you have|up to|until|cover(?:s|ed)? for|takes?)\b", re.IGNORECASE)
_COMMA = re.compile(r"[,;:()](?=\s)|\s[-\u2013\u2014]\s|\band\b")
_AMOUNTS_MAX = 40
"""How many known amounts are added and subtracted: pairs grow with the square."""
_TIMES_MAX = 12
"""How many times over an amount may be taken: so many passengers, so many bags."""
_WHOLE = 100.0
"""A hundred percent is a figure of speech."""
_CENT = 0.01
_DAY_HOURS = 24


_NO_RULE = frozenset({FigureKind.DATE, FigureKind.TIME})
"""Kinds that speak of one case, not of the house's rules; they are supported or not, never contradicted."""


class Contradiction(NamedTuple):
    """A claim, and the document's sentence that has another figure for the same thing."""

    claim: Figure
    sentence: str
    statement: Statement
    figure: Figure


class Known(NamedTuple):
    """All figures that an answer may draw on."""

    documents: tuple[Facts, ...]
    user: tuple[Figure, ...]
    tools: tuple[Figure, ...]
    told: tuple[Figure, ...]
    in_answer: tuple[Figure, ...]

    @classmethod
    def of(cls, exchange: Exchange, documents: tuple[Facts, ...]) -> "Known":
        """Gather the figures of all sources of one answer."""
        return cls(
            documents,
            _all(exchange.user_said),
            _all(exchange.tools_said),
            _all(exchange.instructions),
            figures(exchange.answer),
        )

    def supports(self, claim: Figure) -> bool:
        """Tell whether a source states the claim, or it follows from them in one step."""
        if any(same(claim, figure) for figure in self._figures()):
            return True
        if claim.kind is FigureKind.PERCENT and claim.low == _WHOLE:
            return True
        if claim.kind is FigureKind.MONEY:
            return claim.low == 0 or self._reckoned(claim)
        if claim.kind is FigureKind.DATE:
            return self._counted(claim)
        return False

    def _figures(self) -> Iterable[Figure]:
        yield from self.tools
        yield from self.user
        yield from self.told
        for document in self.documents:
            for statement in document.statements:
                yield from statement.figures

    def contradiction(self, claim: Figure, answer: str) -> Contradiction | None:
        """Find the document's sentence about the same thing with another figure, if it is clearly that."""
        if claim.kind in _NO_RULE or any(same(claim, f) for f in (*self.tools, *self.told)):
            return None
        if claim.kind is FigureKind.MONEY and claim.low and self._reckoned_here(claim):
            return None
        sentence = next(
            (s for s in sentences(answer) if s.start <= claim.start < s.start + len(s.text)), None
        )
        if sentence is None or sentence.is_question:
            return None
        begin = max(sentence.start, claim.start - _NEAR)
        end = min(sentence.start + len(sentence.text), claim.end + _NEAR)
        near = answer[begin:end]
        agreeing, best, against = self._closest(claim, near, sentence)
        if agreeing:
            if best < agreeing + _CLEARER_MIN:
                return None
            # It stands elsewhere in the documents, so only its own clause can show that it is misplaced here.
            near = _clause(sentence.text, claim.start - sentence.start)
            agreeing, best, against = self._closest(claim, near, sentence)
        return against if against and best >= self._needed(claim, sentence.text, near, agreeing) else None

    def _closest(
        self, claim: Figure, near: str, sentence: Sentence
    ) -> tuple[float, float, Contradiction | None]:
        """Return how much wording the documents share where they agree and where they differ, and that."""
        words = content(near) - content(claim.text) - _UNITS
        end = sentence.start + len(sentence.text)
        inside = (figure for figure in self.in_answer if sentence.start <= figure.start < end)
        beside = [figure for figure in inside if not same(figure, claim)]
        agreeing, best, against = 0.0, 0.0, None
        for document in self.documents:
            overlaps = document.overlaps(words)
            for statement, weight in zip(document.statements, overlaps, strict=True):
                if not statement.figures:
                    continue
                if any(same(claim, figure) for figure in statement.figures):
                    agreeing = max(agreeing, weight, 0.1)
                    continue
                if weight <= best:
                    continue
                others = [f for f in statement.figures if _comparable(claim, f)]
                # A sentence with many counts tells cases apart, and which one applies is beyond these rules.
                other = (
                    others[0] if others and (len(others) == 1 or claim.kind is not FigureKind.COUNT) else None
                )
                # The document's own figure in the same sentence shows that both are told apart.
                if other is not None and not any(same(other, figure) for figure in beside):
                    best, against = weight, Contradiction(claim, sentence.text, statement, other)
        return agreeing, best, against

    def _needed(self, claim: Figure, sentence: str, near: str, agreeing: float) -> float:
        """Return how much shared wording makes a contradiction of this claim."""
        if agreeing:
            return _NEVER if negated(near) and claim.unit != "free" else agreeing + _CLEARER_MIN
        if any(same(claim, figure) for figure in self.user):
            # The user's own figure may be repeated; only as a rule of the house is it a claim.
            repeated = negated(sentence) or self._sourced(sentence)
            return _NEVER if repeated else _CONTRADICTS_MIN + _CLEARER_MIN
        if claim.kind is FigureKind.COUNT or (claim.kind is FigureKind.MONEY and self.tools):
            # Counts and prices of a case look like those of a rule.
            return 2 * _CONTRADICTS_MIN
        return _TERM_MIN if _TERM.search(near) else _CONTRADICTS_MIN

    def _sourced(self, sentence: str) -> bool:
        return any(
            same(figure, known)
            for figure in figures(sentence)
            for document in self.documents
            for statement in document.statements
            for known in statement.figures
        )

    def _reckoned(self, claim: Figure) -> bool:
        """Tell whether an amount is one step of arithmetic away from known ones."""
        pool = {f.low for f in self._figures() if f.kind in (FigureKind.MONEY, FigureKind.NUMBER)}
        return self._reckoned_here(claim) or _one_step(claim.low, sorted(pool - {0.0})[:_AMOUNTS_MAX])

    def _reckoned_here(self, claim: Figure) -> bool:
        """Tell whether an amount follows from the other amounts of the answer, as a total does."""
        others = [
            f.low for f in self.in_answer if f.kind is FigureKind.MONEY and f.low not in (0.0, claim.low)
        ]
        return _one_step(claim.low, others) or (bool(others) and abs(sum(others) - claim.low) < _CENT)

    def _counted(self, claim: Figure) -> bool:
        """Tell whether a date is a known date plus or minus a known duration."""
        dates = [f for f in self._figures() if f.kind is FigureKind.DATE]
        spans = {
            round(f.high / _DAY_HOURS)
            for f in self._figures()
            if f.kind is FigureKind.DURATION and f.high >= _DAY_HOURS
        }
        for known in islice(dates, _AMOUNTS_MAX):
            if known.low == claim.low or (start := _day(known)) is None:
                continue
            for days in spans:
                for end in (start + timedelta(days), start - timedelta(days)):
                    if end.month * 100 + end.day == claim.low:
                        return True
        return False


def _one_step(wanted: float, amounts: list[float]) -> bool:
    for one in amounts:
        times = round(wanted / one)
        if 1 <= times <= _TIMES_MAX and abs(times * one - wanted) < _CENT:
            return True
    return any(
        abs(one + two - wanted) < _CENT or abs(abs(one - two) - wanted) < _CENT
        for one, two in combinations(amounts, 2)
    )


def _day(figure: Figure) -> date | None:
    try:
        return date(int(figure.unit or 2025), int(figure.low) // 100, int(figure.low) % 100)
    except (ValueError, OverflowError):
        return None


def _clause(sentence: str, position: int) -> str:
    begins = [match.end() for match in _COMMA.finditer(sentence) if match.end() <= position]
    ends = [match.start() for match in _COMMA.finditer(sentence) if match.start() >= position]
    return sentence[begins[-1] if begins else 0 : ends[0] if ends else len(sentence)]


def _comparable(claim: Figure, figure: Figure) -> bool:
    if claim.kind is not figure.kind or (figure.unit == "free" and claim.unit != "free"):
        return False
    return claim.kind is not FigureKind.COUNT or claim.unit.split()[-1] == figure.unit.split()[-1]


def _all(texts: tuple[str, ...]) -> tuple[Figure, ...]:
    return tuple(figure for text in texts for figure in figures(text))
