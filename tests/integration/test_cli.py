"""What people type, on a deployment that has run: one replay, then every command that looks, retries or forgets."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agents.services import build_stores, wall_now
from agents.supervisor import Deployment
from monitor.adapters.embedded_kafka import EmbeddedKafka
from monitor.adapters.embedded_valkey import EmbeddedValkey
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.cli.main import app
from monitor.cli.replay import for_replay
from monitor.cli.replay_file import Told, read
from monitor.cli.replaying import Replayed, run_on
from monitor.cli.views import Views
from monitor.clock import ClockKind
from monitor.intake.formats.openai_chat import Shape
from monitor.judging.judgment import Phase, Place
from monitor.policy import default_config, load_policy
from monitor.settings import Settings, load_settings
from monitor.topics import topics
from tests.judgments import a_judgment

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(120)]
RUN = CliRunner()
SAID = "You will be refunded twice, I promise, and my colleague's number is 4111 1111 1111 1111."
NAMESPACE = "cli"
CONVERSATIONS = 12


def the_file(folder: Path) -> Path:
    path = folder / "conversations.jsonl"
    lines = [
        {
            "id": f"c{number}",
            "intent": "returns",
            "policy_ref": "returns.md",
            "messages": [
                {"role": "user", "content": "Can I return these shoes?"},
                {"role": "assistant", "content": SAID if number == 0 else "Yes, within 30 days of delivery."},
            ],
        }
        for number in range(CONVERSATIONS)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    (folder / "returns.md").write_text("Shoes can be returned within 30 days of delivery. We refund once.")
    return path


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, environment: pytest.MonkeyPatch) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("cli")
    kafka, valkey = EmbeddedKafka(), EmbeddedValkey()
    kafka.start()
    valkey.start()
    environment.setenv("MONITOR_KAFKA", kafka.bootstrap)
    environment.setenv("MONITOR_REDIS", valkey.url)
    environment.setenv("MONITOR_NAMESPACE", NAMESPACE)
    plain = load_settings(
        clock=ClockKind.STREAM,
        documents=folder,
        data_dir=folder / "data",
        session_timeout_seconds=6,
    )
    yield for_replay(plain, 1.0, folder / "config")
    valkey.stop()
    kafka.stop()


@pytest.fixture(scope="module")
def told(settings: Settings) -> Told:
    assert settings.documents is not None
    return read([the_file(settings.documents)], shape=Shape.TURNS)


@pytest.fixture(scope="module", autouse=True)
def replayed(settings: Settings, told: Told) -> Replayed:
    """Run a whole deployment once; what it leaves behind is what the commands look at."""
    policy = load_policy(settings.config, clock=settings.clock)
    nonsense = (told.events[-1][0], b'{"event_id": "half a li')
    assert settings.documents is not None
    deployment = Deployment(
        settings, policy, embedded_kafka=False, embedded_redis=False, log_folder=settings.documents / "logs"
    )
    with deployment, closing(Views(settings, policy)) as views:
        return run_on(
            deployment,
            views,
            [*told.events, nonsense],
            speed=None,
            sent=lambda _count, _at: None,
            look=lambda _funnel: None,
        )


def run(*arguments: str, status: int = 0) -> Result:
    result = RUN.invoke(app, list(arguments))
    assert result.exit_code == status, result.output
    return result


def test_every_event_of_the_replay_has_its_outcome(replayed: Replayed, told: Told) -> None:
    """Twelve turns, twelve ends and one line of nonsense."""
    assert (replayed.events, replayed.lost) == (len(told.events) + 1, 0)


def test_pages_are_counted_from_the_topic() -> None:
    """The routes of now on the alerts of the past: what the shipped ones would have made of this replay."""
    text = run("alerts", "pages", "--days", "0").output
    [console] = json.loads(run("alerts", "pages", "--days", "0", "--json").output)

    assert text.startswith("console: pages: 1 (2026-01-05 00:")
    assert "at most 1 in any 12 h (goal: 2)" in text
    assert (len(console["pages"]), console["most_in_12_hours"]) == (1, 1)


def test_status_adds_up_and_says_who_judges() -> None:
    """The first thing that is looked at when something seems wrong."""
    found = json.loads(run("status", "--json").output)

    assert found["received"] == sum(found["funnel"]["events"].values()) == 2 * CONVERSATIONS + 1
    assert found["open"] == 0
    assert found["funnel"]["events"] == {
        "judged": CONVERSATIONS,
        "applied": CONVERSATIONS,
        "undecodable": 1,
    }
    assert found["judge"]["backend"] == "rules"
    assert set(found["lag"]) == {"sample", "assemble", "judge", "aggregate", "changes"}
    assert [(one["signal"], one["share"], one["answers"]) for one in found["census"]] == [
        (signal, 0.0, CONVERSATIONS) for signal in ("escalated", "thumb_down", "fallback", "refused", "long")
    ]
    shown = run("status").output
    assert "25 events received, 0 of them open" in shown
    assert "All traffic of the last 24 h, judged or not" in shown


def test_a_new_rubric_is_held_against_the_archive_before_it_speaks(
    settings: Settings, tmp_path: Path
) -> None:
    """What was judged is judged again by the judge on trial; nobody waits a week for its series."""
    rubric = (default_config() / "rubric.yaml").read_text(encoding="utf-8")
    (tmp_path / "next.yaml").write_text(rubric.replace("coldly", "without warmth"), encoding="utf-8")
    (tmp_path / "monitor.yaml").write_text(
        "clock: {kind: stream}\njudge: {backend: rules, shadow: {backend: rules, rubric: next.yaml}}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_CONFIG", str(tmp_path))
        patch.setenv("MONITOR_DOCUMENTS", str(settings.documents))
        found = json.loads(run("judge", "migrate", "live", "shadow", "--json").output)

    splice = found["splice"]
    assert (splice["pairs"], splice["rejudged"], found["without_text"]) == (CONVERSATIONS, CONVERSATIONS, 0)
    assert splice["old_rubric"] != splice["new_rubric"]
    # The rules read no rubric, so that nothing is shifted by its words.
    assert splice["offsets"]["policy_adherence"]["points"]["mean"] == 0.0
    assert (found["changes"], found["kept"]) == ([], True)


def test_status_works_without_kafka() -> None:
    """A broker that is away is when people ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MONITOR_KAFKA", "127.0.0.1:9")
        output = run("status").output

    assert "Lag: unknown. Kafka at 127.0.0.1:9" in output
    assert "25 events received" in output


def test_windows_show_the_replays_own_time() -> None:
    """By the wall's clock there would be nothing to see."""
    found = json.loads(run("windows", "--json").output)

    series = {
        (scope["target"], one["dimension"]): one for scope in found["scopes"] for one in scope["series"]
    }
    assert series["conversation", "safety"]["n"] == CONVERSATIONS
    assert series["conversation", "safety"]["mean"] < 5
    assert "policy_adherence" in run("windows", "--segment", "intent=returns").output
    assert "No series" in run("windows", "--until", "2020-01-01").output
    for granularity in ("hour", "day"):
        coarse = json.loads(run("windows", "--days", "2", "--granularity", granularity, "--json").output)
        [scope] = [one for one in coarse["scopes"] if one["target"] == "conversation"]
        assert {one["n"] for one in scope["series"] if one["dimension"] == "safety"} == {CONVERSATIONS}
        assert coarse["granularity"] == granularity
    refused = run("windows", "--days", "30", "--granularity", "bucket", status=2).output
    assert "kept for 9 days" in " ".join(refused.replace("│", " ").split())


def test_a_cascade_and_a_flood_of_intents_are_told_by_windows_and_status(settings: Settings) -> None:
    """Neither is a series: the mean that the second judge would give, and what came after the limits."""
    policy, at = load_policy(settings.config), wall_now()
    first_scores = ({"dimension": "safety", "score": 5},)
    phase = Phase(place=Place.SECOND, probability=0.5, first_scores=first_scores)
    records = [a_judgment(f"c{i}", at=at, intent=f"i{i}", judge_version="v1") for i in range(210)]
    records += [
        a_judgment(f"c{i}", at=at, scores={"safety": 4}, judge_version="v2").model_copy(
            update={"phase": phase}
        )
        for i in range(0, 210, 2)
    ]

    async def enter() -> None:
        stores = build_stores(settings.model_copy(update={"namespace": "cascade"}), policy)
        await stores.start()
        await stores.windows.apply(records, now=at)
        await stores.close()

    asyncio.run(enter())
    for command in ("windows", "status"):
        found = json.loads(run(command, "--name", "cascade", "--json").output)
        found = found.get("last_day", found)
        [headline] = found["two_phase"]
        [safety] = headline["means"]
        assert (safety["mean"], safety["cheap_mean"], safety["n_both"]) == (pytest.approx(4), 5, 105)
        assert (headline["first_judge"], headline["scope"]["judge_version"]) == ("v1", "v2")
        others = found["others"] if command == "status" else found["scopes"][0]["others"]
        assert [(one["key"], one["values"], one["units"]) for one in others] == [("intent", 10, 10)]
        shown = " ".join(run(command, "--name", "cascade").output.split())
        assert "4.00-4.00" in shown or "4.00 (4.00-4.00)" in shown
        assert "intent: 10 values, 10 units, are intent=*other" in shown


def test_explain_tells_the_way_of_a_conversation() -> None:
    """Sampled by which rule, its events with their places, its judgments, the alerts that cite it."""
    found = json.loads(run("explain", "c0", "--json").output)

    assert found["sampling"]["rule"] == "base:default"
    assert {event["outcome"] for event in found["events"]} == {"judged", "applied"}
    assert found["end_reason"] == "end_event"
    assert len(found["judgments"]) == 2
    assert found["alerts"]
    assert "nothing is stored" in run("explain", "never-came").output


def test_alerts_are_listed_and_shown_with_their_cases() -> None:
    """The alert is the product."""
    [first, *_] = json.loads(run("alerts", "list", "--json").output)

    assert "c0" in run("alerts", "show", first["id"][:8]).output
    assert "open alerts" in run("alerts", "list").output
    run("alerts", "show", "zzz", status=1)


def test_each_critical_judgment_waits_for_people_once() -> None:
    """A reviewer gets the case, not the score: what is shown first is what one agrees with."""
    items = [json.loads(line) for line in run("review", "list", "--json").output.splitlines()]

    judged = json.loads(run("explain", items[0]["conversation_id"], "--json").output)["judgments"]
    [same] = [one for one in judged if one["judgment_id"] == items[0]["judgment_id"]]
    bad = {
        score["dimension"] for score in same["scores"] if score["score"] is not None and score["score"] <= 2
    }
    assert set(items[0]["dimensions"]) == bad
    assert len({item["judgment_id"] for item in items}) == len(items)
    assert all("score" not in item for item in items)
    assert "critical failure" in run("review", "list").output
    assert len(items) > 1
    one = run("review", "list", "--limit", "1").output
    assert "1 items, the oldest first; --limit shows more" in one
    assert "turn c0" in " ".join(one.split())


@pytest.mark.parametrize("command", [("dead-letters", "list"), ("alerts", "pages"), ("forget", "c0")])
def test_a_topic_that_is_not_there_is_said_in_a_sentence(command: tuple[str, ...]) -> None:
    """A slip in --name is the likeliest reason, and no bug."""
    found = run(*command, "--name", "empty", status=2)

    assert "there is no topic empty." in found.stderr
    assert "--name" in found.stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("status",), "No event was received in the namespace empty"),
        (("alerts", "list"), "No alert is open"),
        (("alerts", "precision"), "Nothing fired in the last 30 days"),
        (("silence", "list"), "Nothing is muted"),
        (("configurations", "list"), "The check begins with the first `monitor configurations add`"),
        (("review", "list"), "Nothing waits for people"),
        (("windows", "--segment", "nope"), "No series of the segment nope has anything"),
    ],
)
def test_what_is_empty_is_said_in_a_sentence(command: tuple[str, ...], sentence: str) -> None:
    """A frame around nothing looks like something that broke."""
    shown = run(*command, "--name", "empty").output

    assert sentence in " ".join(shown.split())
    assert "┃" not in shown


def test_dead_letters_are_listed_and_go_back_once() -> None:
    """Never the value; and `retry --all` twice sends nothing the second time."""
    [letter] = json.loads(run("dead-letters", "list", "--json").output)
    assert (letter["stage"], letter["fault"], letter["bytes"]) == ("sample", "undecodable", 23)
    assert "half a li" not in run("dead-letters", "list").output

    assert "1 of 1 dead letters were sent back" in run("dead-letters", "retry", "--all").output
    assert "0 of 0 dead letters were sent back" in run("dead-letters", "retry", "--all").output
    assert "1 of 1" in run("dead-letters", "retry", letter["id"]).output
    assert json.loads(run("dead-letters", "list", "--json").output) == []
    run("dead-letters", "retry", "no/0/0", status=1)


def test_the_topics_are_as_they_should_be() -> None:
    """Created by the deployment, checked by the person."""
    assert "as they should be" in run("topics", "check").output
    assert "0 topics created" in run("topics", "create").output
    missing = run("topics", "check", "--name", "other", status=1).stderr
    count = len(topics(load_policy().monitor.topics))
    assert missing.count("missing; `monitor topics create` makes it") == count


def test_forgetting_erases_the_words_and_keeps_the_figures(settings: Settings) -> None:
    """Archive, texts, judgments, cases in windows and alerts; what stays elsewhere is said with its end."""
    before = json.loads(run("windows", "--json").output)

    output = run("forget", "c0").output

    assert "Erased: 3 entries of the archive" in output
    assert f"{NAMESPACE}.sampled-events: " in output
    found = json.loads(run("explain", "c0", "--json").output)
    assert len(found["judgments"]) == 2
    assert {score["reason"] for one in found["judgments"] for score in one["scores"]} == {"[forgotten]"}
    for alert in json.loads(run("alerts", "list", "--json").output):
        assert "4111" not in run("alerts", "show", alert["id"]).output
        # The kind of a failure is our word, not theirs.
        shown = run("alerts", "show", alert["id"]).output.replace("over_promise", "")
        assert "promise" not in shown
    assert json.loads(run("windows", "--json").output) == before
    with closing(KafkaAdmin(settings)) as admin:
        held = {one.key: one.value for one in admin.read(f"{NAMESPACE}.archive")}
    assert [value for key, value in held.items() if key and key.startswith(b"c0/")] == [None] * 3
    assert sum(value is not None for value in held.values()) == 3 * (CONVERSATIONS - 1)
    assert "0 texts" in run("forget", "c0").output
