"""Files in, events in order out; and what a replay shows at its end."""

import json
from datetime import timedelta
from pathlib import Path

from monitor.cli.replay import for_replay
from monitor.cli.replay_file import SPACING, START, namespace_of, read
from monitor.cli.replay_shown import worst_and_best
from monitor.intake.formats.openai_chat import Shape
from monitor.policy import load_policy
from monitor.settings import load_settings
from tests.judgments import a_judgment

MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def a_file(folder: Path, *lines: object) -> Path:
    path = folder / "some.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return path


def test_a_line_that_is_no_conversation_does_not_stop_the_rest(tmp_path: Path) -> None:
    """It is named by its number, and never quoted."""
    good = {"id": "a", "messages": MESSAGES}
    path = a_file(tmp_path, good, "half a li", "", "[]", {"id": "b"}, {**good, "id": "c"})

    told = read([path], shape=Shape.TURNS)

    assert told.conversations == 2
    assert [fault.line for fault in told.faults] == [2, 4, 5]
    assert "half" not in told.faults[0].reason
    assert len(told.events) == 4


def test_conversations_without_times_are_evenly_spaced(tmp_path: Path) -> None:
    """A replay needs a clock, and the same one each time."""
    path = a_file(tmp_path, *({"id": name, "messages": MESSAGES} for name in "abc"))

    begun = [at for at, event in read([path], shape=Shape.TURNS).events if event["type"] == "turn"]

    assert begun == [START, START + SPACING, START + 2 * SPACING]


def test_events_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    """The stream's clock must not run backwards."""
    late, early = (
        {"id": day, "messages": MESSAGES, "created_at": f"2026-01-{day}T00:00:00Z"} for day in ("09", "02")
    )

    events = read([a_file(tmp_path, late, early)], shape=Shape.WHOLE).events

    assert [event["conversation_id"] for _, event in events] == ["02", "09"]


def test_the_namespace_is_that_of_the_contents(tmp_path: Path) -> None:
    """Replaying a file twice must add nothing, and another file must not mix with it."""
    path = a_file(tmp_path, "one")
    before = namespace_of([path])
    path.write_text("two")

    assert namespace_of([path]) != before
    assert namespace_of([path]) == namespace_of([path])
    load_settings(namespace=before)


def test_the_rate_is_another_and_the_rest_stays(tmp_path: Path) -> None:
    """A replay judges all unless told otherwise; priority rules and cohort are those of production."""
    settings = for_replay(load_settings(config=None), 0.25, tmp_path / "config")

    policy, default = load_policy(settings.config), load_policy()
    assert policy.sampling.default_rate == 0.25
    assert policy.sampling.priority == default.sampling.priority
    assert policy.gates == default.gates
    assert [one.type for one in policy.routing.receivers.values()] == ["console"]
    # Anchors are about the judge of today, and cost money.
    assert policy.monitor.judge.anchors.every_minutes is None


def test_the_worst_and_the_best_are_no_conversation_twice() -> None:
    """Ten judgments are shown to see what the judge is worth, not one conversation ten times."""
    judgments = [a_judgment(f"c{number}") for number in range(6)] * 2

    worst, best = worst_and_best(judgments, 2)

    assert len({one.target.conversation_id for one in (*worst, *best)}) == 4
    assert worst_and_best(judgments, 0) == ([], [])
    assert timedelta(0) < SPACING
