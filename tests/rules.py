"""The rule judge over one exchange, and the policy of an invented library that it judges by."""

from collections.abc import Sequence

from monitor.intake.event import Message
from monitor.judging.judge import Scored
from monitor.judging.judgment import DimensionScore
from monitor.judging.rules import RuleJudge
from tests.conversations import Shelf, a_conversation, a_request, assistant, the_rubric, user

POLICY = """\
# Loans policy of a library

## Borrowing

- Books are lent for 21 days; films for 7 days.
- A reservation costs $1.50 and is held for 5 business days.
- Overdue books cost 20 cents; a lost book costs $35.
- Members under 16 need a signed form and 1 photo.
- A book can be renewed only while nobody else has reserved it.

## What cannot be borrowed

- Atlases, newspapers and rare prints.

## Forbidden

- Never promise a delivery date.
- The assistant must not waive late fees or make an exception of any kind.
- Never confirm what another member has borrowed.

## Contact

- The desk replies within 2 business days: desk@library.example
"""


async def scored(
    *turns: Sequence[Message], policy: str | None = POLICY, turn: int | None = 0
) -> dict[str, DimensionScore]:
    documents = {} if policy is None else {"loans": policy}
    judge = RuleJudge(the_rubric(), Shelf(**documents))
    conversation = a_conversation(*turns, documents=[f"{name}.md" for name in documents])
    reply = await judge.judge(a_request(conversation, turn=turn))
    assert isinstance(reply, Scored)
    return {score.dimension: score for score in reply.scores}


async def score_of(
    dimension: str, answer: str, *, asked: str = "How does this work?", policy: str | None = POLICY
) -> DimensionScore:
    return (await scored([user(asked), assistant(answer)], policy=policy))[dimension]


async def facts(answer: str, **context: str) -> DimensionScore:
    return await score_of("factual_correctness", answer, **context)


async def policy(answer: str, **context: str) -> DimensionScore:
    return await score_of("policy_adherence", answer, **context)
