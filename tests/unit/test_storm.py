"""Storms, restarts and clocks that jump: bounded messages, nothing lost, what was held back is counted."""

from datetime import timedelta

from monitor.alerting.notification import ALERTS_MAX, Status
from tests.groups import SECOND, Notifier, routing
from tests.judgments import HOUR, MINUTE, NOON

FINDINGS = 2000


def storm(number: int) -> dict[str, str]:
    return {
        "assistant": f"bot{number % 4}",
        "severity": "page",
        "finding": "gate",
        "segment": f"intent={number}",
    }


def test_two_thousand_findings_in_a_minute_are_few_messages_and_none_is_lost() -> None:
    """Four assistants break in all their intents: four incidents, told as they grow."""
    notifier = Notifier(routing("routes: {page: [a]}").rules)
    for second in range(0, 60, 5):
        begin, end = (FINDINGS * at // 60 for at in (second, second + 5))
        notifier.fire(*(storm(number) for number in range(begin, end)))
        notifier.tick(NOON + second * SECOND)
    told = notifier.run(NOON + MINUTE, NOON + 11 * MINUTE, 30 * SECOND)

    assert len(notifier.told) <= 12
    latest = {one.group_id: one for one in told}
    assert sum(one.firing for one in latest.values()) == FINDINGS
    assert all(len(one.alerts) + one.truncated == one.firing for one in notifier.told)
    assert all(len(one.alerts) <= ALERTS_MAX for one in notifier.told)


def test_what_a_storm_suppresses_is_counted() -> None:
    """All traffic fails, so its segments are held back, and the one message says how many."""
    notifier = Notifier(routing("routes: {page: [a]}").rules)
    notifier.fire({"assistant": "bot0", "severity": "page", "finding": "gate", "segment": "*"})
    notifier.fire(*(storm(4 * number) for number in range(500)))

    [told] = notifier.run(NOON, NOON + MINUTE, 30 * SECOND)

    assert (told.firing, told.suppressed) == (1, 500)


def test_too_many_groups_share_one() -> None:
    """A label with a value for each alert must not become a message for each alert."""
    rules = routing("route: {receiver: a, group_by: [segment]}").rules
    notifier = Notifier(type(rules)(rules.root, rules.receivers, groups_max=10))
    notifier.fire(*(storm(number) for number in range(300)))

    told = notifier.run(NOON, NOON + MINUTE, 30 * SECOND)

    assert len(told) <= 11
    assert sum(one.firing for one in told) == 300


def test_a_restart_tells_nothing_twice_and_forgets_nothing() -> None:
    """The state is a value: a notifier that comes back goes on where the last one was killed."""
    policy = routing("routes: {page: [a]}")
    first = Notifier(policy.rules)
    first.fire(storm(0))
    assert len(first.run(NOON, NOON + MINUTE)) == 1
    second = Notifier(policy.rules)
    second.groups, second.alerts = dict(first.groups), dict(first.alerts)
    assert second.run(NOON + MINUTE, NOON + 30 * MINUTE, 30 * SECOND) == []
    second.resolve(storm(0))

    [over] = second.run(NOON + 30 * MINUTE, NOON + 40 * MINUTE, 30 * SECOND)

    assert over.status is Status.RESOLVED


def test_a_clock_set_back_delays_by_no_more_than_an_interval() -> None:
    """Nobody waits a year for the clock to come round again."""
    notifier = Notifier(routing("routes: {page: [a]}").rules)
    notifier.fire(storm(0))
    notifier.run(NOON, NOON + MINUTE)
    back = NOON - timedelta(days=365)
    notifier.tick(back)
    notifier.fire(storm(4))

    [told] = notifier.run(back, back + 6 * MINUTE)

    assert told.firing == 2


def test_a_clock_that_jumps_ahead_makes_one_reminder_of_many() -> None:
    """After a night of sleep a notifier says once what it missed."""
    notifier = Notifier(routing("routes: {page: [a]}").rules)
    notifier.fire(storm(0))
    notifier.run(NOON, NOON + MINUTE)

    assert len(notifier.run(NOON + 48 * HOUR, NOON + 49 * HOUR, MINUTE)) == 1
