"""Whether a conversation is one of the monitor's own calls that came back to it as traffic: it is never judged."""

from monitor.intake.event import Role
from monitor.judging.judgment import JudgeRequest
from monitor.judging.prompt import SIGNATURE

OWN_ASSISTANT = "conversation-monitor"
"""The name under which the monitor's own calls may be told; events with it are never judged."""


def is_own(request: JudgeRequest) -> bool:
    """Tell by name, or by the signature at the head of a system message; users cannot write those."""
    conversation = request.conversation
    if conversation.attributes.assistant == OWN_ASSISTANT:
        return True
    return any(
        message.role is Role.SYSTEM and message.content.lstrip().startswith(SIGNATURE)
        for turn in conversation.turns
        for message in turn.messages
    )
