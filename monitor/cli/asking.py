"""What the looking commands share: the stores of one deployment, its broker, options that mean the same everywhere."""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from agents.services import Stores, wall_now
from monitor.adapters.kafka_admin import BrokerUnavailable, KafkaAdmin
from monitor.alerting.alert import Alert, Transition
from monitor.alerting.budgets import Budget, budgets_of
from monitor.alerting.changes import Sighting
from monitor.alerting.deciding import Refused
from monitor.alerting.forgetting import without_words_of
from monitor.alerting.judges import LiveAnchors
from monitor.alerting.silence import Silence
from monitor.cli.context import load, sentences
from monitor.cli.views import Views
from monitor.detection.census import Whose, census_series
from monitor.detection.exception import GateException
from monitor.detection.gates import GatePolicy
from monitor.detection.judge_drift import Anchored
from monitor.detection.pinning import Pinned, Span, overall_slices
from monitor.detection.registry import Registered, Served, Tally
from monitor.intake.event import Environment
from monitor.judging.anchors import AnchorScore
from monitor.judging.calibration import Calibration
from monitor.judging.health import JudgeHealth, health_of
from monitor.judging.judgment import JudgeIdentity
from monitor.judging.rubric import TargetKind
from monitor.policy import Policy
from monitor.review.migration import Splice
from monitor.settings import Settings
from monitor.windows.bucket import BucketCounts, Granularity, Scope

PIPE_WIDTH = 140
PROBE_SECONDS = 2.0
"""How long a broker may take to accept a connection; the admin client itself would wait for half a minute."""
ATTEMPTS = 5
"""Tries to win a compare-and-set against the evaluator."""

NameOption = Annotated[
    str | None, typer.Option("--name", help="Namespace, as of a replay; without it MONITOR_NAMESPACE.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


class Forgotten(NamedTuple):
    """What was erased in Redis."""

    texts: int
    answers: int
    cases: int
    alerts: int
    messages: int
    """Messages that wait for the topic or for receivers."""


class Looks(Views):
    """Further reads of one deployment, and the one thing that people may erase."""

    def buckets(
        self, start: datetime, end: datetime, granularity: Granularity = Granularity.BUCKET
    ) -> Sequence[tuple[Scope, Mapping[datetime, BucketCounts]]]:
        """Return the buckets, hours or days of each scope that has any that begin in [start, end)."""

        async def read(stores: Stores) -> list[tuple[Scope, Mapping[datetime, BucketCounts]]]:
            found = [
                (scope, await stores.windows.slices(scope, start, end, granularity))
                for scope in await stores.windows.scopes(granularity)
            ]
            return [(scope, slices) for scope, slices in found if slices]

        return self._ask(read)

    def buckets_of(self, scope: Scope, start: datetime, end: datetime) -> Mapping[datetime, BucketCounts]:
        """Return the buckets of one scope in [start, end)."""
        return self._ask(lambda stores: stores.windows.buckets(scope, start, end))

    def overall(self, scope: Scope, span: Span) -> Mapping[datetime, BucketCounts]:
        """Return the overall counts of one scope, by the slices of a span."""
        return self._ask(lambda stores: overall_slices(stores.windows, scope, span))

    def baselines(self) -> tuple[Pinned, ...]:
        """Return all baselines that are kept, the current one of each scope first."""
        return self._ask(lambda stores: stores.baselines.all())

    def baseline(self, scope_id: str) -> Pinned | None:
        """Return the current baseline of a scope."""
        return self._ask(lambda stores: stores.baselines.current(scope_id))

    def pin(self, pinned: Pinned) -> None:
        """Make this the baseline of its scope."""
        self._ask(lambda stores: stores.baselines.pin(pinned))

    def others(self, scope: Scope, start: datetime, end: datetime) -> Mapping[str, int]:
        """Count the values that became `*other`, by key."""
        return self._ask(lambda stores: stores.windows.others(scope, start, end))

    def late(self, start: datetime, end: datetime) -> int:
        """Count the judgments that came too late on the days of an interval."""
        return self._ask(lambda stores: stores.windows.late(start, end))

    def calibration(self, judge_version: str, rubric_version: str) -> Calibration | None:
        """Return what is kept of a judge's agreement with people."""
        return self._ask(
            lambda stores: stores.calibrations.get(judge_version=judge_version, rubric_version=rubric_version)
        )

    def put_calibration(self, calibration: Calibration) -> None:
        """Keep what is known of a judge's agreement with people."""
        self._ask(lambda stores: stores.calibrations.put(calibration))

    def judge_health(self, end: datetime, hours: int) -> list[JudgeHealth]:
        """Return how each judge was in the hours before a time."""
        counters = self._ask(lambda stores: stores.health.read(end - timedelta(hours=hours), end))
        return [health_of(name, one) for name, one in counters.items()]

    def live_anchors(self, judge: JudgeIdentity) -> LiveAnchors:
        """Return where the anchors of a judge are, under the configured rubric."""
        return LiveAnchors(
            store=self._stores.anchors,
            judge=judge,
            rubric_version=self._policy.rubric.version,
            policy=self._policy.monitor.judge.anchors,
        )

    def anchored(self, live: LiveAnchors, now: datetime) -> Anchored:
        """Return what the anchors say of a judge."""
        return self._ask(lambda _: live.read(now))

    def anchor_scores(
        self, live: LiveAnchors, now: datetime
    ) -> tuple[Mapping[str, AnchorScore], Sequence[AnchorScore]]:
        """Return the pinned scores and the newer ones."""
        return self._ask(lambda _: live.scores(now))

    def repin(self, live: LiveAnchors, pins: Sequence[AnchorScore]) -> None:
        """Put these in the place of the pinned scores."""
        self._ask(lambda stores: stores.anchors.repin(pins, **live.versions))

    def splice(self, old_judge: str, new_judge: str) -> Splice | None:
        """Return how the series of one judge go on under another, None where nobody migrated."""
        return self._ask(lambda stores: stores.splices.get(old_judge=old_judge, new_judge=new_judge))

    def put_splice(self, splice: Splice) -> None:
        """Keep how the series of one judge go on under another."""
        self._ask(lambda stores: stores.splices.put(splice))

    def registered(self) -> tuple[Registered, ...]:
        """Return the configurations that were evaluated offline."""
        return self._ask(lambda stores: stores.configurations.registered())

    def register(self, entries: Sequence[Registered]) -> None:
        """Write configurations that were evaluated offline."""
        self._ask(lambda stores: stores.configurations.register(entries))

    def unregister(self, entry_id: str) -> bool:
        """Take a configuration out; False if there was none."""
        return self._ask(lambda stores: stores.configurations.remove(entry_id))

    def served(self, end: datetime, hours: int) -> Mapping[Served, Tally]:
        """Return what served in the hours before a time."""
        return self._ask(lambda stores: stores.configurations.served(end - timedelta(hours=hours), end))

    def sightings(self, assistant: str, environment: Environment) -> tuple[Sighting, ...]:
        """Return what was seen of one assistant."""
        return self._ask(lambda stores: stores.changes.sightings(assistant, environment))

    def census(
        self, start: datetime, end: datetime, strata: Sequence[str]
    ) -> Mapping[Whose, Mapping[datetime, BucketCounts]]:
        """Return the signals of all traffic, by assistant and environment."""
        return census_series(self._ask(lambda stores: stores.census.counts(start, end)), strata)

    def budgets(self, policy: GatePolicy, judge_version: str | None, now: datetime) -> tuple[Budget, ...]:
        """Return how the objectives stand by a judge's conversation series, by all judges' if none is named."""

        async def read(stores: Stores) -> tuple[Budget, ...]:
            found: list[Budget] = []
            for scope in await stores.windows.scopes() if policy.slo.objectives else ():
                if (
                    scope.target is TargetKind.CONVERSATION
                    and scope.environment in policy.environments
                    and judge_version in {None, scope.judge_version}
                ):
                    found += await budgets_of(stores.windows, policy, scope, now=now)
            return tuple(found)

        return self._ask(read)

    def begins(self) -> tuple[datetime, ...]:
        """Return the starts of all kept buckets."""
        return self._ask(lambda stores: stores.windows.begins())

    def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that has a bucket."""
        return self._ask(lambda stores: stores.windows.scopes())

    def waiting_notifications(self, limit: int = 1000) -> int:
        """Count what people have not been told: what no group took up, to a limit, and what waits for receivers."""

        async def count(stores: Stores) -> int:
            return len(await stores.alerts.outbox(limit)) + await stores.groups.waiting_count()

        return self._ask(count)

    def silences(self) -> tuple[Silence, ...]:
        """Return all silences that are kept."""
        return self._ask(lambda stores: stores.groups.silences())

    def put_silence(self, silence: Silence) -> None:
        """Write a silence."""
        self._ask(lambda stores: stores.groups.put_silence(silence))

    def put_exception(self, exception: GateException) -> None:
        """Write an exception of a gate."""
        self._ask(lambda stores: stores.alerts.put_exception(exception))

    def change(self, fingerprint: str, act: Callable[[Alert], Transition | Refused]) -> Transition | Refused:
        """Write what a person says of an alert, on whatever the evaluator made of it meanwhile."""

        async def write(stores: Stores) -> Transition | Refused:
            for _ in range(ATTEMPTS):
                alert = await stores.alerts.get(fingerprint)
                said = act(alert) if alert else Refused("it is not kept any more")
                if isinstance(said, Refused) or await stores.alerts.commit(said):
                    return said
            return Refused("others keep changing it; try again")

        return self._ask(write)

    def forget(
        self, conversation_id: str, judgment_ids: Sequence[str], *, again: Sequence[str] = ()
    ) -> Forgotten:
        """Erase the words of a conversation in Redis; figures stay. Doing it again changes nothing.

        `again` are the ids of answers that may be kept though no record names them.
        """

        async def erase(stores: Stores) -> Forgotten:
            cases = await stores.windows.forget(conversation_id)
            alerts = 0
            for alert in await stores.alerts.all():
                alerts += await _forget_in(stores, alert.fingerprint, conversation_id)
            # After the alerts: what is told from now on is told without the words.
            messages = await stores.alerts.forget(conversation_id) + await stores.groups.forget(
                conversation_id
            )
            await stores.answers.forget([*judgment_ids, *again])
            # Its record comes last: it names the judgments, should this have to be done again.
            texts = await stores.conversations.forget(conversation_id)
            return Forgotten(texts, len(judgment_ids), cases, alerts, messages)

        return self._ask(erase)


async def _forget_in(stores: Stores, fingerprint: str, conversation_id: str) -> int:
    for _ in range(ATTEMPTS):
        alert = await stores.alerts.get(fingerprint)
        transition = without_words_of(alert, conversation_id) if alert else None
        if transition is None:
            return 0
        if await stores.alerts.commit(transition):
            return 1
    return 0


@contextmanager
def looking(name: str | None) -> Iterator[tuple[Settings, Policy, Looks]]:
    """Open the stores of a namespace; what goes wrong outside of us is one sentence."""
    with sentences():
        settings, policy = loaded(name)
        with closing(Looks(settings, policy)) as looks:
            yield settings, policy, looks


def latest(policy: Policy, looks: Looks) -> datetime:
    """Return now; on the stream's clock the last bucket's end, for what ends a replay moves time far beyond it."""
    begins = looks.begins()
    if looks.newest() is None or not begins:
        return wall_now()
    return begins[-1] + timedelta(minutes=policy.monitor.windows.bucket_minutes)


def loaded(name: str | None) -> tuple[Settings, Policy]:
    """Read settings and configuration, for a namespace if one is given."""
    return load(namespace=name) if name else load()


@contextmanager
def broker(settings: Settings) -> Iterator[KafkaAdmin]:
    """Open the broker's administration; raises BrokerUnavailable within seconds, not half a minute."""
    addresses = settings.kafka.split(",")
    if not any(_accepts(address) for address in addresses):
        raise BrokerUnavailable(
            f"Kafka at {settings.kafka}: nobody answers there; is MONITOR_KAFKA right and the broker up?"
        )
    with closing(KafkaAdmin(settings)) as admin:
        yield admin


def moment(at: datetime | None) -> str:
    """Return a time as people read it, to the second, with its zone."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def minute(at: datetime | None) -> str:
    """Return a time in a column whose head says that it is UTC."""
    return "-" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def screen() -> Console:
    """Return the console; a pipe has no width of its own, and 80 columns would cut every table."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)


def show_table(table: Table, nothing: str) -> None:
    """Print a table, or a sentence in the place of one without rows."""
    if table.row_count:
        screen().print(table)
    else:
        screen().print(nothing, soft_wrap=True, highlight=False, markup=False)


def printed(value: Any) -> None:
    """Print a JSON text; rich would colour and wrap it."""
    typer.echo(value)


def _accepts(address: str) -> bool:
    host, _, port = address.strip().rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
