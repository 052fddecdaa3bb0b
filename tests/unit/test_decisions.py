"""What people on call say of alerts becomes labels of the judge's scores, and no more than they said."""

from datetime import UTC, datetime

from monitor.alerting.alert import Alert, Transition
from monitor.alerting.deciding import decided
from monitor.alerting.decision import Verdict
from monitor.judging.calibration import UNCALIBRATED, quoted
from monitor.review.decisions import decided_by_judge, labels_of, with_decisions
from tests.judgments import HOUR, MINUTE, NOON
from tests.notifications import a_case, an_alert, an_evidence

AT = datetime(2026, 3, 10, tzinfo=UTC)


def closed(verdict: Verdict, *cases: int, number: int = 0, minutes: int = 0) -> Alert:
    """Return an alert on safety that fired with these cases, and one of another dimension, and was closed."""
    shown = [a_case(n).model_copy(update={"judge_version": "j", "rubric_version": "r"}) for n in cases]
    aside = a_case(99).model_copy(update={"dimension": "actionability", "score": 3})
    evidence = an_evidence().model_copy(update={"cases": (*shown, aside)})
    alert = an_alert(number).model_copy(update={"evidence": evidence, "fired_at": NOON})
    said = decided(alert, verdict, by="j.doe", at=NOON + HOUR + minutes * MINUTE, text="it misread a quote")
    assert isinstance(said, Transition)
    return said.alert


def test_a_judge_error_disputes_the_scores_that_the_alert_was_about() -> None:
    """And says nothing of a score of another dimension that it showed beside them."""
    labels = labels_of([closed(Verdict.JUDGE_ERROR, 0, 1)])

    assert [(one.conversation_id, one.dimension, one.score, one.upheld) for one in labels] == [
        ("c-0", "safety", 1, False),
        ("c-1", "safety", 1, False),
    ]
    assert {(one.by, one.note, one.judge_version) for one in labels} == {("j.doe", "it misread a quote", "j")}


def test_a_regression_upholds_and_the_other_verdicts_say_nothing_of_the_judge() -> None:
    """A gate may ask for the wrong thing, and the judge be right or wrong in it."""
    assert [one.upheld for one in labels_of([closed(Verdict.REGRESSION, 0)])] == [True]
    assert labels_of([closed(Verdict.GATE, 0), closed(Verdict.EXPECTED, 1)]) == ()


def test_the_last_word_on_a_score_counts_once() -> None:
    """A case that two alerts show is one label, or whoever is shown most would weigh most."""
    labels = labels_of(
        [
            closed(Verdict.REGRESSION, 0, number=1, minutes=5),
            closed(Verdict.JUDGE_ERROR, 0, number=2, minutes=9),
        ]
    )

    assert [one.upheld for one in labels] == [False]


def test_a_decision_keeps_no_word_of_a_conversation() -> None:
    """It outlives the alert's evidence, and the person's right to be forgotten."""
    text = closed(Verdict.JUDGE_ERROR, 0).decisions[0].model_dump_json()

    assert "promise 0" not in text
    assert "quote" not in text.replace("it misread a quote", "")


def test_alerts_quote_the_decisions_beside_what_raters_say() -> None:
    """They are of the worst cases, so they stand beside the agreement and are never mixed into it."""
    labels = labels_of([closed(Verdict.REGRESSION, 0, 1, 2), closed(Verdict.JUDGE_ERROR, 3, number=1)])
    [(judge, found)] = decided_by_judge(labels).items()
    kept = with_decisions(None, found, judge_version=judge[0], rubric_version=judge[1], at=AT)

    assert judge == ("j", "r")
    said = quoted(kept, "safety")
    assert said.startswith(UNCALIBRATED)
    assert "people upheld 75 % (30-95 %, n=4) of its scores in alerts, which are the worst ones" in said
    assert quoted(kept, "actionability") == UNCALIBRATED
