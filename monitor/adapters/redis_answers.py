"""Judges' answers by judgment id, so that a redelivered request is answered and not paid again."""

from monitor.adapters.redis_functions import Client, guarded
from monitor.adapters.redis_keys import Keys
from monitor.judging.judgment import JUDGMENT_RECORD, JudgeFailure, Judgment


class RedisAnswers:
    """The port `Answers`."""

    def __init__(self, client: Client, keys: Keys, *, keep_days: int) -> None:
        """Keep each answer for as long as its conversation's record."""
        self._client = client
        self._keys = keys
        self._keep_seconds = keep_days * 86_400

    async def get(self, judgment_id: str) -> Judgment | JudgeFailure | None:
        """Return the answer that was given under this id."""
        with guarded("answers"):
            raw = await self._client.get(self._keys.plain("answer", judgment_id))
        return JUDGMENT_RECORD.validate_json(raw) if raw else None

    async def put(self, record: Judgment | JudgeFailure) -> None:
        """Keep an answer."""
        with guarded("answers"):
            await self._client.set(
                self._keys.plain("answer", record.judgment_id),
                record.model_dump_json(),
                ex=self._keep_seconds,
            )

    async def forget(self, judgment_ids: list[str]) -> None:
        """Erase answers, with the words in them."""
        with guarded("answers"):
            for judgment_id in judgment_ids:
                await self._client.delete(self._keys.plain("answer", judgment_id))
