"""Messages in, turns out: where one exchange ends and the next begins."""

from collections.abc import Iterable

from monitor.intake.event import Message, Role


def split_turns(messages: Iterable[Message]) -> tuple[tuple[Message, ...], ...]:
    """Cut a transcript into exchanges, in order; every message is in exactly one of them.

    A turn is what the user said (one message or several in a row) up to the assistant's final reply, with its
    tool steps. What stands before the first user message (a system prompt, a greeting) belongs to the first
    turn; a last user message that nobody answered is a turn of its own.
    """
    turns: list[list[Message]] = []
    user_spoke = answered = False
    for message in messages:
        starts = message.role is Role.USER and user_spoke and answered
        if starts or not turns:
            turns.append([])
            user_spoke = answered = False
        turns[-1].append(message)
        if message.role is Role.USER:
            user_spoke = True
        elif message.role in {Role.ASSISTANT, Role.TOOL}:
            answered = user_spoke
    return tuple(tuple(turn) for turn in turns)
