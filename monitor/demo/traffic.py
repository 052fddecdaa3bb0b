"""Conversations of the shop in, eight days of its traffic out: the same each time, chance is a hash."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import xxhash

from monitor.intake.decode import Rejected
from monitor.intake.event import ChangeEvent, ChangeKind, ServedBy
from monitor.intake.formats.openai_chat import Shape, events_of

START = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday; the demo is the same on every day that it is run."""
DAYS = 8
CONVERSATIONS = 4000
RELEASE = START + timedelta(days=6, hours=9)
"""Day seven, in the morning."""
PROMPT_BEFORE, PROMPT_AFTER = "3f9c21aa", "b70e44d1"
COMMIT_BEFORE, COMMIT_AFTER = "a93c5f2", "e41d0b7"
BROKEN_INTENTS = ("returns", "warranty")
BROKEN_SHARE = 0.7
"""Share of conversations of the broken intents in which the new prompt promises what the policy forbids."""

# Shares of a day's traffic by hour, UTC: a shop sleeps at night.
_HOURS = (2, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 8, 7, 7, 7, 7, 7, 6, 6, 5, 4, 3, 3, 2)
_DUPLICATE_SHARE = 0.004
_THUMBS_DOWN_SHARE = 0.02
_ESCALATED_SHARE = 0.01
_NOT_EVENTS = (b'{"event_id": "half a li', b"<html>502 Bad Gateway</html>", b'{"type": "turn"}')


def conversations() -> list[dict[str, Any]]:
    """Read the shop's conversations."""
    text = (files("monitor.demo") / "conversations.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def traffic(count: int = CONVERSATIONS) -> list[tuple[datetime, Mapping[str, Any] | bytes]]:
    """Return all events in the order of their times, with a few that are sent twice or are no events at all."""
    shop = conversations()
    normal = [one for one in shop if one["release"] == "normal"]
    broken = {
        intent: [one for one in shop if one["release"] == "bad" and one["intent"] == intent]
        for intent in BROKEN_INTENTS
    }
    timed: list[tuple[datetime, Mapping[str, Any] | bytes]] = []
    for number in range(count):
        begun = _begun(number, count)
        timed += _conversation(number, begun, normal, broken)
    for number, raw in enumerate(_NOT_EVENTS):
        timed.append((START + timedelta(days=number + 1, hours=12), raw))
    return sorted(timed, key=lambda one: one[0])


def release() -> ChangeEvent:
    """Return what the shop's deployment announces of the release that breaks two intents."""
    return ChangeEvent(
        event_id="release-7",
        kind=ChangeKind.DEPLOY,
        occurred_at=RELEASE,
        title="shorter answers, release 7",
        assistant="shop",
        served_by=ServedBy(prompt_hash=PROMPT_AFTER, git_commit=COMMIT_AFTER),
    )


def _chance(*parts: object) -> float:
    return xxhash.xxh3_64_intdigest("\x1f".join(map(str, parts)).encode()) / 2**64


def _begun(number: int, count: int) -> datetime:
    # Spread over days and hours by a fixed share each, not by chance: the demo's windows are never thin by luck.
    at = (number + 0.5) / count * DAYS
    day, within = int(at), (at % 1) * sum(_HOURS)
    for hour, share in enumerate(_HOURS):
        if within < share:
            return START + timedelta(days=day, hours=hour + within / share)
        within -= share
    return START + timedelta(days=day + 1)


def _conversation(
    number: int,
    begun: datetime,
    normal: list[dict[str, Any]],
    broken: Mapping[str, list[dict[str, Any]]],
) -> Iterator[tuple[datetime, Mapping[str, Any]]]:
    told = normal[int(_chance("pick", number) * len(normal))]
    released = begun >= RELEASE
    if released and told["intent"] in broken and _chance("broken", number) < BROKEN_SHARE:
        choices = broken[told["intent"]]
        told = choices[int(_chance("bad", number) * len(choices))]
    record = {
        **{name: told[name] for name in ("intent", "channel", "policy_ref", "messages")},
        "id": f"c{number:05d}",
        "assistant": "shop",
        "language": "en",
        "served_by": {
            "model_asked": "shop-large-2",
            "model_answered": "shop-large-2",
            "prompt_hash": PROMPT_AFTER if released else PROMPT_BEFORE,
            "retrieval_version": "2026-02-27",
            "git_commit": COMMIT_AFTER if released else COMMIT_BEFORE,
        },
    }
    events = events_of(record, shape=Shape.TURNS, start=begun)
    if isinstance(events, Rejected):
        raise ValueError(f"{told['id']}: {events.reason}")  # noqa: TRY004 - the shop's file is wrong, not a type
    for event in _with_signals(number, events):
        moment = datetime.fromisoformat(event["occurred_at"])
        yield moment, event
        if _chance("twice", event["event_id"]) < _DUPLICATE_SHARE:
            yield moment + timedelta(seconds=1), event


def _with_signals(number: int, events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    last = events[-1]
    yield from events
    shared = {name: value for name, value in last.items() if name != "type"}
    at = (datetime.fromisoformat(last["occurred_at"]) + timedelta(seconds=5)).isoformat()
    for name, share, signals in (
        ("thumb", _THUMBS_DOWN_SHARE, {"thumb": "down"}),
        ("escalated", _ESCALATED_SHARE, {"escalated": True}),
    ):
        if _chance(name, number) < share:
            yield {
                **shared,
                "type": "feedback",
                "event_id": f"{last['conversation_id']}:{name}",
                "occurred_at": at,
                "signals": signals,
            }
