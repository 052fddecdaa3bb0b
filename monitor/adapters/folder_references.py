"""Reference documents from a folder: Markdown and text files, JSON lines, JSON objects; or from the event itself.

A document may have versions: `returns@2026-01-01.md` beside `returns@2026-06-01.md`, a front matter with
`valid_from` and `version`, or several entries of one id with these keys.
"""

import asyncio
import json
import re
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from monitor.intake.event import Reference
from monitor.judging.references import Document, Gap, NoDocument, in_force, shortened

MAX_CHARS = 200_000
"""Of one document. It bounds the worker's memory and a prompt; what is cut is said at the cut."""
MAX_FILES = 1_000
"""Files that are looked at in the folder, so that a wrong path does not read a whole disk."""
_TEXTS = (".md", ".markdown", ".txt")
_TABLES = (".jsonl", ".json")
RECHECK_SECONDS = 2.0
"""How long an edit may go unnoticed. Lowering it costs a walk through the folder for more of the judgments."""


Versions = tuple[Document, ...]
"""Of one document, in the order in which they came into force."""


class _Listed(NamedTuple):
    stamp: tuple[int, int]
    documents: tuple[Document, ...]


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
        self._by_id: dict[str, Versions] = {}
        self._looked_at: float | None = None

    async def fetch(
        self, reference: Reference, *, at: datetime, version: str | None = None
    ) -> Document | NoDocument:
        """Return the version in force at a time, or exactly the one that is named."""
        await self._look_again()
        versions = _look_up(self._by_id, reference.id)
        if versions is None:
            return NoDocument(
                id=reference.id, gap=Gap.UNKNOWN, reason="no such document in the folder of documents"
            )
        if version is None:
            chosen = in_force(versions, at=at)
            first = versions[0].valid_from
            reason = f"its first version came into force at {first:%Y-%m-%d %H:%M} UTC" if first else ""
        else:
            chosen = next((one for one in versions if one.version == version), None)
            reason = f"the folder of documents has no version {version} of it"
        if chosen is None:
            return NoDocument(id=reference.id, gap=Gap.NOT_IN_FORCE, reason=reason)
        return chosen.model_copy(update={"id": reference.id})

    async def close(self) -> None:
        """Hold nothing open."""

    async def find(self, references: tuple[Reference, ...]) -> tuple[Document, ...]:
        """Return the known documents in the order asked for; a text inside the event is taken as it is."""
        if any(reference.text is None for reference in references):
            await self._look_again()
        by_id, found = self._by_id, []
        for reference in references:
            if reference.text is not None:
                found.append(self._inline(reference))
            elif (versions := _look_up(by_id, reference.id)) is not None:
                # Under the id that the event gave, so that the event's reference is recognised in it.
                document = versions[-1]
                found.append(Document(id=reference.id, text=document.text, version=document.version))
        return tuple(found)

    def _inline(self, reference: Reference) -> Document:
        return Document.of(reference.id, self._cut(reference.text or ""), reference.version)

    async def _look_again(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._looked_at is None or now - self._looked_at >= self._recheck_seconds:
            self._by_id = await asyncio.to_thread(self._documents)
            self._looked_at = now

    def _documents(self) -> dict[str, Versions]:
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
        by_id: dict[str, list[Document]] = {}
        for listed in seen.values():
            for document in listed.documents:
                by_id.setdefault(document.id, []).append(document)
        return {doc_id: tuple(sorted(versions, key=_order)) for doc_id, versions in by_id.items()}

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

    def _read(self, path: Path) -> tuple[Document, ...]:
        name = path.relative_to(self._folder.resolve()).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix.lower() in _TEXTS:
            return (self._text(name, text),)
        if path.suffix.lower() == ".jsonl":
            entries = [_parsed(line) for line in text.splitlines() if line.strip()]
        else:
            entries = _entries(_parsed(text))
        return tuple(
            Document.of(
                str(entry["id"]), self._cut(entry["text"]), _version(entry), _moment(entry.get("valid_from"))
            )
            for entry in entries
            if isinstance(entry, dict) and entry.get("id") and isinstance(entry.get("text"), str)
        )

    def _text(self, name: str, text: str) -> Document:
        head, text = _front_matter(text)
        dated = _DATED.search(name)
        version, valid_from = _version(head), _moment(head.get("valid_from"))
        if dated:
            name = name[: dated.start()] + dated["ending"]
            version = version or dated["when"]
            valid_from = valid_from or _moment(dated["when"])
        return Document.of(name, self._cut(text), version, valid_from)

    def _cut(self, text: str) -> str:
        return shortened(text, self._max_chars)


_DATED = re.compile(r"@(?P<when>\d{4}-\d{2}-\d{2}(?:T\d{2}-?\d{2}Z?)?)(?P<ending>\.\w+)$")
_FRONT = re.compile(r"\A---\n(?P<head>.*?)\n---\n", re.DOTALL)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


def _order(document: Document) -> tuple[datetime, str]:
    return document.valid_from or _BEGINNING, document.version


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Cut off a front matter; a block that is no mapping belongs to the text."""
    match = _FRONT.match(text)
    try:
        head = yaml.safe_load(match["head"]) if match else None
    except yaml.YAMLError:
        head = None
    return (head, text[match.end() :]) if match and isinstance(head, dict) else ({}, text)


def _moment(value: Any) -> datetime | None:
    """Read a date or a time; without a zone it is UTC."""
    if isinstance(value, str):
        hours = re.sub(r"T(\d{2})-?(\d{2})(Z?)$", r"T\1:\2\3", value)
        try:
            value = datetime.fromisoformat(hours)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _look_up(by_id: dict[str, Versions], wanted: str) -> Versions | None:
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
