"""What `config/monitor.yaml` says of conversations: when they count as over, and how long they are kept."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ConversationPolicy(BaseModel):
    """Limits of a conversation, in seconds of the deployment's clock unless said otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle_seconds: Annotated[int, Field(ge=1)] = 1800
    max_age_seconds: Annotated[int, Field(ge=1)] = 86_400
    end_grace_seconds: Annotated[int, Field(ge=0)] = 30
    max_turns: Annotated[int, Field(ge=1, le=2000)] = 200
    max_chars: Annotated[int, Field(ge=1000, le=1_000_000)] = 200_000
    keep_texts_hours: Annotated[int, Field(ge=1)] = 72
    keep_records_days: Annotated[int, Field(ge=1)] = 9
