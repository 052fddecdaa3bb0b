"""Agreement of the rule judge with people on two public corpora; the last line is JSON. Skips what is not there."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from monitor.conversations.conversation import Conversation, EndReason, Turn
from monitor.intake.event import Message, Reference, Role
from monitor.judging.cascade import Unkept
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.judging.judgment import JudgeRequest, Record, Target
from monitor.judging.references import EventReferences
from monitor.judging.rubric import TargetKind
from monitor.judging.rules import RuleJudge
from monitor.policy import load_policy
from monitor.review.calibrate import Labels, report_on

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
PLACES = (CORPUS,)
AT = datetime(2026, 3, 10, tzinfo=UTC)
FACTS = "factual_correctness"
Case = tuple[Labels, JudgeRequest]


def a_case(name: str, asked: str, answer: str, document: str, *, good: bool) -> Case:
    """Return one case; people said yes or no, which is 5 or 1 here, so pass@4 is what to look at."""
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
    return Labels(case=name, labels={"people": {FACTS: 5 if good else 1}}), request


def begin(lines: list[str]) -> list[Case]:
    """Read BEGIN: attributable or not; generic answers claim nothing and are left out."""
    told = [json.loads(line) for line in lines]
    return [
        a_case(
            one["id"],
            one["message"],
            one["response"],
            one["knowledge"],
            good=one["label"].startswith("Fully"),
        )
        for one in told
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


async def judged(cases: list[Case]) -> dict[str, Record]:
    """Judge all cases by the rules."""
    policy = load_policy()
    judge = RuleJudge(policy.rubric, EventReferences(max_chars=200_000))
    limits = ExecutorPolicy(deadline_seconds=30, max_age=timedelta(days=1))
    executor = Executor(judge, Unkept(), policy.rubric.version, limits)
    return {labels.case: await executor.record_of(request, now=lambda: AT) for labels, request in cases}


def main() -> None:
    """Print what each corpus says."""
    found = {}
    for name, read in (("ratings/begin.jsonl", begin), ("summaries/circumstantial.jsonl", summaries)):
        path = next((place / name for place in PLACES if (place / name).is_file()), None)
        if path is None:
            print(f"{name}: not here, skipped")
            continue
        cases = read([line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()])
        (facts,) = report_on([labels for labels, _ in cases], asyncio.run(judged(cases))).dimensions
        told = facts.judge
        print(f"{name}: {len(cases)} cases, the rules abstain on {facts.judge_abstained}")
        print(f"  pass@4 {told.pass_at_4.words}; kappa {told.kappa.value}; AC1 {told.ac1.value}")
        print(f"  critical: found {told.critical_recall.words}, right {told.critical_precision.words}")
        found[name] = {
            "cases": len(cases),
            "abstained": facts.judge_abstained,
            **told.model_dump(
                include={"n", "pass_at_4", "critical_recall", "critical_precision", "kappa", "ac1"}
            ),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
