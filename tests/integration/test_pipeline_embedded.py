"""The whole way of the data on the embedded pair: every event one outcome, nothing lost, nothing twice."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from agents.supervisor import Deployment
from monitor.adapters.kafka_admin import Held
from monitor.alerting.alert import AlertState
from monitor.alerting.receiver import Notification
from monitor.alerting.shifts import PAGES_MAX, paging, played
from monitor.cli.replaying import Replayed, run_on
from monitor.cli.views import Views
from monitor.clock import ClockKind
from monitor.demo.traffic import START, traffic
from monitor.intake.dead_letter import DeadLetter
from monitor.intake.formats.openai_chat import Shape, events_of
from monitor.judging.judgment import JudgeFailure, Judgment
from monitor.policy import Policy
from monitor.topics import ALERTS, ARCHIVE, JUDGE_REQUESTS, JUDGMENTS
from tests.servers.deployment import (
    dead_letters_of,
    double_counted,
    kept_ids,
    policy_of,
    read,
    records_of,
    settings_for,
)

pytestmark = pytest.mark.embedded

CONVERSATIONS = 120
BEGIN = START + timedelta(days=6)
"""The seventh day: a release in the morning breaks two intents."""
EMAIL = "jo.hartwell@example.com"
Event = Mapping[str, Any] | bytes
NOT_UTF_8 = b'\xff\xfe{"type": "turn"'


@dataclass
class Ran:
    """What two replays of the same events left behind."""

    events: list[Event]
    first: Replayed
    second: Replayed
    units_first: int
    units_second: int
    double: int
    judged_again: set[str]
    """Conversations of which something was judged in the second replay only."""
    records: list[Judgment | JudgeFailure]
    letters: list[DeadLetter]
    inner: dict[str, list[Held]]
    policy: Policy


def shop_with_an_email(policy: Policy) -> list[tuple[datetime, Event]]:
    """Return two days of the shop, one conversation more that names an address, and one event that is no text."""
    shop = [one for one in traffic(CONVERSATIONS * 4) if one[0] >= BEGIN]
    # A conversation that was under way at midnight is one that lost its beginning.
    begun = {event["conversation_id"] for _, event in shop if _opens(event)}
    shop = [one for one in shop if isinstance(one[1], bytes) or one[1]["conversation_id"] in begun]
    (name,) = kept_ids(policy, "mail", 1)
    said = [
        {"role": "user", "content": f"hi, please write to {EMAIL} when my parcel is there"},
        {"role": "assistant", "content": f"I will write to {EMAIL} as soon as it is delivered."},
    ]
    record = {"id": name, "assistant": "shop", "intent": "shipping", "channel": "web", "messages": said}
    told = events_of(record, shape=Shape.TURNS, start=BEGIN + timedelta(hours=20))
    assert isinstance(told, list)
    # Its first turn is sent twice.
    more: list[tuple[datetime, Event]] = [
        (datetime.fromisoformat(event["occurred_at"]), event) for event in (told[0], *told)
    ]
    at = BEGIN + timedelta(hours=30)
    raw: list[tuple[datetime, Event]] = [(at, NOT_UTF_8), (at, b"<html>502 Bad Gateway</html>"), (at, b"{}")]
    return sorted([*shop, *more, *raw], key=lambda one: one[0])


def _opens(event: Event) -> bool:
    return not isinstance(event, bytes) and event.get("turn_index") == 0


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("embedded")
    settings = settings_for(folder, namespace="embedded", clock=ClockKind.STREAM)
    policy = policy_of(settings)
    timed = shop_with_an_email(policy)
    with (
        Deployment(
            settings, policy, embedded_kafka=True, embedded_redis=True, log_folder=folder / "logs"
        ) as deployment,
        closing(Views(deployment.settings, policy)) as views,
    ):

        def replayed() -> Replayed:
            return run_on(deployment, views, timed, speed=None, sent=lambda *_: None, look=lambda _: None)

        first = replayed()
        units_first = views.units()
        before = {record.judgment_id for record in records_of(deployment.settings)}
        second = replayed()
        records = records_of(deployment.settings)
        yield Ran(
            events=[event for _, event in timed],
            first=first,
            second=second,
            units_first=units_first,
            units_second=views.units(),
            double=double_counted(views, records),
            judged_again={
                record.target.conversation_id for record in records if record.judgment_id not in before
            },
            records=records,
            letters=dead_letters_of(deployment.settings),
            inner={
                name: read(deployment.settings, name) for name in (JUDGE_REQUESTS, JUDGMENTS, ARCHIVE, ALERTS)
            },
            policy=policy,
        )


def test_every_event_has_one_outcome_and_none_is_lost(ran: Ran) -> None:
    """The funnel adds up to what the producer sent, or nobody can trust a count of it."""
    assert ran.first.events == len(ran.events)
    assert ran.first.lost == 0
    assert ran.first.funnel.open == 0
    assert ran.first.funnel.received == len(ran.events)
    assert ran.first.funnel.events["judged"] > 50
    assert any(name.startswith("sampled_out:") for name in ran.first.funnel.events)


def test_windows_count_each_judged_unit_once(ran: Ran) -> None:
    """A unit that counted twice would move a mean without anybody having said anything."""
    assert ran.units_first > 100
    assert ran.double == 0


def test_every_target_was_judged_once(ran: Ran) -> None:
    """Without a kill nothing is delivered twice, so each judgment stands in the topic once."""
    times = Counter(record.judgment_id for record in ran.records)
    told = Counter(ran.first.funnel.judgments) + Counter(ran.second.funnel.judgments)

    assert set(times.values()) == {1}
    assert len(times) == told.total()


def test_what_the_producer_sent_twice_is_counted_as_such(ran: Ran) -> None:
    """Duplicates are the producer's, and a quality monitor that hid them would judge on wrong counts."""
    sent = Counter(event["event_id"] for event in ran.events if not isinstance(event, bytes))
    kept = {event_id for record in ran.records for event_id in record.event_ids}
    twice = {name for name, count in sent.items() if count > 1}

    assert "mail-aaa:t0" in twice & kept
    assert len(twice & kept) <= ran.first.funnel.events["duplicate"] <= len(twice)


def test_what_is_no_event_is_kept_with_its_exact_bytes(ran: Ran) -> None:
    """Whoever repairs the producer needs what it sent, not what we made of it."""
    wanted = [event for event in ran.events if isinstance(event, bytes)]

    assert NOT_UTF_8 in wanted
    # Once each replay: another position is another letter.
    assert Counter(letter.value for letter in ran.letters) == Counter(wanted * 2)
    assert {letter.stage for letter in ran.letters} == {"sample"}
    assert {letter.fault for letter in ran.letters} == {"undecodable", "invalid"}


@pytest.mark.parametrize("topic", [JUDGE_REQUESTS, JUDGMENTS, ARCHIVE])
def test_an_address_stays_out_of_what_is_kept(ran: Ran, topic: str) -> None:
    """Masking comes before Redis and judge; the archive lives for ninety days."""
    raw = b"\n".join((held.key or b"") + b" " + (held.value or b"") for held in ran.inner[topic])

    assert b"mail-aa" in raw, "its conversation is there"
    assert b"hartwell" not in raw
    if topic != JUDGMENTS:
        assert b"[EMAIL_" in raw


def test_the_same_events_again_add_no_unit(ran: Ran) -> None:
    """A replay that is repeated, or a producer that resends a day, must not move a window."""
    assert ran.second.lost == 0
    assert ran.second.funnel.received == len(ran.events)
    assert not [name for name in ran.second.funnel.judgments if name.startswith("conversation ")]
    assert ran.units_second == ran.units_first


def test_the_same_events_again_are_judged_only_where_a_signal_came_late(ran: Ran) -> None:
    """A thumb promotes a conversation in its middle; sent again, its early turns find it kept, and are judged.

    They stand for nobody, so no window of conversations knows them.
    """
    promoted = {
        event["conversation_id"]
        for event in ran.events
        if not isinstance(event, bytes) and event["type"] == "feedback"
    }

    assert ran.judged_again <= promoted


def test_a_bad_release_wakes_nobody_more_than_twice_a_shift_and_hides_nothing(ran: Ran) -> None:
    """What the shipped routes make of the shop's alerts at the shop's own time, critical failures included."""
    record = [Notification.model_validate_json(held.value) for held in ran.inner[ALERTS] if held.value]
    fired = {one.alert.fingerprint for one in record if one.alert.state is AlertState.FIRING}

    told = played(ran.policy.routing, record)

    assert len(fired) > 3
    assert all(one.busiest <= PAGES_MAX for one in paging(told))
    assert {each.alert.fingerprint for one in told for each in one.alerts} == fired
