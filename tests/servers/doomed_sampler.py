"""A sampler that kills itself by SIGKILL at a named point of a round: what a `kill -9` does, at the worst moment.

Run as `python -m tests.servers.doomed_sampler POINT ROUND BATCH`, with the settings in the environment. ROUND counts
the rounds that had messages, from 1.
"""

import os
import signal
import sys
from typing import Any

import agents.sample
from agents.sampling import build_loop
from monitor.policy import load_policy
from monitor.settings import Settings

POINTS = ("sending", "sent", "recording", "recorded", "committed")
"""Half is on its way; all is confirmed; one partition is recorded; all are; the offsets are committed."""
SESSION_SECONDS = 2


class _Quick(Settings):
    """A session so short that the next sampler need not wait long for this one's partitions."""

    @property
    def confluent(self) -> dict[str, str | int]:
        return super().confluent | {"heartbeat.interval.ms": 300, "log_level": 0}


class _Doom:
    """Counts the rounds that had messages, and ends the process in the last one."""

    def __init__(self, point: str, last_round: int) -> None:
        self._point = point
        self._last_round = last_round
        self._rounds = 0

    def lurks_in(self, loop: Any) -> None:
        """Put itself around the steps of a round."""
        send, record, commit = loop._send, loop._store.record, loop._commit

        def sending(sampled: Any) -> None:
            self._rounds += 1
            if self._is_at("sending"):
                sampled.forward = sampled.forward[: len(sampled.forward) // 2]
                sampled.buried = sampled.buried[:1]
            send(sampled)
            self._strike("sending")
            self._strike("sent")

        def recording(*arguments: Any, **options: Any) -> Any:
            answer = record(*arguments, **options)
            self._strike("recording")
            return answer

        def committing(sampled: Any) -> None:
            self._strike("recorded")
            commit(sampled)
            self._strike("committed")

        loop._send, loop._store.record, loop._commit = sending, recording, committing

    def _is_at(self, point: str) -> bool:
        return point == self._point and self._rounds >= self._last_round

    def _strike(self, point: str) -> None:
        if self._is_at(point):
            os.kill(os.getpid(), signal.SIGKILL)


def main(point: str, last_round: int, batch: int) -> None:
    """Sample until the point comes."""
    agents.sample.BATCH = batch
    # Shorter than production may be: a copy is not validated.
    settings = _Quick().model_copy(update={"session_timeout_seconds": SESSION_SECONDS})
    loop = build_loop(settings, load_policy(settings.config, clock=settings.clock))
    _Doom(point, last_round).lurks_in(loop)
    loop.run(lambda: False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
