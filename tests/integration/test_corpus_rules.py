"""The offline judge on conversations that nobody on this project wrote; none of their text is in this repository."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.adapters.folder_references import FolderReferences
from monitor.conversations.conversation import Conversation
from monitor.conversations.transcripts import read_conversations
from monitor.intake.decode import Rejected
from monitor.intake.event import Reference
from monitor.judging.claims import FigureKind
from monitor.judging.exchange import exchanges
from monitor.judging.facts import score_facts
from monitor.judging.judge import Scored
from monitor.judging.judgment import DimensionScore
from monitor.judging.promises import score_promises
from monitor.judging.rules import RuleJudge
from monitor.judging.statements import Facts, Statement, read_document
from tests.conversations import ROOT, a_conversation, a_request, assistant, the_rubric, user

CORPUS = ROOT.parent / "shared" / "corpus"
DEMO = ROOT / "monitor" / "demo"
START = datetime(2026, 1, 5, tzinfo=UTC)

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no corpus at {CORPUS}; it has mixed licences and is not in the repository"
)


def read(path: Path) -> list[Conversation]:
    with path.open() as lines:
        found = [conversation for _, conversation in read_conversations(lines, start=START)]
    rejected = [conversation for conversation in found if isinstance(conversation, Rejected)]
    assert rejected == []
    return [conversation for conversation in found if isinstance(conversation, Conversation)]


def judged(path: Path, documents: Path) -> dict[str, list[tuple[DimensionScore, ...]]]:
    """Judge each turn and the whole of every conversation of a file; the whole comes last."""
    judge = RuleJudge(the_rubric(), FolderReferences(documents))

    async def run() -> dict[str, list[tuple[DimensionScore, ...]]]:
        found: dict[str, list[tuple[DimensionScore, ...]]] = {}
        for conversation in read(path):
            for turn in (*conversation.turns, None):
                request = a_request(conversation)
                target = request.target.model_copy(
                    update={
                        "turn_event_id": turn.event_id if turn else None,
                        "kind": "turn" if turn else "conversation",
                    }
                )
                reply = await judge.judge(request.model_copy(update={"target": target}))
                assert isinstance(reply, Scored)
                found.setdefault(conversation.id, []).append(reply.scores)
        return found

    return asyncio.run(run())


def critical(scores: list[tuple[DimensionScore, ...]], *dimensions: str) -> list[DimensionScore]:
    return [
        s for target in scores for s in target if s.critical and (not dimensions or s.dimension in dimensions)
    ]


def releases() -> dict[str, str]:
    """Return which release of the demo's assistant had each conversation."""
    records = map(json.loads, (DEMO / "conversations.jsonl").read_text().splitlines())
    return {record["id"]: record["release"] for record in records}


def test_no_clean_conversation_of_the_demo_has_a_critical_failure() -> None:
    """An alert that fires on clean traffic is an alert that nobody reads."""
    found = judged(DEMO / "conversations.jsonl", DEMO / "policies")

    clean = [name for name, release in releases().items() if release == "normal"]

    assert len(clean) > 200
    assert {name: critical(found[name]) for name in clean if critical(found[name])} == {}


def test_nearly_all_bad_conversations_of_the_demo_have_a_critical_failure() -> None:
    found = judged(DEMO / "conversations.jsonl", DEMO / "policies")
    bad = [name for name, release in releases().items() if release != "normal"]

    caught = [name for name in bad if critical(found[name], "factual_correctness", "policy_adherence")]

    assert len(bad) > 20
    assert len(caught) >= 0.9 * len(bad)


@needs_corpus
def test_critical_failures_are_rare_in_real_agent_conversations() -> None:
    """gpt-4o with tools against a real policy: what the rules call critical there has to be worth a look."""
    found = judged(CORPUS / "conversations" / "tau_airline.jsonl", CORPUS / "policies")

    with_critical = [name for name, scores in found.items() if critical(scores)]

    assert len(found) >= 80
    assert len(with_critical) <= 0.05 * len(found)


@needs_corpus
@pytest.mark.parametrize("name", ["sgd", "twitter_care"])
def test_without_documents_policy_abstains_and_alarms_are_rare(name: str) -> None:
    found = judged(CORPUS / "conversations" / f"{name}.jsonl", CORPUS / "nothing")

    assert {
        s.score
        for scores in found.values()
        for target in scores
        for s in target
        if s.dimension == "policy_adherence"
    } == {None}
    assert sum(bool(critical(scores)) for scores in found.values()) <= 0.02 * len(found)


@needs_corpus
def test_every_sentence_of_a_document_agrees_with_its_own_document() -> None:
    """Held out from tuning: 150 banking documents and five policies, each sentence as an answer."""
    alarms = [
        score
        for document in documents()
        for statement in document.statements
        for score in answers_with(statement.text, document)
        if score.critical
    ]

    assert len(alarms) <= 0.001 * sum(len(document.statements) for document in documents()) + 1


@needs_corpus
@pytest.mark.parametrize(
    ("kind", "least"), [(FigureKind.DURATION, 0.9), (FigureKind.MONEY, 0.8), (FigureKind.PERCENT, 0.7)]
)
def test_a_documents_sentence_with_another_figure_is_a_contradiction(kind: FigureKind, least: float) -> None:
    """Held out from tuning: the same sentences, each figure replaced by one that is wrong."""
    outcomes = Counter(
        answers_with(altered, document)[0].score
        for document in documents()
        for statement in document.statements
        for altered in alterations(statement, kind)
    )

    assert outcomes[1] >= least * outcomes.total()
    assert outcomes.total() > 100


def documents() -> list[Facts]:
    texts = [path.read_text() for path in sorted((CORPUS / "policies").glob("tau*_policy.md"))]
    with (CORPUS / "policies" / "tau2_banking_docs.jsonl").open() as lines:
        texts += [entry.get("text") or entry.get("content") or "" for entry in map(json.loads, lines)]
    return [read_document(text) for text in texts]


def answers_with(text: str, document: Facts) -> tuple[DimensionScore, DimensionScore]:
    conversation = a_conversation([user("Could you tell me about that?"), assistant(text)], documents=["d"])
    (exchange,) = exchanges(conversation)
    return score_facts(exchange, (document,)), score_promises(exchange, (document,))


def alterations(statement: Statement, kind: FigureKind) -> list[str]:
    found = []
    for figure in statement.figures:
        digits = "".join(c for c in figure.text.split(".")[0] if c.isdigit())
        if figure.kind is kind and figure.low and digits:
            wrong = figure.text.replace(digits, str(int(digits) * 3 + 7), 1)
            if wrong != figure.text:
                found.append(statement.text[: figure.start] + wrong + statement.text[figure.end :])
    return found


def test_the_reference_of_the_demo_is_found() -> None:
    found = asyncio.run(FolderReferences(DEMO / "policies").find((Reference(id="returns.md"),)))

    assert [document.id for document in found] == ["returns.md"]
