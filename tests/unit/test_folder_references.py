import json
from pathlib import Path

import pytest

from monitor.adapters.folder_references import FolderReferences
from monitor.intake.event import Reference


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "documents"
    (root / "policies").mkdir(parents=True)
    (root / "policies" / "returns.md").write_text("Within 30 days.")
    (root / "note.txt").write_text("A note.")
    (root / "many.jsonl").write_text(
        json.dumps({"id": "doc-1", "text": "First.", "version": 7})
        + "\nnot json\n"
        + json.dumps({"id": "doc-2", "text": "Second."})
    )
    (root / "object.json").write_text(json.dumps({"faq": "Questions."}))
    (tmp_path / "secret.md").write_text("Outside.")
    return root


async def text_of(source: FolderReferences, doc_id: str) -> str | None:
    found = await source.find((Reference(id=doc_id),))
    return found[0].text if found else None


@pytest.mark.parametrize("doc_id", ["returns.md", "policies/returns.md", "returns", "docs/v2/returns.md"])
async def test_a_file_is_found_by_name_with_or_without_folder_and_ending(folder: Path, doc_id: str) -> None:
    (document,) = await FolderReferences(folder).find((Reference(id=doc_id),))

    assert document.text == "Within 30 days."
    assert document.id == doc_id


async def test_entries_of_json_files_are_found_by_their_id(folder: Path) -> None:
    source = FolderReferences(folder)

    assert await text_of(source, "doc-1") == "First."
    assert await text_of(source, "doc-2") == "Second."
    assert await text_of(source, "faq") == "Questions."
    assert (await source.find((Reference(id="doc-1"),)))[0].version == "7"


@pytest.mark.parametrize(
    "doc_id", ["../secret.md", "secret", "/etc/passwd", "policies/../../secret.md", "unknown", ".."]
)
async def test_nothing_outside_the_folder_is_found(folder: Path, doc_id: str) -> None:
    assert await text_of(FolderReferences(folder), doc_id) is None


async def test_a_link_that_leads_out_of_the_folder_is_not_followed(folder: Path) -> None:
    (folder / "link.md").symlink_to(folder.parent / "secret.md")

    assert await text_of(FolderReferences(folder), "link.md") is None


async def test_a_text_in_the_event_wins_and_is_taken_as_it_is(folder: Path) -> None:
    (document,) = await FolderReferences(folder).find(
        (Reference(id="returns.md", text="Within 14 days.", version="v3"),)
    )

    assert (document.text, document.version) == ("Within 14 days.", "v3")


async def test_a_changed_file_is_seen_with_another_version(folder: Path) -> None:
    source = FolderReferences(folder, recheck_seconds=0)
    (before,) = await source.find((Reference(id="returns"),))

    (folder / "policies" / "returns.md").write_text("Within 60 days, from now on.")
    (after,) = await source.find((Reference(id="returns"),))

    assert after.text == "Within 60 days, from now on."
    assert after.version != before.version


async def test_a_document_that_is_too_long_is_cut_and_says_so(folder: Path) -> None:
    (folder / "long.md").write_text("x" * 100)

    assert (
        await text_of(FolderReferences(folder, max_chars=40), "long")
        == "x" * 40 + "\n[cut here: 60 more characters]"
    )


async def test_a_folder_that_does_not_exist_has_no_documents(tmp_path: Path) -> None:
    assert (
        await FolderReferences(tmp_path / "nowhere").find((Reference(id="a"), Reference(id="b", text="B")))
        != ()
    )
    assert await text_of(FolderReferences(tmp_path / "nowhere"), "a") is None
