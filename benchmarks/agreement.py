"""Agreement of judges with people on two public corpora: the rules, and a model asked in three ways.

    python benchmarks/agreement.py CORPUS                                        the rules only, on all cases
    python benchmarks/agreement.py CORPUS --base-url URL --model NAME --sample 40 --kept answers.jsonl

CORPUS is a folder with ratings/begin.jsonl (is an answer attributable to its document?) and
summaries/circumstantial.jsonl (does a summary hold a factual error?); what is not there is skipped. A model is asked
about a sample, half of it good by the people's word, drawn by hash with the seed; its answers are kept, so that a
later run goes on where one ended. Only factual_correctness is compared. The last line is JSON.
"""

import argparse
import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from monitor.adapters.openai_endpoint import Endpoint
from monitor.adapters.openai_judge import OpenAIJudge
from monitor.conversations.conversation import Conversation, EndReason, Turn
from monitor.intake.event import Message, Reference, Role
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judge import Judge
from monitor.judging.judgment import JUDGMENT_RECORD, JudgeRequest, Judgment, Record, Target
from monitor.judging.limiter import LimiterPolicy
from monitor.judging.policy import Ability, Presentation, Scoring
from monitor.judging.references import EventReferences
from monitor.judging.rubric import Rubric, TargetKind
from monitor.judging.rules import RuleJudge
from monitor.policy import load_policy
from monitor.review.calibrate import Labels, report_on
from monitor.review.threshold import Probability, area_under_curve

AT = datetime(2026, 3, 10, tzinfo=UTC)
FACTS = "factual_correctness"
PASSES = 2
"""Place of level 4 among the probabilities of levels 2 to 5: people said yes or no, which is pass or not."""
DEADLINE_SECONDS = 3600.0
"""A small model on a busy machine is slow; what it can do is measured here, not how fast."""


class Case(NamedTuple):
    """One case; people said yes or no, which is 5 or 1 here, so pass@4 is what to look at."""

    name: str
    good: bool
    request: JudgeRequest

    @property
    def labels(self) -> Labels:
        """Return what people said."""
        return Labels(case=self.name, labels={"people": {FACTS: 5 if self.good else 1}})


def a_case(name: str, asked: str, answer: str, document: str, *, good: bool) -> Case:
    """Return one case: a question, an answer and the document to judge it by."""
    messages = (Message(role=Role.USER, content=asked), Message(role=Role.ASSISTANT, content=answer))
    turn = Turn(
        event_id=name, occurred_at=AT, messages=messages, references=(Reference(id="d", text=document),)
    )
    request = JudgeRequest(
        target=Target(kind=TargetKind.CONVERSATION, conversation_id=name),
        conversation=Conversation(id=name, turns=(turn,), ended=EndReason.WHOLE, rate=1.0),
        rate=1.0,
        observed_at=AT,
        requested_at=AT,
    )
    return Case(name, good, request)


def begin(lines: list[str]) -> list[Case]:
    """Read BEGIN: attributable or not; generic answers claim nothing and are left out."""
    return [
        a_case(
            one["id"],
            one["message"],
            one["response"],
            one["knowledge"],
            good=one["label"].startswith("Fully"),
        )
        for one in map(json.loads, lines)
        if one["label"] != "Generic"
    ]


def summaries(lines: list[str]) -> list[Case]:
    """Read summaries with human marks of factual errors; the dialogue is the document."""
    return [
        a_case(
            f"{one['id']}-{place}",
            "Summarise the conversation.",
            each["summary"],
            one["dialogue"],
            good=not each["factual_error"],
        )
        for one in map(json.loads, lines)
        for place, each in enumerate(one["summaries"])
    ]


CORPORA: dict[str, Callable[[list[str]], list[Case]]] = {
    "ratings/begin.jsonl": begin,
    "summaries/circumstantial.jsonl": summaries,
}


def sampled(cases: list[Case], count: int, seed: int) -> list[Case]:
    """Return so many cases, half of them good, in an order in which a smaller sample is the head of a larger."""

    def place(case: Case) -> str:
        return hashlib.blake2b(f"{seed}\x1f{case.name}".encode(), digest_size=8).hexdigest()

    good = sorted((case for case in cases if case.good), key=place)
    bad = sorted((case for case in cases if not case.good), key=place)
    return [case for pair in zip(good, bad, strict=False) for case in pair][:count]


class Kept:
    """Answers of the model in a file, one a line."""

    def __init__(self, path: Path | None) -> None:
        """Read what is there."""
        self._path = path
        self._known: dict[tuple[str, str], tuple[Record, float]] = {}
        if path and path.is_file():
            for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                record = JUDGMENT_RECORD.validate_python(line["record"])
                self._known[line["way"], line["case"]] = record, line["seconds"]

    def get(self, way: str, case: str) -> tuple[Record, float] | None:
        """Return an answer and how long it took."""
        return self._known.get((way, case))

    def put(self, way: str, case: str, record: Record, seconds: float) -> None:
        """Keep an answer."""
        self._known[way, case] = record, seconds
        if self._path:
            told = {
                "way": way,
                "case": case,
                "seconds": round(seconds, 2),
                "record": record.model_dump(mode="json"),
            }
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")


WAYS = ("probability", "single", "all")


def judges_of(rubric: Rubric, base_url: str, model: str) -> dict[str, Judge]:
    """Return the judges: all questions in one call, the one question by itself, and by its probability."""
    endpoint = Endpoint(
        api_key="none",
        base_url=base_url,
        timeout_seconds=DEADLINE_SECONDS / 3,
        limits=LimiterPolicy(concurrency_max=1),
    )
    # Asked by itself, one question's prompt is the same whatever else the rubric holds.
    facts = Rubric(dimensions=tuple(one for one in rubric.dimensions if one.name == FACTS))

    def judge(asked: Rubric, **how: Any) -> Judge:
        return OpenAIJudge(
            asked,
            EventReferences(max_chars=200_000),
            model=model,
            endpoint=endpoint,
            timeout_seconds=DEADLINE_SECONDS / 3,
            deadline_seconds=DEADLINE_SECONDS,
            ability=Ability.JSON_SCHEMA,
            **how,
        )

    return {
        "probability": judge(facts, scoring=Scoring.PROBABILITY),
        "single": judge(facts, presentation=Presentation.SINGLE),
        "all": judge(rubric, presentation=Presentation.ALL),
    }


async def judged(judge: Judge, rubric: Rubric, cases: list[Case], kept: Kept, way: str) -> dict[str, Record]:
    """Judge all cases, one after the other; what is kept is not asked again."""
    limits = ExecutorPolicy(deadline_seconds=DEADLINE_SECONDS + 60, max_age=timedelta(days=1))
    executor = Executor(judge, Unkept(), rubric.version, limits)
    for case in cases:
        if kept.get(way, case.name) is None:
            began = time.monotonic()
            record = await executor.record_of(case.request, now=lambda: AT)
            kept.put(way, case.name, record, time.monotonic() - began)
    found = {case.name: kept.get(way, case.name) for case in cases}
    return {name: one[0] for name, one in found.items() if one is not None}


def told(cases: list[Case], records: dict[str, Record]) -> dict[str, Any]:
    """Return the figures of one way on one corpus."""
    report = report_on([case.labels for case in cases], records)
    (facts,) = report.dimensions
    sure = [
        Probability(case.name, probability, case.good)
        for case in cases
        if (probability := _sureness(records[case.name])) is not None
    ]
    area = area_under_curve(sure)
    return {
        "cases": len(cases),
        "good": sum(case.good for case in cases),
        "failed": report.failed,
        "abstained": facts.judge_abstained,
        "auc": None if area is None else round(area, 3),
        **facts.judge.model_dump(
            include={"n", "pass_at_4", "critical_recall", "critical_precision", "kappa", "ac1"}
        ),
        "words": facts.judge.pass_at_4.words,
    }


def _sureness(record: Record) -> float | None:
    """Return how sure a judge is that the answer passes: a probability, or its score where it writes one."""
    if not isinstance(record, Judgment):
        return None
    score = next(one for one in record.scores if one.dimension == FACTS)
    if score.probabilities:
        return score.probabilities[PASSES]
    return None if score.score is None else score.score / 5


def shown(corpus: str, way: str, figures: dict[str, Any], seconds: float | None = None) -> None:
    """Print one line of the table."""
    took = "" if seconds is None else f"; {seconds:.1f} s a judgment"
    print(
        f"{corpus} {way}: {figures['cases']} cases ({figures['good']} good), {figures['failed']} failed, "
        f"{figures['abstained']} abstained; pass@4 {figures['words']}; kappa {figures['kappa']['value']}; "
        f"AUC {figures['auc']}{took}",
        flush=True,
    )


async def compared(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all ways on all corpora that are there."""
    rubric = load_policy().rubric
    rules = RuleJudge(rubric, EventReferences(max_chars=200_000))
    kept = Kept(chosen.kept)
    judges = judges_of(rubric, chosen.base_url, chosen.model) if chosen.base_url else {}
    read: dict[str, list[Case]] = {}
    for name, reader in CORPORA.items():
        path = chosen.corpus / name
        if path.is_file():
            read[name] = reader([line for line in path.read_text("utf-8").splitlines() if line.strip()])
        else:
            print(f"{name}: not here, skipped")
    found: dict[str, Any] = {}
    for name, cases in read.items():
        sample = sampled(cases, chosen.sample, chosen.seed)
        for way, some in {"rules": cases, "rules, same sample": sample if judges else []}.items():
            if some:
                found[f"{name} {way}"] = told(some, await judged(rules, rubric, some, Kept(None), way))
                shown(name, way, found[f"{name} {way}"])
    for way in chosen.ways if judges else ():
        for name, cases in read.items():
            sample = sampled(cases, chosen.sample, chosen.seed)
            records = await judged(judges[way], rubric, sample, kept, way)
            took = [one[1] for case in sample if (one := kept.get(way, case.name))]
            found[f"{name} {way}"] = told(sample, records)
            shown(name, way, found[f"{name} {way}"], sum(took) / len(took))
    for judge in judges.values():
        await judge.close()
    return found


def main() -> None:
    """Print what each corpus says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--base-url", help="of an endpoint that speaks OpenAI's protocol, with json_schema")
    parser.add_argument("--model", default="model")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="file of the model's answers")
    print(json.dumps(asyncio.run(compared(parser.parse_args()))))


if __name__ == "__main__":
    main()
