"""What stays of an alert when a conversation is forgotten."""

from datetime import timedelta

from monitor.adapters.kafka_admin import Held
from monitor.alerting.criticals import record_critical
from monitor.alerting.forgetting import FORGOTTEN, cites, without_words_of
from monitor.cli.forget import archived, keys_of, remains
from monitor.conversations.store import Explained
from monitor.detection.critical import CriticalPolicy, critical_findings
from monitor.intake.event import Environment
from monitor.policy import TopicPolicy
from monitor.topics import topics
from tests.judgments import NOON, a_judgment

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
