"""The passages of a large document that matter to a turn, by BM25; a small document stays as it is."""

import re
from collections import OrderedDict
from itertools import pairwise
from typing import Any, NamedTuple

from monitor.judging.references import Document, digest
from monitor.judging.wording import content

PASSAGE_CHARS = 1_200
"""Of one passage; a paragraph that is longer is cut at sentences."""
REMEMBERED_MAX = 64
"""Indexed documents that are remembered; a document of 200,000 characters takes about 2 MB."""
GAP_SIGN = "\n[...]\n"


class _Indexed(NamedTuple):
    passages: list[str]
    retriever: Any


class BM25Passages:
    """Cuts documents down to their share of a prompt."""

    def __init__(self, *, keep_chars: int) -> None:
        """Keep documents of up to `keep_chars` whole, and as much of larger ones."""
        self._keep_chars = keep_chars
        self._indexed: OrderedDict[str, _Indexed] = OrderedDict()

    def __call__(self, document: Document, said: str) -> Document:
        """Return the best passages in the document's own order, each gap marked; its beginning is always there."""
        if len(document.text) <= self._keep_chars:
            return document
        indexed = self._index(document.text)
        chosen = {0}
        left = self._keep_chars - len(indexed.passages[0])
        for place in _ranked(indexed, said):
            length = len(indexed.passages[place]) + len(GAP_SIGN)
            if place not in chosen and length <= left:
                chosen.add(place)
                left -= length
        return document.model_copy(update={"text": _joined(indexed.passages, sorted(chosen))})

    def _index(self, text: str) -> _Indexed:
        key = digest(text)
        if key in self._indexed:
            self._indexed.move_to_end(key)
            return self._indexed[key]
        # The library takes half a second to import; only large documents need it.
        import bm25s  # noqa: PLC0415

        passages = split(text)
        retriever = bm25s.BM25()
        retriever.index([_words(passage) for passage in passages], show_progress=False)
        self._indexed[key] = _Indexed(passages, retriever)
        if len(self._indexed) > REMEMBERED_MAX:
            self._indexed.popitem(last=False)
        return self._indexed[key]


def split(text: str) -> list[str]:
    """Cut a text at its paragraphs, long ones at their sentences, short ones joined up to a passage."""
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        pieces += [paragraph] if len(paragraph) <= PASSAGE_CHARS else _cut(paragraph)
    passages: list[str] = []
    for piece in pieces:
        heading = passages and passages[-1].lstrip().startswith("#") and "\n" not in passages[-1].strip()
        if passages and (heading or len(passages[-1]) + len(piece) <= PASSAGE_CHARS // 2):
            passages[-1] += "\n\n" + piece
        else:
            passages.append(piece)
    return passages


def _cut(paragraph: str) -> list[str]:
    cut: list[str] = [""]
    for sentence in re.split(r"(?<=[.!?])\s+|\n", paragraph):
        for start in range(0, max(1, len(sentence)), PASSAGE_CHARS):
            piece = sentence[start : start + PASSAGE_CHARS]
            if len(cut[-1]) + len(piece) > PASSAGE_CHARS:
                cut.append("")
            cut[-1] += (" " if cut[-1] else "") + piece
    return cut


def _words(text: str) -> list[str]:
    # Words by their roots, and figures as they stand: `30 days` must find `30 days`.
    return [*sorted(content(text)), *re.findall(r"\d+", text)] or ["-"]


def _ranked(indexed: _Indexed, said: str) -> list[int]:
    scores = indexed.retriever.get_scores(_words(said))
    return sorted(range(len(indexed.passages)), key=lambda place: (-scores[place], place))


def _joined(passages: list[str], chosen: list[int]) -> str:
    text = passages[chosen[0]]
    for before, place in pairwise(chosen):
        text += ("\n\n" if place == before + 1 else GAP_SIGN) + passages[place]
    return text if chosen[-1] == len(passages) - 1 else text + GAP_SIGN
