"""Judgments in, alerts out, as stories: each file of tests/scenarios is played on the twins."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.evaluation import evaluate, record_criticals
from monitor.alerting.shifts import PAGES_MAX, paging, played
from monitor.alerting.store import notification_of
from monitor.detection.gates import GatePolicy
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.policy import load_policy
from monitor.windows.policy import WindowPolicy
from tests.judgments import HOUR, NOON, a_failure, a_judgment

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE / "scenarios").glob("*.yaml"))
QUARTER = HOUR / 4


def policy_of(story: dict[str, Any]) -> GatePolicy:
    shipped = yaml.safe_load((HERE.parent / "config" / "gates.yaml").read_text(encoding="utf-8"))
    # Bad scores in a story are about its gate; criticals have stories of their own.
    return GatePolicy.model_validate(shipped | story.get("policy", {}))


def records(story: dict[str, Any]) -> Iterator[tuple[timedelta, Judgment | JudgeFailure]]:
    for place, part in enumerate(story["traffic"]):
        begin, end = (HOUR * hour for hour in part["hours"])
        buckets = round((end - begin) / QUARTER)
        same = {
            key: part[key]
            for key in ("intent", "prompt_hash", "rate", "revision", "judge_version")
            if key in part
        }
        scores = part.get("scores", {})
        for bucket in range(buckets):
            for number in range(part["per_bucket"]):
                at = begin + bucket * QUARTER + number * QUARTER / part["per_bucket"]
                name = f"{part.get('name', place)}-{bucket}-{number}"
                if part.get("failed"):
                    yield at, a_failure(name, at=NOON + at, **same)
                else:
                    yield at, a_judgment(name, at=NOON + at, scores=scores, **same)


async def play(story: dict[str, Any]) -> list[tuple[float, Transition]]:
    windows, alerts, policy = MemoryWindowStore(WindowPolicy()), MemoryAlertStore(), policy_of(story)
    coming = sorted(records(story), key=lambda pair: pair[0])
    told: list[tuple[float, Transition]] = []
    for boundary in range(1, round(story["hours"] * 4) + 1):
        elapsed = boundary * QUARTER
        batch = [record for at, record in coming if elapsed - QUARTER <= at < elapsed]
        now = NOON + elapsed
        await windows.apply(batch, now=now)
        await windows.apply(batch[::2], now=now)  # a redelivery
        changes = [*await record_criticals(alerts, batch, policy=policy, now=now)]
        changes += await record_criticals(alerts, batch[::2], policy=policy, now=now)
        judges = story.get("judge_versions")
        changes += await evaluate(windows, alerts, policy, now=now, judge_versions=judges)
        assert await evaluate(windows, alerts, policy, now=now, judge_versions=judges) == ()
        told += [(elapsed / HOUR, change) for change in changes if change.notify]
    assert len(await alerts.outbox(1000)) == len(told)
    return told


def key_of(alert: Alert) -> tuple[str, str, str]:
    return (alert.kind, alert.labels["dimension"], alert.labels.get("segment", ""))


def story_of(path: Path) -> dict[str, Any]:
    story: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return story


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_scenario(path: Path) -> None:
    """Exactly the expected alerts come, within their hours: anything else is a false alarm or a missed one."""
    story = story_of(path)
    told = await play(story)
    wanted = {
        (want.get("kind", "gate"), want["dimension"], want.get("segment", "")): want
        for want in story["alerts"]
    }
    fired = {key_of(t.alert): (hour, t.alert) for hour, t in told if t.alert.state is AlertState.FIRING}
    ended = {key_of(t.alert): hour for hour, t in told if t.alert.state is AlertState.RESOLVED}

    assert set(fired) == set(wanted), story["why"]
    record = [one for _, change in told if (one := notification_of(change)) is not None]
    for one in paging(played(load_policy().routing, record)):
        assert one.busiest <= PAGES_MAX, "more than a person on call can look into in a shift"
    for key, want in wanted.items():
        hour, alert = fired[key]
        assert want["fires"][0] <= hour <= want["fires"][1], (key, hour)
        assert alert.severity == want.get("severity", alert.severity)
        assert alert.evidence is not None
        if "cases" in want:
            assert len(alert.evidence.cases) == want["cases"]
        if "changed" in want:
            assert [c.segment for c in alert.evidence.new_configurations] == [want["changed"]]
        if "total" in want:
            assert alert.total == want["total"]
        if want.get("resolves") == "never":
            assert key not in ended
        elif "resolves" in want:
            low, high = want["resolves"]
            assert low <= ended[key] <= high, (key, ended[key])


def test_one_scenario_in_three_says_what_must_not_fire() -> None:
    """A detector that always fires would pass all the others."""
    silent = [path for path in SCENARIOS if story_of(path)["alerts"] == []]

    assert len(silent) * 3 >= len(SCENARIOS) >= 8
