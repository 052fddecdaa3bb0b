"""What an alert shows: what changed, how much, where, and the worst cases."""

from collections.abc import Iterable

from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.evidence import CASES_MAX, Evidence, concerns, explain, pick_cases
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_json, as_text
from monitor.detection.finding import Figure, Finding, FindingKind, Outcome, Severity
from monitor.judging.judgment import Judgment, Quote
from monitor.windows.bucket import contribution
from monitor.windows.case import Case, cases_of
from monitor.windows.policy import WindowPolicy
from monitor.windows.window import Window, merged
from tests.judgments import HOUR, NOON, a_judgment

POLICY = WindowPolicy()


def window_of(judgments: Iterable[Judgment]) -> Window:
    added = [contribution(judgment, POLICY) for judgment in judgments]
    return Window(NOON, NOON + HOUR, merged(dict.fromkeys(a.cells, 1) for a in added if a is not None))


def traffic(prompt_hash: str, *, returns: int = 5, billing: int = 5) -> list[Judgment]:
    return [
        a_judgment(f"{intent}-{i}", intent=intent, prompt_hash=prompt_hash, scores={"safety": score})
        for intent, score in (("returns", returns), ("billing", billing))
        for i in range(10)
    ]


def cases(*judgments: Judgment) -> list[Case]:
    return [case for judgment in judgments for case in cases_of(judgment)]


def test_a_new_prompt_is_named_first() -> None:
    """S21: what changed comes first, and what changed is what nobody served before."""
    changes = explain(window_of(traffic("new", returns=1)), window_of(traffic("old")), "safety")

    assert changes[0].segment == "prompt_hash=new"
    assert (changes[0].share, changes[0].share_before, changes[0].is_new) == (1, 0, True)


def test_the_segment_that_took_most_is_named_and_the_others_are_not() -> None:
    """A person asks where, and a list of everything is no answer."""
    changes = explain(window_of(traffic("same", returns=1)), window_of(traffic("same")), "safety")
    intents = [change for change in changes if change.segment.startswith("intent=")]

    assert [change.segment for change in intents] == ["intent=returns"]
    assert (intents[0].figure, intents[0].figure_before, intents[0].share) == (1, 5, 0.5)


def test_without_a_past_nothing_is_called_new() -> None:
    """The first day of a deployment would name every prompt."""
    changes = explain(window_of(traffic("a", returns=1)), window_of([]), "safety")

    assert not any(change.is_new for change in changes)
    assert changes[0].segment == "intent=returns"
    assert explain(window_of([]), window_of([]), "safety") == ()


def test_cases_are_distinct_in_kind_before_a_kind_comes_twice() -> None:
    """Eight copies of one failure hide the second failure."""
    same = [a_judgment(f"a-{i}", scores={"safety": 1}, failure="promise") for i in range(20)]
    other = a_judgment("b", scores={"safety": 2}, failure="duration")

    picked = pick_cases(cases(*same, other))

    assert len(picked) == CASES_MAX
    assert "b" in {case.conversation_id for case in picked}
    assert [case.score for case in picked] == sorted(case.score for case in picked)


def test_a_conversation_is_shown_once() -> None:
    """Four bad dimensions of one conversation are one case to read."""
    picked = pick_cases(
        cases(
            a_judgment("a", scores={"safety": 2, "actionability": 1}), a_judgment("b", scores={"safety": 3})
        )
    )

    assert [(case.conversation_id, case.score) for case in picked] == [("a", 1), ("b", 3)]


def test_a_segments_cases_lie_in_the_segment() -> None:
    """An alert on returns shows no billing."""
    case = cases(a_judgment(scores={"safety": 1}, intent="a|b"))[0]

    assert concerns(case, "*")
    assert concerns(case, "intent=a%7Cb")
    assert not concerns(case, "intent=billing")
    assert not concerns(case, "prompt_hash=other")


def a_notification() -> Notification:
    changes = explain(window_of(traffic("new", returns=1)), window_of(traffic("old")), "safety")
    quote = (Quote(text="[bold]we refund[/bold] anything"),)
    figures = (Figure(name="mean", value=3.0, limit=4.8, low=2.9, high=3.1, n=200),)
    finding = Finding(
        kind=FindingKind.GATE,
        labels={
            "assistant": "support-bot",
            "environment": "production",
            "dimension": "safety",
            "segment": "*",
        },
        severity=Severity.PAGE,
        outcome=Outcome.FAIL,
        reason="mean 3, asked at least 4.8 (n=200)",
        since=NOON,
        figures=figures,
    )
    alert = Alert(
        fingerprint=finding.fingerprint,
        state=AlertState.FIRING,
        version=5,
        severity=Severity.PAGE,
        finding=finding,
        since=NOON,
        failed_at=NOON + HOUR,
        evidence=Evidence(
            start=NOON,
            end=NOON + HOUR,
            figures=figures,
            changes=changes,
            cases=pick_cases(cases(a_judgment("worst", scores={"safety": 1}, quotes=quote))),
        ),
    )
    return Notification(id=f"{alert.fingerprint}-5", alert=alert, reason=finding.reason, at=NOON + HOUR)


def test_the_text_answers_in_the_order_in_which_people_ask() -> None:
    """S21: what changed, since when and how much, where, the worst cases, the runbook."""
    text = as_text(a_notification())
    wanted = [
        "[FIRING] [page] safety misses its gate for support-bot (production)",
        "prompt_hash=new is new: 100% of the conversations, none before",
        "since 2026-03-10T12:00:00Z",
        "mean 3 (95 %: 2.9 to 3.1), gate 4.8, n=200",
        "intent=returns: share 50% (before 50%), figure 1 (before 5), n=10",
        "safety 1  worst  intent=returns prompt=aa11",
        '"[bold]we refund[/bold] anything"',
        "docs/runbooks/gate.md",
    ]

    places = [text.index(part) for part in wanted]
    assert places == sorted(places)


def test_the_json_holds_the_same_and_the_id() -> None:
    """Receivers tell a repetition by the id."""
    values = as_json(a_notification())

    assert values["id"].endswith("-5")
    assert values["evidence"]["cases"][0]["conversation_id"] == "worst"
    assert values["since"] == "2026-03-10T12:00:00Z"
