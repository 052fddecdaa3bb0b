"""The same routes and the same alerts in a real Alertmanager and in our engine: the same is told, at the same time."""

import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.alerting.matchers import matcher
from monitor.alerting.notification import GroupNotification, Status
from monitor.alerting.silence import a_silence
from tests.groups import Notifier, routing
from tests.servers.alertmanager import Alertmanager

ROUTES = """
route:
  receiver: a
  group_by: [assistant]
  group_wait: 1500ms
  group_interval: 2s
  repeat_interval: 5s
  routes:
    - matchers: ['severity="page"']
      receiver: b
      group_by: [dimension, assistant]
      continue: true
    - matchers: ['dimension=~"saf.*"', team!=""]
      receiver: c
      group_by: ['...']
      repeat_interval: 1h
    - matchers: [severity=info]
      receiver: b
      mute_time_intervals: [always]
    - matchers: [severity=hours]
      receiver: b
      active_time_intervals: [long-ago]
    - matchers: [severity=now]
      receiver: b
      repeat_interval: 1h
      active_time_intervals: [always, long-ago]
      routes:
        - matchers: [deep=yes]
          receiver: c
          group_by: [nothing, deep]
    - matchers: [severity=firing-only]
      receiver: d
inhibit_rules:
  - source_matchers: [severity=page]
    target_matchers: [severity=ticket]
    equal: [assistant, dimension, absent]
time_intervals:
  - name: always
    time_intervals:
      - weekdays: ['sunday:saturday']
        months: ['january:december']
        days_of_month: ['1:-1']
        times: [{start_time: '00:00', end_time: '24:00'}]
        location: Europe/Berlin
  - name: long-ago
    time_intervals: [{years: ['1999:2001']}]
"""
A1 = {"assistant": "bot", "dimension": "safety", "severity": "page"}
A2 = {"assistant": "bot", "dimension": "policy", "severity": "ticket"}
A3 = {"assistant": "bot", "dimension": "safety", "severity": "ticket", "segment": "x"}
A4 = {"assistant": "bot", "dimension": "policy", "severity": "ticket", "segment": "y"}
B1 = {"assistant": "shop", "dimension": "safety", "severity": "ticket", "team": "z"}
MUTED = {"assistant": "bot", "severity": "info"}
OFF_HOURS = {"assistant": "bot", "severity": "hours"}
DEEP = {"assistant": "bot", "severity": "now", "deep": "yes"}
SHORT = {"assistant": "short", "severity": "ticket"}
ONCE = {"assistant": "once", "severity": "firing-only"}
ONCE_TOO = {"assistant": "once", "severity": "firing-only", "segment": "x"}

# Second -> what begins and what ends. Groups take their turns at half seconds, so that nothing is a close call.
SCRIPT: dict[int, tuple[list[dict[str, str]], list[dict[str, str]]]] = {
    0: ([A1, A2, MUTED, ONCE], []),
    1: ([A3], []),
    3: ([B1, OFF_HOURS, DEEP], []),
    5: ([A4, ONCE_TOO], []),
    8: ([], [A1, ONCE_TOO]),
    10: ([], [A2, ONCE]),
    12: ([A2, ONCE], []),
    14: ([SHORT], [B1]),
    15: ([], [SHORT]),
    16: ([], [A3, A4, DEEP]),
    18: ([], [A2, MUTED, OFF_HOURS, ONCE]),
    19: ([A2], []),
    21: ([], [A2]),
}
SILENCED = (4, 9)
END = 24


@pytest.mark.usefixtures("alertmanager_program")
def test_the_same_is_told_as_by_a_real_alertmanager(tmp_path: Path) -> None:
    """Whoever knows Alertmanager knows what our routing.yaml does: waits, intervals, repeats, muting, ends."""
    theirs = _theirs(tmp_path)
    ours = _ours()

    assert {key: [told for _, told in entries] for key, entries in ours.items()} == {
        key: [told for _, told in entries] for key, entries in theirs.items()
    }
    assert sum(map(len, ours.values())) >= 16
    for key, entries in ours.items():
        for (at, _), (their_time, _) in zip(entries, theirs[key], strict=True):
            assert at == pytest.approx(their_time, abs=0.45), key


def _theirs(folder: Path) -> dict[tuple[str, str], list[tuple[float, Any]]]:
    with Alertmanager(folder, routing(ROUTES), firing_only={"d"}) as alertmanager:
        start, now = time.monotonic(), datetime.now(UTC)  # noqa: TID251 - it runs in real time

        def silence() -> None:
            begin, end = (now + timedelta(seconds=second) for second in SILENCED)
            alertmanager.silence([matcher("dimension=policy")], starts_at=begin, ends_at=end)

        def play(second: int) -> None:
            begins, ends = SCRIPT[second]
            if ends:
                alertmanager.post(ends, ends_at=now + timedelta(seconds=second))
            if begins:
                alertmanager.post(begins, ends_at=now + timedelta(hours=1))

        _at_seconds(start, play, silence)
        told = list(alertmanager.told)
    found: dict[tuple[str, str], list[tuple[float, Any]]] = defaultdict(list)
    for at, receiver, body in told:
        groups = {
            status: frozenset(
                frozenset(one["labels"].items()) for one in body["alerts"] if one["status"] == status
            )
            for status in ("firing", "resolved")
        }
        entry = (body["status"], groups["firing"], groups["resolved"])
        found[receiver, body["groupKey"]].append((at - start, entry))
    return dict(found)


def _at_seconds(start: float, play: Callable[[int], None], silence: Callable[[], None]) -> None:
    for second in range(END):
        time.sleep(max(0.0, start + second - time.monotonic()))
        if second == SILENCED[0] - 1:
            silence()
        if second in SCRIPT:
            play(second)
    time.sleep(max(0.0, start + END - time.monotonic()))


def _ours() -> dict[tuple[str, str], list[tuple[float, Any]]]:
    start = datetime(2026, 3, 10, 12, tzinfo=UTC)
    rules = routing(ROUTES).rules
    notifier = Notifier(type(rules)(**{**rules.__dict__, "firing_only": {"d"}}))
    begin, end = (start + timedelta(seconds=second) for second in SILENCED)
    notifier.silences = [
        a_silence((matcher("dimension=policy"),), author="t", reason="t", starts_at=begin, ends_at=end)
    ]
    for tick in range(END * 20):
        if tick % 20 == 0 and tick // 20 in SCRIPT:
            begins, ends = SCRIPT[tick // 20]
            notifier.resolve(*ends)
            notifier.fire(*begins)
        notifier.tick(start + timedelta(seconds=tick / 20))
    found: dict[tuple[str, str], list[tuple[float, Any]]] = defaultdict(list)
    for told in notifier.told:
        entry = (str(told.status), _labels(told, Status.FIRING), _labels(told, Status.RESOLVED))
        found[told.receiver, told.group_key].append(((told.at - start).total_seconds(), entry))
    return dict(found)


def _labels(told: GroupNotification, status: Status) -> frozenset[frozenset[tuple[str, str]]]:
    return frozenset(frozenset(one.labels.items()) for one in told.alerts if one.status is status)
