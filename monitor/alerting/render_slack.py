"""A message in, Slack's blocks out, within its limits whatever the texts hold; what does not fit is counted."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from monitor.alerting import plot
from monitor.alerting.message import Message, ToldAlert

SECTION_MAX = 3000
"""Slack refuses a longer section."""
BLOCKS_MAX = 50
"""Slack refuses more blocks."""
HEADER_MAX = 150
"""Slack refuses a longer header."""
TOTAL_MAX = 12_000
"""Near 13,200 characters Slack answers `msg_blocks_too_long`; that limit is in no document, so we stay away."""
LINE_MAX = 700
"""Longest line of a section; it keeps one endless word from pushing out everything else."""
OTHER_MAX = 150
"""Longest title of an alert that is told in one line."""
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_RESERVED = 2
"""Blocks kept for the end: what was left out, and the id."""


def as_slack(message: Message) -> dict[str, Any]:
    """Return the body of an incoming webhook: a text for notifications, and blocks."""
    end = [_section([*message.left_out])] if message.left_out else []
    if message.others:
        end.insert(
            0,
            _section(
                ["Also in this group", *_bullets([_shortened(one, OTHER_MAX) for one in message.others])]
            ),
        )
    end.append(_context(f"Id: {message.id}"))
    blocks = [_header(message.title)]
    room = TOTAL_MAX - size([*blocks, *end]) - size([_more(len(message.alerts))])
    left = 0
    for number, alert in enumerate(message.alerts):
        # The gravest comes first and is told in full as far as it fits; of the others the first lines matter most.
        wanted = [_section(lines) for lines in _sections(alert)]
        kept = _fitting(wanted, room, BLOCKS_MAX - len(blocks) - len(end) - _RESERVED)
        if not kept:
            left = len(message.alerts) - number
            break
        blocks += kept
        room -= size(kept)
    if left:
        blocks.append(_more(left))
    return {"text": cut(message.title, SECTION_MAX), "blocks": [*blocks, *end]}


def size(blocks: Sequence[dict[str, Any]]) -> int:
    """Return how long blocks are, as Slack counts: UTF-16 units of their JSON."""
    return units(json.dumps(blocks, ensure_ascii=False))


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units; an emoji is two."""
    return len(text) + sum(character > "\uffff" for character in text)


def cut(text: str, limit: int) -> str:
    """Return a text escaped for Slack and at most `limit` long; no entity is cut apart."""
    whole = "".join(_ENTITIES.get(character, character) for character in text)
    if units(whole) <= limit:
        return whole
    kept, length = [], 1
    for character in text:
        piece = _ENTITIES.get(character, character)
        length += units(piece)
        if length > limit:
            break
        kept.append(piece)
    return "".join(kept) + "…"


def _fitting(wanted: list[dict[str, Any]], room: int, blocks: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for block in wanted:
        if len(kept) >= blocks or size([*kept, block]) > room:
            break
        kept.append(block)
    return kept


def _sections(alert: ToldAlert) -> Iterator[list[str]]:
    yield [f"[{alert.status.upper()}] [{alert.severity}] {alert.title}", alert.reason]
    if alert.changed:
        yield ["What changed", *_bullets(alert.changed)]
    course = [plot.line(alert.plot)] if alert.plot else []
    yield ["Since when, how much", *_bullets(alert.amount), *course]
    # The way on comes before what may not fit.
    yield [f"Runbook: {alert.runbook}", f"In full: {alert.command}"]
    if alert.where:
        yield ["Where", *_bullets(alert.where)]
    for number, case in enumerate(alert.cases):
        head = [alert.cases_heading] if number == 0 else []
        quotes = (quote.marked("“", "”") for quote in case.quotes)
        yield [*head, case.head, case.reason, *quotes, case.command, *([case.link] if case.link else [])]
    if alert.agreement:
        yield [f"Judge and people: {alert.agreement}"]


def _bullets(lines: Sequence[str]) -> list[str]:
    return [f"• {line}" for line in lines]


def _header(title: str) -> dict[str, Any]:
    # Plain text is shown as it is; entities would be seen.
    text = title if units(title) <= HEADER_MAX else f"{_shortened(title, HEADER_MAX - 1)}…"
    return {"type": "header", "text": {"type": "plain_text", "text": text, "emoji": False}}


def _shortened(text: str, limit: int) -> str:
    while units(text) > limit:
        text = text[: len(text) - max(1, (units(text) - limit) // 2)]
    return text


def _section(lines: Sequence[str]) -> dict[str, Any]:
    kept: list[str] = []
    room = SECTION_MAX
    for line in lines:
        text = cut(line, min(LINE_MAX, max(1, room)))
        if units(text) + 1 > room:
            break
        kept.append(text)
        room -= units(text) + 1
    # `verbatim`: Slack makes no links, channels or names of what users wrote.
    return {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(kept), "verbatim": True}}


def _context(text: str) -> dict[str, Any]:
    return {
        "type": "context",
        "elements": [{"type": "mrkdwn", "text": cut(text, SECTION_MAX), "verbatim": True}],
    }


def _more(count: int) -> dict[str, Any]:
    return _section([f"{count} more alerts do not fit into this message; `monitor alerts list` names them"])
