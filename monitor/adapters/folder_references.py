"""Reference documents from a folder: Markdown and text files, JSON lines, JSON objects; or from the event itself."""

import asyncio
import json
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from monitor.intake.event import Reference
from monitor.judging.references import Document

MAX_CHARS = 200_000
"""Of one document. It bounds the worker's memory and a prompt; what is cut is said at the cut."""
MAX_FILES = 1_000
"""Files that are looked at in the folder, so that a wrong path does not read a whole disk."""
_TEXTS = (".md", ".markdown", ".txt")
_TABLES = (".jsonl", ".json")
RECHECK_SECONDS = 2.0
"""How long an edit may go unnoticed. Lowering it costs a walk through the folder for more of the judgments."""


class _Listed(NamedTuple):
    stamp: tuple[int, int]
    documents: dict[str, Document]


class FolderReferences:
    """Look documents up by id; a changed file is seen after `recheck_seconds`, nothing outside the folder ever."""

    def __init__(
        self, folder: Path, *, max_chars: int = MAX_CHARS, recheck_seconds: float = RECHECK_SECONDS
    ) -> None:
        """Read nothing yet; a folder that does not exist has no documents."""
        self._folder = folder
        self._max_chars = max_chars
        self._recheck_seconds = recheck_seconds
        self._files: dict[Path, _Listed] = {}
        self._by_id: dict[str, Document] = {}
        self._looked_at: float | None = None

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return the known documents in the order asked for; a text inside the event is taken as it is."""
        if any(reference.text is None for reference in references):
            now = asyncio.get_running_loop().time()
            if self._looked_at is None or now - self._looked_at >= self._recheck_seconds:
                self._by_id = await asyncio.to_thread(self._documents)
                self._looked_at = now
        by_id, found = self._by_id, []
        for reference in references:
            if reference.text is not None:
                found.append(self._inline(reference))
            elif (document := _look_up(by_id, reference.id)) is not None:
                # Under the id that the event gave, so that the event's reference is recognised in it.
                found.append(Document(id=reference.id, text=document.text, version=document.version))
        return tuple(found)

    def _inline(self, reference: Reference) -> Document:
        return Document.of(reference.id, self._cut(reference.text or ""), reference.version)

    def _documents(self) -> dict[str, Document]:
        seen: dict[Path, _Listed] = {}
        for path in self._paths():
            try:
                status = path.stat()
                stamp = (status.st_mtime_ns, status.st_size)
                known = self._files.get(path)
                seen[path] = known if known and known.stamp == stamp else _Listed(stamp, self._read(path))
            except OSError:
                continue  # it went away between the listing and the reading
        # Replaced whole: another thread that reads meanwhile sees the old files or the new ones.
        self._files = seen
        return {doc_id: document for listed in seen.values() for doc_id, document in listed.documents.items()}

    def _paths(self) -> list[Path]:
        root = self._folder.resolve()
        if not root.is_dir():
            return []
        found = []
        for path in sorted(root.rglob("*")):
            inside = path.resolve().is_relative_to(root)
            if inside and path.suffix.lower() in (*_TEXTS, *_TABLES) and path.is_file():
                found.append(path)
            if len(found) >= MAX_FILES:
                break
        return found

    def _read(self, path: Path) -> dict[str, Document]:
        name = path.relative_to(self._folder.resolve()).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix.lower() in _TEXTS:
            return {name: Document.of(name, self._cut(text))}
        if path.suffix.lower() == ".jsonl":
            entries = [_parsed(line) for line in text.splitlines() if line.strip()]
        else:
            entries = _entries(_parsed(text))
        return {
            str(entry["id"]): Document.of(str(entry["id"]), self._cut(entry["text"]), _version(entry))
            for entry in entries
            if isinstance(entry, dict) and entry.get("id") and isinstance(entry.get("text"), str)
        }

    def _cut(self, text: str) -> str:
        if len(text) <= self._max_chars:
            return text
        return f"{text[: self._max_chars]}\n[cut here: {len(text) - self._max_chars} more characters]"


def _look_up(by_id: dict[str, Document], wanted: str) -> Document | None:
    """Find `returns.md` under that name, as `policies/returns.md` or as `returns`."""
    if wanted in by_id:
        return by_id[wanted]
    path = PurePosixPath(wanted)
    # Only names are compared, no path is opened: `../../etc/passwd` is a name that nobody has.
    for name in (path.name, *(path.name + ending for ending in _TEXTS)):
        for doc_id in sorted(by_id):
            if doc_id == name or doc_id.endswith("/" + name):
                return by_id[doc_id]
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _entries(parsed: Any) -> list[Any]:
    """Read a list of entries, one entry, or an object of texts by id."""
    match parsed:
        case list():
            return parsed
        case {"id": _, "text": _}:
            return [parsed]
        case dict():
            return [{"id": name, "text": text} for name, text in parsed.items() if isinstance(text, str)]
        case _:
            return []


def _version(entry: dict[str, Any]) -> str | None:
    version = entry.get("version")
    return None if version is None else str(version)
