"""Documents as of the time of the answer: which version counts, what is missing, and when the index was stale."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.adapters.bm25_passages import BM25Passages
from monitor.adapters.folder_references import FolderReferences
from monitor.conversations.conversation import Conversation, EndReason, Turn
from monitor.intake.event import Message, Reference, Role
from monitor.judging.consulting import STALE_INDEX, Consulting
from monitor.judging.judge import Scored
from monitor.judging.judgment import DimensionScore, JudgeRequest, Target
from monitor.judging.references import Chain, Document, EventReferences, Gap, NoDocument
from monitor.judging.rubric import TargetKind
from monitor.judging.rules import RuleJudge
from monitor.policy import load_policy

FACTS = "factual_correctness"
GROUNDED = (FACTS, "policy_adherence")
JANUARY, JUNE = datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 6, 10, tzinfo=UTC)
POLICY = load_policy()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "returns@2026-01-01.md").write_text("Goods may be returned within 30 days.")
    (tmp_path / "returns@2026-06-01.md").write_text("Goods may be returned within 14 days.")
    return tmp_path


def a_request(answer: str, *references: Reference, at: datetime = JUNE) -> JudgeRequest:
    messages = (
        Message(role=Role.USER, content="How long may I return the goods?"),
        Message(role=Role.ASSISTANT, content=answer),
    )
    turn = Turn(event_id="e1", occurred_at=at, messages=messages, references=references)
    return JudgeRequest(
        target=Target(kind=TargetKind.CONVERSATION, conversation_id="c1"),
        conversation=Conversation(id="c1", turns=(turn,), ended=EndReason.WHOLE, rate=1.0),
        rate=1.0,
        observed_at=at,
        requested_at=at,
    )


def rules(folder: Path, *, with_event: bool = True) -> Consulting:
    inner = RuleJudge(POLICY.rubric, EventReferences(max_chars=200_000))
    event = [EventReferences(max_chars=200_000)] if with_event else []
    return Consulting(inner, Chain([*event, FolderReferences(folder)]), grounded=GROUNDED)


async def facts_of(judge: Consulting, request: JudgeRequest) -> tuple[DimensionScore, Scored]:
    reply = await judge.judge(request)
    assert isinstance(reply, Scored)
    return next(score for score in reply.scores if score.dimension == FACTS), reply


@pytest.mark.parametrize(
    ("at", "days", "score"), [(JANUARY, 30, 5), (JUNE, 14, 5), (JANUARY, 14, 1), (JUNE, 30, 1)]
)
async def test_an_answer_is_held_against_what_was_in_force_when_it_was_given(
    folder: Path, at: datetime, days: int, score: int
) -> None:
    """A right answer of January is no error in June, when it is judged again."""
    told, reply = await facts_of(
        rules(folder),
        a_request(f"You may return the goods within {days} days.", Reference(id="returns"), at=at),
    )

    assert told.score == score
    (version,) = reply.trace.references
    assert version.version == ("2026-01-01" if at is JANUARY else "2026-06-01")
    assert version.digest


async def test_an_answer_by_an_old_version_is_a_stale_index(folder: Path) -> None:
    """It is the index that has to be built anew, not the prompt that has to be changed."""
    retrieved = Reference(id="returns", version="2026-01-01")
    told, _ = await facts_of(rules(folder), a_request("You may return the goods within 30 days.", retrieved))

    assert (told.score, told.kind) == (1, STALE_INDEX)
    assert "2026-01-01 (in force: 2026-06-01)" in told.reason


async def test_an_answer_wrong_by_both_versions_is_no_stale_index(folder: Path) -> None:
    retrieved = Reference(id="returns", version="2026-01-01")
    told, _ = await facts_of(rules(folder), a_request("You may return the goods within 90 days.", retrieved))

    assert told.score == 1
    assert told.kind != STALE_INDEX


async def test_what_the_event_says_was_retrieved_may_be_held_against_the_folder(folder: Path) -> None:
    """With the folder first in the order the event's text is what the assistant had, not what is in force."""
    retrieved = Reference(id="returns", version="v1", text="Goods may be returned within 30 days.")
    judge = rules(folder, with_event=False)
    told, _ = await facts_of(judge, a_request("You may return the goods within 30 days.", retrieved))

    assert told.kind == STALE_INDEX


async def test_a_text_in_the_event_is_taken_as_it_is(folder: Path) -> None:
    """In the default order whoever sends the text knows best."""
    told, reply = await facts_of(
        rules(folder),
        a_request(
            "You may return the goods within 7 days.", Reference(id="returns", text="Return within 7 days.")
        ),
    )

    assert told.score == 5
    assert reply.trace.references[0].missing is None


@pytest.mark.parametrize(
    ("reference", "at", "said"),
    [
        (Reference(id="unheard-of"), JUNE, "unknown: no such document"),
        (Reference(id="returns"), JANUARY - timedelta(days=30), "not_in_force: its first version came"),
    ],
)
async def test_a_missing_document_makes_the_dimension_abstain_and_says_so(
    folder: Path, reference: Reference, at: datetime, said: str
) -> None:
    """A score without the document would be a guess; silence about it would hide a broken folder."""
    there = Reference(id="here", text="Goods may be returned within 30 days.")
    told, reply = await facts_of(
        rules(folder), a_request("You may return the goods within 30 days.", there, reference, at=at)
    )

    assert told.score is None
    assert "a document is missing" in told.reason
    assert said in told.reason
    assert said in (reply.trace.references[1].missing or "")
    assert any(score.score is not None for score in reply.scores), "what needs no document is judged"


async def test_a_contradiction_that_is_quoted_stands_although_another_document_is_missing(
    folder: Path,
) -> None:
    """What is there proves it."""
    told, _ = await facts_of(
        rules(folder),
        a_request("You may return the goods within 90 days.", Reference(id="returns"), Reference(id="no")),
    )

    assert told.score == 1


async def test_entries_and_front_matter_have_versions_too(tmp_path: Path) -> None:
    """Three ways to write the same; a wiki's export has front matter, a database's has lines."""
    (tmp_path / "a.jsonl").write_text(
        '{"id": "lines", "text": "new", "version": 2, "valid_from": "2026-06-01T00:00:00Z"}\n'
        '{"id": "lines", "text": "old", "version": 1, "valid_from": "2026-01-01"}\n'
    )
    (tmp_path / "matter.md").write_text("---\nversion: seven\nvalid_from: 2026-06-01\n---\nThe text.")
    source = FolderReferences(tmp_path)

    async def fetched(doc_id: str, at: datetime, version: str | None = None) -> str:
        found = await source.fetch(Reference(id=doc_id), at=at, version=version)
        return f"{found.version} {found.text}" if isinstance(found, Document) else found.gap

    assert await fetched("lines", JANUARY) == "1 old"
    assert await fetched("lines", JUNE) == "2 new"
    assert await fetched("lines", JUNE, "1") == "1 old"
    assert await fetched("lines", JUNE, "9") == Gap.NOT_IN_FORCE
    assert await fetched("matter", JUNE) == "seven The text."
    assert await fetched("matter", JANUARY) == Gap.NOT_IN_FORCE


async def test_of_several_gaps_the_one_is_told_that_says_most() -> None:
    """`no such document` would be wrong where a source did not answer."""

    class Out:
        async def fetch(
            self, reference: Reference, *, at: datetime, version: str | None = None
        ) -> NoDocument:
            del at, version
            return NoDocument(id=reference.id, gap=Gap.UNAVAILABLE, reason="down")

        async def close(self) -> None: ...

    chain = Chain([EventReferences(max_chars=1000), Out(), EventReferences(max_chars=1000)])
    found = await chain.fetch(Reference(id="x"), at=JUNE)

    assert isinstance(found, NoDocument)
    assert found.gap is Gap.UNAVAILABLE


def a_manual(sections: int = 200) -> str:
    topics = ("lamps", "tables", "beds", "carpets", "mirrors")
    parts = [
        f"## Section {number}\n\nAbout {topics[number % 5]} of series {number}: they are cleaned with a dry cloth. "
        + "General words about care and use. " * 12
        for number in range(sections)
    ]
    parts[137] = (
        "## Refunds\n\nA refund for cancelled orders is paid within 14 days to the card that was charged."
    )
    return "# The manual\n\n" + "\n\n".join(parts)


def test_of_a_large_document_the_passages_that_matter_are_shown() -> None:
    """A prompt has room for a tenth of it; the beginning alone would never hold the answer."""
    text = a_manual()
    shown = BM25Passages(keep_chars=6_000)(
        Document.of("manual", text), "When is the refund for my cancelled order paid?"
    )

    assert "A refund for cancelled orders is paid within 14 days" in shown.text
    assert len(shown.text) < 6_000 + 100
    assert shown.text.startswith("# The manual")
    assert shown.version == Document.of("manual", text).version
    assert all(piece.strip() in text for piece in shown.text.split("[...]"))


def test_a_small_document_stays_whole() -> None:
    document = Document.of("small", "Short.")
    assert BM25Passages(keep_chars=6_000)(document, "anything") is document


def test_a_document_without_paragraphs_is_cut_at_sentences() -> None:
    """Some exports have no empty line; one passage of all would not fit."""
    text = (
        "A sentence about lamps. " * 2000 + "The refund is paid within 14 days. " + "More on lamps. " * 2000
    )
    shown = BM25Passages(keep_chars=5_000)(Document.of("flat", text), "refund paid")

    assert "The refund is paid within 14 days." in shown.text
    assert len(shown.text) <= 5_100
