"""`monitor schema`: the JSON Schemas of what goes in and what comes out."""

import json
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from monitor.alerting.receiver import Notification
from monitor.cli.asking import printed
from monitor.intake.event import (
    ChangeEvent,
    EndEvent,
    FeedbackEvent,
    SummaryEvent,
    TurnEvent,
    WholeConversationEvent,
)
from monitor.judging.judgment import JUDGMENT_RECORD
from monitor.topics import ALERTS, CHANGE_EVENTS, CONVERSATION_EVENTS, JUDGMENTS, SUMMARY_EVENTS

_CONVERSATION_EVENT: TypeAdapter[Any] = TypeAdapter(
    Annotated[
        TurnEvent | WholeConversationEvent | EndEvent | FeedbackEvent,
        Field(discriminator="type"),
    ]
)


def schema() -> None:
    """Print the JSON Schemas of all topics that others write or read, as one object by topic."""
    printed(json.dumps(schemas(), indent=2))


def schemas() -> dict[str, Any]:
    """Return the schemas by topic: the first three go in, the others come out."""
    return {
        CONVERSATION_EVENTS: _CONVERSATION_EVENT.json_schema(),
        SUMMARY_EVENTS: SummaryEvent.model_json_schema(),
        CHANGE_EVENTS: ChangeEvent.model_json_schema(),
        JUDGMENTS: JUDGMENT_RECORD.json_schema(mode="serialization"),
        ALERTS: Notification.model_json_schema(mode="serialization"),
    }
