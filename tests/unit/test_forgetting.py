"""What stays of an alert when a conversation is forgotten."""

from datetime import timedelta

from monitor.adapters.kafka_admin import Held
from monitor.adapters.memory import MemoryAnswers
from monitor.alerting.criticals import record_critical
from monitor.alerting.forgetting import FORGOTTEN, cites, without_words_of
from monitor.cli.forget import archived, keys_of, rejudged_ids, remains, revisions_of
from monitor.conversations.store import Explained
from monitor.detection.critical import CriticalPolicy, critical_findings
from monitor.intake.event import Environment
from monitor.judging.executor import Executor, ExecutorPolicy
from monitor.policy import TopicPolicy
from monitor.topics import topics
from tests.conversations import a_conversation, a_request, assistant, user
from tests.judgments import HOUR, NOON, a_judgment
from tests.world import FakeJudge

POLICY = CriticalPolicy()


def an_alert(*conversations: str):  # noqa: ANN201 - an alert
    findings = [
        finding
        for name in conversations
        for finding in critical_findings(
            a_judgment(name, scores={"safety": 1}), POLICY, (Environment.PRODUCTION,)
        )
    ]
    transition = record_critical(None, findings, now=NOON, policy=POLICY)
    assert transition is not None
    return transition.alert


def test_the_words_go_and_the_figures_stay() -> None:
    """A person's right to be forgotten does not change what was measured."""
    alert = an_alert("c1", "c2")

    transition = without_words_of(alert, "c1")

    assert transition is not None
    after = transition.alert
    assert (transition.notify, after.version) == (False, alert.version + 1)
    assert after.evidence is not None
    reasons = {case.conversation_id: case.reason for case in after.evidence.cases}
    assert reasons == {"c1": FORGOTTEN, "c2": "safety is 1"}
    assert {case.score for case in after.evidence.cases} == {1}
    assert after.total == 2


def test_forgetting_twice_changes_nothing() -> None:
    """The command may be run again."""
    transition = without_words_of(an_alert("c1"), "c1")

    assert transition is not None
    assert without_words_of(transition.alert, "c1") is None
    assert without_words_of(an_alert("c1"), "c2") is None
    assert cites(transition.alert, "c1")


def test_only_a_conversations_own_keys_leave_the_archive() -> None:
    """An id may be the beginning of another one."""
    own, judged = b"a/r1", b"a/j/" + b"0" * 32
    keys = [own, judged, b"a/b/r1", b"aa/r1", b"a/r1/r1", b"a/rx"]
    records = [Held("archive", place % 4, 0, 0, key, b"{}", ()) for place, key in enumerate(keys)]

    assert archived(records, "a") == {own: 0, judged: 1}
    assert archived([*records, Held("archive", 0, 1, 0, own, None, ())], "a") == {judged: 1}
    assert keys_of("a", Explained(None, {}, {}, None, None, [a_judgment("a")]))[0].startswith(b"a/j/")


def test_every_topic_that_holds_bytes_says_until_when() -> None:
    """Whoever asked to be forgotten must be told what remains."""
    until = remains(topics(TopicPolicy(), namespace="ns"), prefix="ns.", now=NOON)

    assert until["ns.sampled-events"] == NOON + timedelta(hours=48)
    assert {"ns.judge-requests", "ns.judgments", "ns.dead-letters", "ns.conversation-events"} <= set(until)
    assert not [name for name in until if "archive" in name or "change" in name or "leader" in name]


async def test_what_a_migration_had_judged_again_is_found_under_its_ids() -> None:
    """No record names those answers, and they quote the conversation as the first ones did."""
    held = {b"a/r1": 0, b"a/r3": 0, b"a/j/" + b"0" * 32: 0, b"a/b/r7": 1}
    answers = MemoryAnswers()
    trial = FakeJudge()
    executor = Executor(trial, answers, "r2", ExecutorPolicy(deadline_seconds=5, max_age=HOUR))
    request = a_request(a_conversation([user("How long?"), assistant("21 days.")]))
    target = request.target.model_copy(update={"conversation_id": "a", "revision": 3})
    asked = request.model_copy(update={"target": target, "requested_at": NOON})
    again = await executor.record_of(asked, now=lambda: NOON)
    assert await answers.get(again.judgment_id) is not None

    ids = rejudged_ids("a", revisions_of("a", held), [("r1", "live"), ("r2", trial.identity.version)])

    assert len(ids) == 4
    await answers.forget(ids)
    assert await answers.get(again.judgment_id) is None
