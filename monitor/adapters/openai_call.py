"""What one judgment has cost and shown so far, over all its calls and attempts."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from tenacity import RetryCallState

from monitor.intake.redaction import mask_text
from monitor.judging.judge import JudgeReply, NotScored, Scored
from monitor.judging.judgment import JudgeRequest, Trace, Usage
from monitor.judging.policy import Price
from monitor.judging.prompt import Prompt

REPLY_CHARS = 4000
"""Of a raw reply that are kept with the judgment. Raising it costs memory in Redis and space in Kafka."""

_MASK_CHARS = 400
"""More that are masked before the cut, so that no address is cut in two and then not known as one."""


class Call:
    """One judgment under way. Its deadline runs from its first turn at the endpoint, not from the end of the line."""

    def __init__(self, now: Callable[[], float], *, deadline_seconds: float) -> None:
        self._now = now
        self._started = now()
        self._deadline_seconds = deadline_seconds
        self._deadline_at: float | None = None
        self.clock: asyncio.Timeout | None = None
        self.attempts = 0
        self._prompt_tokens = 0
        self._completion_tokens = 0
        self._waited = 0.0
        self._model_answered: str | None = None
        self._prompts: Sequence[Prompt] = ()
        self._replies: dict[int, str] = {}

    def attempt(self, waited_seconds: float) -> None:
        """Note that an attempt has its slot now."""
        self.attempts += 1
        self._waited += waited_seconds
        if self._deadline_at is None:
            self._deadline_at = self._now() + self._deadline_seconds
            if self.clock is not None:
                self.clock.reschedule(self._deadline_at)

    def would_be_late(self, state: RetryCallState) -> bool:
        """Tell whether the next attempt would begin after the deadline; a wait for nothing is not begun."""
        return self._deadline_at is not None and self._now() + state.upcoming_sleep > self._deadline_at

    async def sleep(self, seconds: float) -> None:
        """Wait between two attempts, with no slot held."""
        self._waited += seconds
        await asyncio.sleep(seconds)

    def shown(self, prompts: Sequence[Prompt]) -> None:
        """Note what is asked."""
        self._prompts = prompts

    def answered(self, prompt: Prompt, response: dict[str, Any], words: str) -> None:
        """Note an answer: tokens of each, the words of the last."""
        usage = response.get("usage")
        if isinstance(usage, dict):
            self._prompt_tokens += _whole(usage.get("prompt_tokens"))
            self._completion_tokens += _whole(usage.get("completion_tokens"))
        model = response.get("model")
        self._model_answered = model if isinstance(model, str) else None
        self._replies[id(prompt)] = words[: REPLY_CHARS + _MASK_CHARS]

    def closed(
        self, reply: JudgeReply, request: JudgeRequest, *, presentation: str, price: Price | None
    ) -> JudgeReply:
        """Return the reply with all that is known of how it came about."""
        tokens = {"prompt_tokens": self._prompt_tokens, "completion_tokens": self._completion_tokens}
        usage = Usage(
            latency_seconds=self._now() - self._started,
            attempts=self.attempts,
            waited_seconds=self._waited,
            cost=price.of(**tokens) if price else None,
            **tokens,
        )
        hashes = [prompt.hash for prompt in self._prompts]
        trace = Trace(
            presentation=presentation,
            prompt_hash=hashes[0] if len(hashes) == 1 else _joined(hashes),
            cut_turns=request.conversation.cut_turns,
            cut_characters=max((prompt.cut_characters for prompt in self._prompts), default=0),
            replies=tuple(
                # The transcript came masked; a document, or the model's own knowledge, did not.
                mask_text(words, key=request.conversation.id)[:REPLY_CHARS]
                for prompt in self._prompts
                if (words := self._replies.get(id(prompt)))
            ),
        )
        match reply:
            case Scored():
                return Scored(
                    scores=reply.scores, model_answered=self._model_answered, usage=usage, trace=trace
                )
            case NotScored():
                return NotScored(kind=reply.kind, reason=reply.reason, usage=usage, trace=trace)


def _joined(hashes: list[str]) -> str:
    return hashlib.blake2b("".join(hashes).encode(), digest_size=6).hexdigest() if hashes else ""


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
