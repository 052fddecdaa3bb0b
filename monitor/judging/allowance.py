"""Whether a judgment may be paid for: a request in, granted with its share or refused; settled when it is answered."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from monitor.judging.budget import (
    Claim,
    Importance,
    Purse,
    claims_of,
    difference,
    importance_of,
    is_kept,
    money_of,
    reckoned_tokens,
    share_kept,
)
from monitor.judging.judge import NotScored
from monitor.judging.judgment import FailureKind, JudgeRequest, Usage
from monitor.judging.policy import BudgetSection, Price

RULES_TOKENS = 2000
"""What the rules of a prompt and the rubric take, reckoned on the safe side; settled afterwards."""


class Granted(NamedTuple):
    """What was decided, and what is to be settled."""

    refused: NotScored | None = None
    share: float = 1.0
    claims: tuple[Claim, ...] = ()


class Allowance:
    """One budget for all workers."""

    def __init__(
        self,
        purse: Purse,
        budget: BudgetSection,
        *,
        price: Price | None = None,
        answer_tokens: int = 500,
        calls: int = 1,
        suspects: Callable[[JudgeRequest], Awaitable[bool]] | None = None,
        importance: Importance | None = None,
    ) -> None:
        """Take the purse and the limits; `suspects` asks the rules, and only when the budget nears its end.

        With an `importance` all that is asked has that one.
        """
        self._purse = purse
        self._budget = budget
        self._price = price
        self._answer_tokens = answer_tokens
        self._calls = calls
        self._suspects = suspects
        self._fixed = importance
        self.fill: float | None = None
        """How full the fullest budget was at the last request; None before the first."""

    async def ask(self, request: JudgeRequest, judgment_id: str, *, now: datetime) -> Granted:
        """Reserve what a judgment may cost, or say why it is not judged."""
        tokens = reckoned_tokens(request, fixed=RULES_TOKENS + self._answer_tokens, calls=self._calls)
        money = money_of(tokens, answer_tokens=self._answer_tokens * self._calls, price=self._price)
        tenant = request.conversation.attributes.tenant
        claims = claims_of(self._budget, tenant=tenant, tokens=tokens, money=money, now=now)
        reserved = await self._purse.reserve(claims)
        self.fill = reserved.fill
        if not reserved.granted:
            return Granted(NotScored(kind=FailureKind.BUDGET, reason="judge.budget is used up"))
        if reserved.fill < self._budget.thin_from:
            return Granted(claims=claims)
        importance = await self._importance(request)
        share = share_kept(importance, reserved.fill, thin_from=self._budget.thin_from)
        if is_kept(judgment_id, share):
            return Granted(share=share, claims=claims)
        await self._purse.settle(difference(claims, None))
        reason = f"judge.budget is {reserved.fill:.0%} used; {importance} is thinned out"
        return Granted(NotScored(kind=FailureKind.THINNED, reason=reason))

    async def settle(self, granted: Granted, usage: Usage) -> None:
        """Put what it cost in the place of what was reserved."""
        await self._purse.settle(difference(granted.claims, usage))

    async def count(self, request: JudgeRequest, usage: Usage, *, now: datetime) -> None:
        """Count what was spent without asking first: a fallback comes in the place of a judgment that was granted."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        if tokens:
            tenant = request.conversation.attributes.tenant
            money = usage.cost or 0.0
            await self._purse.settle(
                claims_of(self._budget, tenant=tenant, tokens=tokens, money=money, now=now)
            )

    async def _importance(self, request: JudgeRequest) -> Importance:
        if self._fixed is not None:
            return self._fixed
        suspected = self._suspects is not None and await self._suspects(request)
        return importance_of(request, suspected=suspected)
