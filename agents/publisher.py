"""The port `Publisher` on the producer of a Faust app."""

import asyncio
from collections.abc import Sequence
from typing import Any

from aiokafka.errors import KafkaError

from monitor.publishing import Outgoing, PublishError

CONFIRM_TIMEOUT_SECONDS = 30.0
"""How long a hop waits for the broker; below the time after which the group takes the partition away."""


class FaustPublisher:
    """Sends through a Faust app's producer and waits until the broker has it all."""

    def __init__(self, app: Any) -> None:
        """Take the app; its producer is started with it."""
        self._app = app

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """Send in order and return when all are confirmed."""
        if not messages:
            return
        try:
            async with asyncio.timeout(CONFIRM_TIMEOUT_SECONDS):
                confirmations = [
                    await self._app.producer.send(
                        message.topic,
                        message.key,
                        message.value,
                        message.partition,
                        None,
                        list(message.headers),
                    )
                    for message in messages
                ]
                await asyncio.gather(*confirmations)
        except (KafkaError, TimeoutError) as error:
            raise PublishError(f"{messages[0].topic}: {type(error).__name__}: {error}") from error
