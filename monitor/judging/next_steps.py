"""An answer in, whether it moves the user on out: actionability."""

import re

from monitor.intake.event import Role
from monitor.judging.exchange import Exchange, small_talk
from monitor.judging.judgment import DimensionScore, Quote
from monitor.judging.wording import sentences

DIMENSION = "actionability"

_VERBS = (
    "add|ask|book|bring|call|cancel|change|charge|check|choose|clear|click|collect|compare|complete"
    "|confirm|contact|copy|create|delete"
    "|describe|dm|download|drop|email|enable|enter|exchange|fill|find|follow|forward|give|go|hand|head"
    "|hold|include|install|keep|let"
    "|locate|log|look|mention|message|note|open|order|pack|pay|photograph|pick|place|power|press|print"
    "|provide|pull|put|reach|refresh"
    "|register|reinstall|remove|replace|reply|report|request|reset|restart|return|review|scan|search"
    "|select|send|set|share|sign|start"
    "|stick|stop|submit|swap|switch|take|tap|tell|touch|track|try|turn|type|unplug|update|upload|use"
    "|visit|wait|wash|watch|write"
)
_IMPERATIVE = re.compile(
    rf"(?:^|[,;:(]|\b(?:please|then|and|or|first|next|just|simply|also|so|here|kindly|instead"
    rf"|otherwise)\b)\W*"
    rf"(?:(?:please|just|simply|then|first|also|kindly|feel free to)\W+)*(?:{_VERBS})\b",
    re.IGNORECASE,
)
_YOU_CAN = re.compile(
    r"\bonce you (?:provide|send|share|confirm)\b|\bi(?:'ll| will)? (?:also )?need (?:your|the|to know)\b"
    r"|\byou (?:can|could|may|will need to|need to|have to|should|must|'?ll need to"
    r"|might want to)\b(?! (?:be|also be|see that)\b)|\b(?:the (?:best|right|next)"
    r" (?:way|step|thing) (?:is|would))\b|\bi(?:'d| would)? (?:recommend|suggest|advise)\b",
    re.IGNORECASE,
)
_LINK = re.compile(r"https?://\S+|\bwww\.\S+|\b(?:settings|menu) ?>|\[(?:PHONE|EMAIL)", re.IGNORECASE)
_WHO_WHEN = re.compile(
    r"\b(?:team|agent|workshop|specialist|manager|colleague|person|experts?|they|we|i|carrier|warehouse"
    r"|you'?ll|it)\b[^.!?]{0,60}"
    r"\b(?:will|repl(?:y|ies)|contacts?|writes?|answers?|decides?|gets? back|receive|within|by)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have)(?: \w+)? (?:added|arranged|asked|booked|cancel+ed|changed|checked|completed"
    r"|confirmed|created|forwarded"
    r"|found|handed|issued|logged|made|moved|noted|opened|ordered|passed|placed|processed|renewed"
    r"|reported|requested|reserved|reset"
    r"|scheduled|sent|set|started|submitted|transferred|updated|upgraded)\b"
    r"|\b(?:has|have) been (?:success\w+ )?\w+(?:ed|ent|et|ade|ut)\b|\b(?:is|are"
    r"|was) (?:now )?(?:success\w+ )?(?:open|set up|booked"
    r"|confirmed|cancel+ed|updated|created|on its way|done|reserved|active|sent|scheduled|renewed)\b"
    r"|\bdone[,.!]",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"\b(?:sorry|apologi[sz]e|apologies|unfortunately|regret|afraid|understand (?:your|that|how|the))\b",
    re.IGNORECASE,
)
_DEFLECTS = re.compile(
    r"\b(?:check|see|consult|read|refer to|look (?:at|in|into)) (?:the|our|your) (?:documentation|docs"
    r"|website|faq|help (?:page|center|centre)|manual|terms)\b"
    r"|\bcontact (?:customer )?(?:support|service)\b",
    re.IGNORECASE,
)
_GIVES_UP = re.compile(
    r"\b(?:i (?:don'?t|do not) know|i (?:can'?t|cannot|am unable to|'m unable to|am not able to) (?:help"
    r"|assist)|no idea|nothing (?:i|we) can do)\b",
    re.IGNORECASE,
)
_SUBSTANCE = re.compile(
    r"\d|\b(?:yes|no|because|means|includes?|covers?|costs?|takes?|until|between|is|are)\b", re.IGNORECASE
)
_TELLING_WORDS = 6
_CLEAR = 2


def score_next_steps(exchange: Exchange) -> DimensionScore:
    """Score one answer; it abstains where there is nothing to do, as after a thank-you."""
    if not exchange.answer:
        return DimensionScore(dimension=DIMENSION, score=None, reason="no answer to check")
    if small_talk(exchange):
        return DimensionScore(dimension=DIMENSION, score=None, reason="small talk; nothing to act on")
    answer = exchange.answer
    resolved = bool(_DONE.search(answer)) and any(
        message.role is Role.TOOL for message in exchange.turn.messages
    )
    signs = [name for name, holds in _signs(answer) if holds]
    if resolved:
        return _score(5, "resolved with a tool, and says so")
    if len(signs) >= _CLEAR:
        return _score(5, f"names the next step ({', '.join(signs)})")
    if signs and not (signs == ["a step"] and _DEFLECTS.search(answer)):
        return _score(4, f"gives a direction ({signs[0]})")
    return _without_steps(answer, deflects=bool(_DEFLECTS.search(answer)))


def _without_steps(answer: str, *, deflects: bool) -> DimensionScore:
    said = answer[:160]
    if _GIVES_UP.search(answer):
        return _score(2, "gives up without naming a way on", quote=said, kind="no_way_on")
    if deflects:
        return _score(
            3, "points to the documentation or to support, without a place in it", quote=said, kind="vague"
        )
    substance = sum(
        bool(_SUBSTANCE.search(s.text)) and not _APOLOGY.search(s.text) for s in sentences(answer)
    )
    if _APOLOGY.search(answer) and not substance:
        return _score(2, "an apology without a way on", quote=said, kind="apology_only")
    if substance and len(answer.split()) >= _TELLING_WORDS:
        return _score(4, "answers the question; no step is asked of the user")
    return _score(3, "neither a step nor an answer that stands for itself", quote=said, kind="vague")


def _signs(answer: str) -> list[tuple[str, bool]]:
    parts = sentences(answer)
    return [
        (
            "a step",
            any(_IMPERATIVE.search(s.text) or _YOU_CAN.search(s.text) for s in parts if not s.is_question),
        ),
        ("a link or place", bool(_LINK.search(answer))),
        ("who does what by when", bool(_WHO_WHEN.search(answer))),
        ("a question back", any(s.is_question for s in parts)),
        ("done", bool(_DONE.search(answer))),
    ]


def _score(score: int, reason: str, *, quote: str = "", kind: str | None = None) -> DimensionScore:
    quotes = (Quote(text=quote, source="answer"),) if quote else ()
    return DimensionScore(dimension=DIMENSION, score=score, reason=reason, quotes=quotes, kind=kind)
