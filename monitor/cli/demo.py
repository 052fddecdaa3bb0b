"""`monitor demo`: eight days of an invented shop in about a minute, from its traffic to the alert."""

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.live import Live

from agents.supervisor import Deployment, ProcessFailed
from monitor.adapters.kafka_admin import KafkaAdmin
from monitor.adapters.kafka_sender import KafkaSender
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.receiver import Notification
from monitor.alerting.render import as_text, title
from monitor.alerting.shifts import PAGES_MAX, Paging, paging, played
from monitor.cli.asking import Looks
from monitor.cli.context import sentences
from monitor.cli.demo_screen import Look, screen
from monitor.cli.pages import said
from monitor.cli.replaying import Replayed, run_on
from monitor.clock import ClockKind
from monitor.demo.traffic import DAYS, RELEASE, START, release, traffic
from monitor.detection.finding import FindingKind
from monitor.detection.pinning import overall_series, pinned_of
from monitor.funnel import Funnel
from monitor.judging.judgment import JUDGMENT_RECORD, Judgment
from monitor.judging.rubric import TargetKind
from monitor.policy import Policy, load_policy
from monitor.publishing import Outgoing
from monitor.settings import load_settings
from monitor.topics import ALERTS, CHANGE_EVENTS, JUDGMENTS

TRAFFIC_SECONDS = 40.0
"""How long the eight days take; a slower machine takes the time it needs."""
LOOK_EVERY_SECONDS = 1.0
WINDOW = timedelta(hours=6)
PINNED_TO = START + timedelta(days=6)
"""Where the baseline ends, nine hours before the release."""
SHOWN = {
    FindingKind.GATE: "the release misses a gate: what whoever is on call gets",
    FindingKind.REGRESSION: "the release against what was normal before it",
}
_HERE = Path(__file__).resolve().parent.parent / "demo"


def demo() -> None:
    """Show the whole way of the data on this machine: no key, no network, nothing left behind."""
    console = Console()
    with sentences(), tempfile.TemporaryDirectory(prefix="cm-demo-") as folder:
        settings = load_settings(
            namespace="demo",
            config=_HERE / "config",
            documents=_HERE / "policies",
            clock=ClockKind.STREAM,
            data_dir=Path(folder) / "data",
            judge_api_key=None,
            log_level="warning",
        )
        policy = load_policy(settings.config, clock=settings.clock)
        deployment = Deployment(
            settings, policy, embedded_kafka=True, embedded_redis=True, log_folder=Path(folder) / "logs"
        )
        console.print(
            f"Eight days of an invented shop in about a minute, judged by offline rules. "
            f"A release on {RELEASE:%A %d %B, %H:%M} will break two intents.\n"
        )
        try:
            with deployment:
                status = _run(console, deployment)
        except ProcessFailed as error:
            sys.stderr.write(f"monitor: {error}\n")
            status = 1
    raise SystemExit(status)


def _run(console: Console, deployment: Deployment) -> int:
    with closing(Looks(deployment.settings, deployment.policy)) as views:
        _announce(deployment)
        replayed = _replay(console, deployment, views)
        notifications, units = _from_topics(deployment)
        fired = _in_order_of_firing(views.alerts())
        double = views.units() - units
    rung = paging(played(deployment.policy.routing, notifications))
    _tell(console, fired, notifications, rung)
    judged = sum(count for name, count in replayed.funnel.judgments.items() if name.endswith(" judged"))
    # Not through rich: the last line is for machines, and must not be wrapped.
    sys.stdout.write(
        f"demo: {replayed.events} events, {replayed.funnel.sampled} sampled, {judged} judged, "
        f"{len(fired)} alerts, {_busiest(rung)} pages a shift, {replayed.lost} lost, {double} double-counted\n"
    )
    quiet = _busiest(rung) <= PAGES_MAX
    return 0 if _as_it_should_be(fired) and quiet and replayed.lost == double == 0 else 1


def _announce(deployment: Deployment) -> None:
    """Say what will be released, as a deployment pipeline does; the alert must name it."""
    event = release()
    topic = deployment.settings.topic_prefix + CHANGE_EVENTS
    message = Outgoing(topic, event.event_id.encode(), event.model_dump_json().encode())
    KafkaSender(deployment.settings).send([message])


def _pin(views: Looks, policy: Policy) -> bool:
    """Pin what was normal before the release, as people do who accepted the one before."""
    minutes = policy.monitor.windows.bucket_minutes
    for scope in views.scopes():
        if scope.target is TargetKind.CONVERSATION:
            series = overall_series(
                views.buckets_of(scope, START, PINNED_TO), start=START, end=PINNED_TO, bucket_minutes=minutes
            )
            views.pin(
                pinned_of(
                    scope,
                    series,
                    release="release 6",
                    at=PINNED_TO,
                    by="the demo",
                    policy=policy.monitor.detection.baseline,
                )
            )
    return True


def _replay(console: Console, deployment: Deployment, views: Looks) -> Replayed:
    speed = timedelta(days=DAYS).total_seconds() / TRAFFIC_SECONDS
    looked_at = 0.0
    said: set[int] = set()
    pinned = False
    with Live(console=console, auto_refresh=False, transient=False) as live:

        def look(count: int, funnel: Funnel | None = None) -> None:
            nonlocal looked_at, pinned
            if time.monotonic() - looked_at < LOOK_EVERY_SECONDS:
                return
            evaluated = views.evaluated_through() or START
            if not pinned and evaluated >= PINNED_TO:
                pinned = _pin(views, deployment.policy)
            seen = Look(
                sent=count,
                evaluated=evaluated,
                funnel=funnel or views.funnel(),
                windows=views.windows(evaluated - WINDOW, evaluated),
                alerts=_in_order_of_firing(views.alerts()),
            )
            looked_at = time.monotonic()
            if console.is_terminal:
                live.update(screen(seen), refresh=True)
            elif (evaluated - START).days not in said:
                # A log gets one screen a day of the shop, not one a second.
                said.add((evaluated - START).days)
                console.print(screen(seen))

        sent_so_far = 0

        def sent(count: int, _: datetime) -> None:
            nonlocal sent_so_far
            sent_so_far = count
            look(count)

        return run_on(
            deployment,
            views,
            traffic(),
            speed=speed,
            sent=sent,
            look=lambda funnel: look(sent_so_far, funnel),
        )


def _in_order_of_firing(alerts: Sequence[Alert]) -> list[Alert]:
    fired = [(alert.firings[0], alert.fingerprint, alert) for alert in alerts if alert.firings]
    return [alert for *_, alert in sorted(fired, key=lambda one: one[:2])]


def _tell(
    console: Console,
    fired: Sequence[Alert],
    notifications: Sequence[Notification],
    rung: Sequence[Paging],
) -> None:
    detected = [alert for alert in fired if alert.kind is not FindingKind.CRITICAL]
    firsts = {alert.kind: alert.fingerprint for alert in reversed(detected)}
    for kind, rule in SHOWN.items():
        first = next(
            (
                told
                for told in notifications
                if told.alert.fingerprint == firsts.get(kind) and told.alert.state is AlertState.FIRING
            ),
            None,
        )
        if first is not None:
            console.rule(rule)
            console.print(as_text(first), markup=False, highlight=False, soft_wrap=True)
    console.rule("all alerts, in the order of their firing")
    for alert in fired:
        line = f"{alert.firings[0]:%a %d %b %H:%M}  {alert.severity:6} {title(alert)}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.rule("who was woken, by the shop's own clock")
    for line in map(said, rung):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _busiest(rung: Sequence[Paging]) -> int:
    return max((one.busiest for one in rung), default=0)


def _as_it_should_be(fired: Sequence[Alert]) -> bool:
    detected = [alert for alert in fired if alert.kind is not FindingKind.CRITICAL]
    return (
        bool(detected)
        and all(alert.firings[0] > RELEASE for alert in detected)
        # The one that is shown; a gate that fails days later has other things near its onset.
        and _names_the_release(detected[0])
    )


def _names_the_release(alert: Alert) -> bool:
    return alert.evidence is not None and release() in alert.evidence.happened


def _from_topics(deployment: Deployment) -> tuple[list[Notification], int]:
    """Read what people were told, and count the distinct units that were judged, both from Kafka itself."""
    prefix = deployment.settings.topic_prefix
    with closing(KafkaAdmin(deployment.settings)) as admin:
        notifications = [
            Notification.model_validate_json(held.value or b"") for held in admin.read(prefix + ALERTS)
        ]
        units = set()
        for held in admin.read(prefix + JUDGMENTS):
            if held.headers or held.value is None:
                continue
            record = JUDGMENT_RECORD.validate_json(held.value)
            target = record.target
            in_series = target.kind is TargetKind.CONVERSATION and record.rate is not None
            if in_series and isinstance(record, Judgment):
                units |= {(target.conversation_id, score.dimension) for score in record.scores}
    return notifications, len(units)
