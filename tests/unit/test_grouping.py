"""When a group is told, and when not."""

from datetime import timedelta
from itertools import pairwise

import pytest

from monitor.alerting.matchers import matcher
from monitor.alerting.notification import NotificationReason, Status
from monitor.alerting.silence import a_silence
from tests.groups import SECOND, Notifier, routing
from tests.judgments import HOUR, MINUTE, NOON

TIMED = "group_wait: 10s, group_interval: 60s, repeat_interval: 1h"
ONE = {"assistant": "bot", "dimension": "safety", "severity": "page"}
TWO = {"assistant": "bot", "dimension": "policy", "severity": "page"}
OTHER = {"assistant": "shop", "dimension": "safety", "severity": "page"}


@pytest.fixture
def notifier() -> Notifier:
    return Notifier(routing(f"route: {{receiver: a, group_by: [assistant], {TIMED}}}").rules)


class TestTiming:
    def test_a_group_waits_for_its_first_alerts(self, notifier: Notifier) -> None:
        """Ten intents that break together are one message."""
        notifier.fire(ONE)
        assert notifier.tick(NOON) == []
        notifier.fire(TWO)
        assert notifier.tick(NOON + 9 * SECOND) == []

        [told] = notifier.tick(NOON + 10 * SECOND)

        assert (told.firing, told.reason, told.receiver) == (2, NotificationReason.FIRST, "a")
        assert told.group_labels == {"assistant": "bot"}

    def test_groups_are_told_apart(self, notifier: Notifier) -> None:
        """What group_by names makes incidents of its own."""
        notifier.fire(ONE, OTHER)

        told = notifier.run(NOON, NOON + MINUTE)

        assert {one.group_labels["assistant"] for one in told} == {"bot", "shop"}
        assert len({one.group_id for one in told}) == 2

    def test_what_comes_later_waits_for_the_interval(self, notifier: Notifier) -> None:
        """Each further segment must not be a message of its own."""
        notifier.fire(ONE)
        notifier.run(NOON, NOON + 20 * SECOND)
        notifier.fire(TWO)

        assert notifier.run(NOON + 20 * SECOND, NOON + 70 * SECOND) == []
        [told] = notifier.tick(NOON + 70 * SECOND)
        assert (told.firing, told.reason) == (2, NotificationReason.MORE_FIRING)

    def test_nothing_new_is_told_again_only_after_the_repeat_interval(self, notifier: Notifier) -> None:
        """A reminder, rounded up to a turn of the group."""
        notifier.fire(ONE)
        first, second = notifier.run(NOON, NOON + 2 * HOUR)

        assert second.reason is NotificationReason.REPEAT
        assert HOUR <= second.at - first.at < HOUR + MINUTE
        assert second.group_id == first.group_id
        assert second.id != first.id

    def test_what_is_over_before_the_wait_is_over_is_never_told(self, notifier: Notifier) -> None:
        """Whoever was not told of it need not hear that it ended."""
        notifier.fire(ONE)
        notifier.tick(NOON)
        notifier.resolve(ONE)

        assert notifier.run(NOON + SECOND, NOON + HOUR) == []
        assert notifier.groups == {}

    def test_an_end_is_told_once(self, notifier: Notifier) -> None:
        """And the group is forgotten after it."""
        notifier.fire(ONE, TWO)
        notifier.run(NOON, NOON + 20 * SECOND)
        notifier.resolve(ONE)
        [some] = notifier.run(NOON + 20 * SECOND, NOON + 2 * MINUTE)
        notifier.resolve(TWO)
        [over] = notifier.run(NOON + 2 * MINUTE, NOON + 5 * MINUTE)

        assert (some.reason, some.status) == (NotificationReason.SOME_RESOLVED, Status.FIRING)
        assert (some.firing, some.resolved) == (1, 1)
        assert (over.reason, over.status) == (NotificationReason.ALL_RESOLVED, Status.RESOLVED)
        assert [one.status for one in over.alerts] == [Status.RESOLVED]
        assert notifier.groups == {}

    def test_an_alert_with_news_of_its_own_is_told_again(self, notifier: Notifier) -> None:
        """Further cases of a critical failure are news, though the alert never stopped firing."""
        notifier.fire(ONE, news="1")
        notifier.run(NOON, NOON + MINUTE)
        notifier.fire(ONE, news="7")

        [told] = notifier.run(NOON + MINUTE, NOON + 3 * MINUTE)

        assert told.reason is NotificationReason.MORE_FIRING

    def test_a_flapping_alert_is_told_at_most_once_an_interval(self, notifier: Notifier) -> None:
        """However often it comes and goes."""
        for second in range(600):
            (notifier.fire if second % 26 < 13 else notifier.resolve)(ONE)
            notifier.tick(NOON + second * SECOND)

        times = [one.at for one in notifier.told]
        assert 1 <= len(times) <= 11
        assert all(later - earlier >= MINUTE for earlier, later in pairwise(times))


class TestMuting:
    def test_a_silence_holds_back_and_counts(self, notifier: Notifier) -> None:
        """What was held back is said with the next message."""
        until = NOON + 5 * MINUTE
        notifier.silences = [
            a_silence(
                (matcher("dimension=safety"),), author="j", reason="known", starts_at=NOON, ends_at=until
            )
        ]
        notifier.fire(ONE)
        assert notifier.run(NOON, NOON + 2 * MINUTE) == []
        notifier.fire(TWO)
        [told] = notifier.run(NOON + 2 * MINUTE, NOON + 4 * MINUTE)
        assert [one.labels for one in told.alerts] == [TWO]
        assert told.suppressed == 1

        [after] = notifier.run(NOON + 4 * MINUTE, NOON + 7 * MINUTE)
        assert after.firing == 2
        assert after.at >= until

    def test_a_silence_never_stops_evaluation(self, notifier: Notifier) -> None:
        """The alert goes on being a member of its group."""
        notifier.silences = [
            a_silence(
                (matcher("dimension=safety"),), author="j", reason="k", starts_at=NOON, ends_at=NOON + HOUR
            )
        ]
        notifier.fire(ONE)
        notifier.run(NOON, NOON + MINUTE)

        [group] = notifier.groups.values()
        assert len(group.members) == 1
        assert len(group.suppressed) == 1

    def test_all_traffic_mutes_its_segments(self) -> None:
        """One fault, one message: the segments stand in the evidence."""
        notifier = Notifier(routing("routes: {page: [a]}").rules)
        overall = {"finding": "gate", "assistant": "bot", "dimension": "safety", "severity": "page"}
        segments = [overall | {"segment": f"intent={name}"} for name in ("one", "two")]
        foreign = overall | {"segment": "intent=one", "assistant": "shop"}
        notifier.fire(overall | {"segment": "*"}, *segments, foreign)

        told = notifier.run(NOON, NOON + MINUTE)

        assert sorted((one.group_labels["assistant"], one.firing, one.suppressed) for one in told) == [
            ("bot", 1, 2),
            ("shop", 1, 0),
        ]

    def test_an_ailing_judge_mutes_what_it_says_of_quality(self) -> None:
        """Its numbers are no news while it cannot judge."""
        notifier = Notifier(routing("routes: {page: [a]}").rules)
        notifier.fire(
            {"finding": "judge", "failures": "spread", "severity": "page", "assistant": "bot"},
            {"finding": "gate", "severity": "page", "assistant": "bot", "segment": "*"},
            {"finding": "critical", "severity": "page", "assistant": "bot"},
        )

        [told] = notifier.run(NOON, NOON + MINUTE)

        assert {one.labels["finding"] for one in told.alerts} == {"judge", "critical"}
        assert told.suppressed == 1

    def test_a_judge_that_drifts_mutes_nothing(self) -> None:
        """Its shift is taken off what is said of quality; what remains is news."""
        notifier = Notifier(routing("routes: {page: [a], ticket: [a]}").rules)
        notifier.fire(
            {"finding": "judge", "check": "drift", "severity": "ticket"},
            {"finding": "regression", "severity": "page", "assistant": "bot", "segment": "*"},
        )

        said = notifier.run(NOON, NOON + MINUTE)

        assert {one.labels["finding"] for group in said for one in group.alerts} == {"judge", "regression"}

    @pytest.mark.parametrize(
        ("fall", "gate", "told"),
        [
            (("ticket", "*"), ("ticket", "*"), {"regression"}),
            (("ticket", "*"), ("ticket", "intent=one"), {"regression"}),
            (("page", "*"), ("page", "intent=one"), {"regression"}),
            (("page", "*"), ("ticket", "*"), {"regression"}),
            (("ticket", "*"), ("page", "*"), {"gate"}),
            (("ticket", "intent=one"), ("ticket", "intent=one"), {"regression"}),
            (("ticket", "intent=one"), ("ticket", "*"), {"gate"}),
            (("page", "intent=one"), ("ticket", "*"), {"regression", "gate"}),
        ],
    )
    def test_a_fall_and_its_gate_are_told_as_one_and_the_graver_one(
        self, fall: tuple[str, str], gate: tuple[str, str], told: set[str]
    ) -> None:
        """Two messages about one thing teach people to read neither; and no page may hide behind a ticket."""
        notifier = Notifier(routing("routes: {page: [a], ticket: [a]}").rules)
        same = {"assistant": "bot", "environment": "production", "dimension": "safety"}
        notifier.fire(
            *(
                same | {"finding": finding, "severity": severity, "segment": segment}
                for finding, (severity, segment) in (("regression", fall), ("gate", gate))
            )
        )

        said = notifier.run(NOON, NOON + MINUTE)

        assert {one.labels["finding"] for group in said for one in group.alerts} == told

    def test_what_all_traffic_falls_by_is_not_told_of_its_parts(self) -> None:
        """The segment that fired first is the explanation as soon as the whole falls."""
        notifier = Notifier(routing("routes: {page: [a], ticket: [a]}").rules)
        same = {"assistant": "bot", "environment": "production", "dimension": "safety", "severity": "ticket"}
        notifier.fire(
            same | {"finding": "regression", "segment": "*"},
            same | {"finding": "regression", "segment": "intent=one"},
        )

        [said] = notifier.run(NOON, NOON + MINUTE)

        assert [one.labels["segment"] for one in said.alerts] == ["*"]
        assert said.suppressed == 1

    def test_an_alert_of_both_sides_does_not_mute_itself(self) -> None:
        """Nor do two of them mute each other, as in Alertmanager."""
        rule = "[{source_matchers: ['x=~\".+\"'], target_matchers: ['x=~\".+\"'], equal: [y]}]"
        notifier = Notifier(routing(f"route: {{receiver: a, {TIMED}}}\ninhibit_rules: {rule}").rules)
        notifier.fire({"x": "1"}, {"x": "2"})

        [told] = notifier.run(NOON, NOON + MINUTE)

        assert told.firing == 2


class TestMoves:
    def test_a_graver_alert_moves_to_the_route_of_pages(self) -> None:
        """The ticket's receiver hears that it is over there, and the pager rings."""
        notifier = Notifier(routing("routes: {page: [a], ticket: [b]}").rules)
        ticket = {"assistant": "bot", "severity": "ticket"}
        notifier.fire(ticket)
        [first] = notifier.run(NOON, NOON + MINUTE)
        [routed] = notifier.alerts.values()
        page = {**ticket, "severity": "page"}
        notifier.alerts = {routed.fingerprint: type(routed)(routed.alert, routed.status, page)}
        told = notifier.run(NOON + MINUTE, NOON + 10 * MINUTE)

        assert (first.receiver, first.status) == ("b", Status.FIRING)
        assert {(one.receiver, one.status) for one in told} == {("a", Status.FIRING), ("b", Status.RESOLVED)}

    def test_a_route_that_is_taken_out_ends_what_it_told(self, notifier: Notifier) -> None:
        """An incident at a pager must not stay open since a file was changed."""
        notifier.fire(ONE)
        notifier.run(NOON, NOON + MINUTE)
        notifier.rules = routing(
            "route: {receiver: b, group_by: [x], routes: [{matchers: [y=z], receiver: a}]}"
        ).rules

        told = notifier.run(NOON + MINUTE, NOON + 3 * MINUTE)

        assert {(one.receiver, one.status) for one in told} == {("a", Status.RESOLVED), ("b", Status.FIRING)}
        assert len(notifier.groups) == 1

    def test_an_alert_that_is_no_more_known_is_over(self, notifier: Notifier) -> None:
        """Old alerts leave the store; their receivers must not wait for ever."""
        notifier.fire(ONE)
        notifier.run(NOON, NOON + MINUTE)
        notifier.alerts.clear()

        [told] = notifier.run(NOON + MINUTE, NOON + 3 * MINUTE)

        assert (told.status, told.alerts, told.resolved, told.truncated) == (Status.RESOLVED, (), 1, 1)


class TestReceivers:
    def test_nobody_is_told_and_keeps_no_group(self) -> None:
        """What is only listed costs nothing."""
        notifier = Notifier(routing("routes: {page: [a], info: []}").rules)
        notifier.fire({"severity": "info"})

        assert notifier.run(NOON, NOON + HOUR, MINUTE) == []
        assert notifier.groups == {}

    def test_a_receiver_of_firings_only_hears_no_end(self, notifier: Notifier) -> None:
        """And hears of the next firing all the same."""
        rules = notifier.rules
        notifier.rules = type(rules)(rules.root, rules.receivers, firing_only={"a"})
        notifier.fire(ONE)
        notifier.run(NOON, NOON + MINUTE)
        notifier.resolve(ONE)
        assert notifier.run(NOON + MINUTE, NOON + 10 * MINUTE) == []
        notifier.fire(ONE)

        [told] = notifier.run(NOON + 10 * MINUTE, NOON + 12 * MINUTE)

        assert told.reason is NotificationReason.FIRST

    def test_off_hours_a_route_is_quiet_and_speaks_afterwards(self) -> None:
        """Tickets wait for the morning."""
        text = """
route:
  receiver: a
  group_interval: 5m
  routes:
    - matchers: [severity=ticket]
      receiver: b
      active_time_intervals: [office]
time_intervals:
  - name: office
    time_intervals: [{times: [{start_time: "14:00", end_time: "15:00"}], location: Europe/Berlin}]
"""
        notifier = Notifier(routing(text).rules)
        notifier.fire({"severity": "ticket"})

        [told] = notifier.run(NOON.replace(hour=8), NOON.replace(hour=14), timedelta(seconds=30))

        assert NOON.replace(hour=12) <= told.at <= NOON.replace(hour=13, minute=5)
        assert told.suppressed == 0
