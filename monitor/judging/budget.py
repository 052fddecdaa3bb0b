"""What judging may cost: claims on an hour, a day and a tenant's day in, kept or thinned out. Time is an argument.

Near the end of a budget sampling is thinned in a stated order: anchors and audits first, then single turns, then whole
conversations, and checks for critical failures last. What is kept is kept with a known share, which multiplies its
rate, so that the windows stay unbiased; what is not is `thinned`, shown beside every figure and no fault of the
judge. Where a budget is used up everything is refused as `budget`, which nothing stands for: coverage shows it.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from monitor.intake.event import Thumb
from monitor.judging.cascade import AUDIT_RULE
from monitor.judging.judgment import JudgeRequest, Place, Usage
from monitor.judging.policy import BudgetSection, Price
from monitor.judging.rubric import TargetKind

MICRO = 1_000_000
"""Money is counted in whole millionths, for sums of floats differ by their order."""
TOKENS_A_CHARACTER = 0.3
_HOUR, _DAY = 3600, 86_400


class Importance(StrEnum):
    """Of one judgment; in this order they are thinned, the first two at once."""

    ANCHOR = "anchor"
    AUDIT = "audit"
    TURN = "turn"
    CONVERSATION = "conversation"
    CRITICAL = "critical"


_THINNED = (
    (Importance.ANCHOR, Importance.AUDIT),
    (Importance.TURN,),
    (Importance.CONVERSATION,),
)


class Claim(NamedTuple):
    """So much of one budget."""

    name: str
    """Of the budget and its period; a new period is a new name."""
    limit: int
    amount: int
    keep_seconds: int


class Reserved(NamedTuple):
    """Whether there was room for all claims, and how full the fullest budget was before."""

    granted: bool
    fill: float


class Purse(Protocol):
    """Where all workers count together."""

    async def reserve(self, claims: Sequence[Claim]) -> Reserved:
        """Take all claims in one step, or none if one of them has no room."""
        ...

    async def settle(self, claims: Sequence[Claim]) -> None:
        """Add what it cost beyond what was reserved; amounts below zero give back."""
        ...


def share_kept(importance: Importance, fill: float, *, thin_from: float) -> float:
    """Return the share that is judged at this fill: each class is thinned to nothing before the next begins."""
    if importance is Importance.CRITICAL:
        return 1.0
    width = (1 - thin_from) / len(_THINNED)
    place = next(place for place, together in enumerate(_THINNED) if importance in together)
    begins = thin_from + width * place
    return min(1.0, max(0.0, 1 - (fill - begins) / width))


def is_kept(judgment_id: str, share: float) -> bool:
    """Draw by hash, so that a redelivered request has the same luck at the same fill."""
    digest = hashlib.blake2b(f"budget\x1f{judgment_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


def importance_of(request: JudgeRequest, *, suspected: bool) -> Importance:
    """Tell how important a judgment is; suspected: the rules have found a critical failure.

    An audit is a second look at what chance chose: the first stage has judged it, so nothing can be missed by it.
    """
    phase = request.phase
    if phase is not None and phase.place is Place.SECOND and phase.rule == AUDIT_RULE:
        return Importance.AUDIT
    turns = (request.turn,) if request.turn else request.conversation.turns
    complained = any(turn.signals.thumb is Thumb.DOWN or turn.signals.escalated for turn in turns)
    if suspected or complained:
        return Importance.CRITICAL
    return Importance.TURN if request.target.kind is TargetKind.TURN else Importance.CONVERSATION


def reckoned_tokens(request: JudgeRequest, *, fixed: int, calls: int) -> int:
    """Return about how many tokens a judgment will take; `fixed` are those of the rules and the reply of one call."""
    characters = sum(len(message.content) for turn in request.conversation.turns for message in turn.messages)
    return calls * (fixed + int(characters * TOKENS_A_CHARACTER))


def claims_of(
    budget: BudgetSection, *, tenant: str, tokens: int, money: float, now: datetime
) -> tuple[Claim, ...]:
    """Return the claims of one judgment on all limited budgets; periods are those of UTC."""
    hour, day = f"{now:%Y-%m-%dT%H}", f"{now:%Y-%m-%d}"
    limits = (
        ("hour", hour, _HOUR, budget.tokens_per_hour, budget.money_per_hour),
        ("day", day, _DAY, budget.tokens_per_day, budget.money_per_day),
        (f"tenant:{tenant}", day, _DAY, budget.tokens_per_tenant_day, budget.money_per_tenant_day),
    )
    found = []
    for scope, period, seconds, of_tokens, of_money in limits:
        if of_tokens is not None:
            found.append(Claim(f"tokens:{scope}:{period}", of_tokens, tokens, 2 * seconds))
        if of_money is not None:
            # A judgment is never free of charge: its claim is at least one millionth.
            amount = max(1, round(money * MICRO))
            found.append(Claim(f"money:{scope}:{period}", round(of_money * MICRO), amount, 2 * seconds))
    return tuple(found)


def difference(claims: Sequence[Claim], usage: Usage | None) -> tuple[Claim, ...]:
    """Return what is to be settled: what was used less what was reserved; None: nothing was used."""
    used = {
        "tokens": usage.prompt_tokens + usage.completion_tokens if usage else 0,
        "money": round((usage.cost or 0.0) * MICRO) if usage else 0,
    }
    return tuple(claim._replace(amount=used[claim.name.partition(":")[0]] - claim.amount) for claim in claims)


def money_of(tokens: int, *, answer_tokens: int, price: Price | None) -> float:
    """Return what a reckoned judgment costs at most."""
    if price is None:
        return 0.0
    return price.of(prompt_tokens=max(0, tokens - answer_tokens), completion_tokens=answer_tokens)
