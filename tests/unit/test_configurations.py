"""What answers and was never evaluated, and answers from another model."""

from dataclasses import replace

import pytest

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_configurations import MemoryConfigurations
from monitor.alerting.alert import AlertState
from monitor.alerting.changes import Aspect, sightings_of
from monitor.alerting.configurations import evaluate_configurations
from monitor.alerting.naming import runbook, title
from monitor.alerting.render import as_text
from monitor.clock import ClockKind
from monitor.detection.registry import ConfigurationPolicy, Registered, sights_of
from monitor.hops.inbound import Inbound
from monitor.intake.dead_letter import Position
from monitor.intake.event import ServedBy
from monitor.judging.judgment import Record
from monitor.pipeline import Pipeline
from monitor.policy import load_policy
from tests.judgments import HOUR, NOON, a_judgment
from tests.world import World

POLICY = load_policy().gates
GOOD = ServedBy(model_asked="big", model_answered="big-2026-01-01", prompt_hash="a", retrieval_version="3")
NEW = GOOD.model_copy(update={"prompt_hash": "b"})
OTHER = GOOD.model_copy(update={"model_answered": "small"})


def answers(count: int, by: ServedBy, *, hour: int = 0, rate: float = 1.0) -> list[Record]:
    """Return conversations that were answered by a configuration in one hour after noon."""
    return [
        a_judgment(
            f"{by.prompt_hash}{by.model_answered}-{hour}-{n}", at=NOON + hour * HOUR, rate=rate
        ).model_copy(update={"served_by": by})
        for n in range(count)
    ]


def entry(by: ServedBy, **more: str) -> Registered:
    values = {key: getattr(by, key) for key in ("model_asked", "prompt_hash", "retrieval_version")} | more
    return Registered.model_validate(
        {"assistant": "support-bot", "values": values, "by": "j.doe", "at": NOON, "evaluation": "run 1"}
    )


class House:
    """A registry, what served, and the alerts of it."""

    def __init__(self, *registered: ServedBy) -> None:
        self.store = MemoryConfigurations()
        self.alerts = MemoryAlertStore()
        self._first = [entry(one) for one in registered]

    async def after(self, hours: int, *records: Record) -> list[str]:
        """Count records, evaluate so many hours after noon, and return what changed: state and title."""
        await self.store.register(self._first)
        self._first = []
        await self.store.count(sights_of(records, POLICY.configurations))
        changes = await evaluate_configurations(self.store, self.alerts, POLICY, now=NOON + hours * HOUR)
        assert not await evaluate_configurations(self.store, self.alerts, POLICY, now=NOON + hours * HOUR)
        return [f"{one.alert.state}: {title(one.alert)}" for one in changes]


NEVER = "support-bot (production) answers with a configuration that was never evaluated: "
TITLE = NEVER + "model_asked=big, prompt_hash=b, retrieval_version=3"


async def test_nothing_fires_before_the_first_configuration_is_registered() -> None:
    """Else the first day of a deployment would be one alert for each thing that answers."""
    house = House()

    assert await house.after(1, *answers(50, NEW), *answers(50, OTHER)) == []


async def test_a_registry_of_one_assistant_says_nothing_of_another() -> None:
    """Teams begin at different times."""
    house = House()
    await house.store.register([entry(GOOD).model_copy(update={"assistant": "other-bot"})])

    assert await house.after(1, *answers(50, NEW)) == []


async def test_an_unknown_combination_fires_once_and_ends_when_it_is_registered() -> None:
    """It is told once, however long it serves."""
    house = House(GOOD)

    assert await house.after(1, *answers(80, GOOD), *answers(20, NEW)) == [f"firing: {TITLE}"]
    assert await house.after(2, *answers(80, NEW, hour=1)) == []
    await house.store.register([entry(NEW)])
    assert await house.after(3) == [f"resolved: {TITLE}"]
    (alert,) = await house.alerts.all()
    assert (alert.severity, runbook(alert)) == ("ticket", "docs/runbooks/configuration.md")


async def test_it_ends_when_it_was_not_seen_for_a_day_and_not_before() -> None:
    """A rollback ends it; an hour without it, or a night without any traffic, is no rollback."""
    house = House(GOOD)
    assert await house.after(1, *answers(20, NEW)) == [f"firing: {TITLE}"]

    # No traffic at all, for two days: that says nothing.
    assert await house.after(48) == []
    assert await house.after(50, *answers(30, GOOD, hour=49), *answers(1, NEW, hour=49)) == []
    assert await house.after(72, *answers(30, GOOD, hour=71)) == []
    assert await house.after(74) == [f"resolved: {TITLE}"]


async def test_removing_the_last_entry_turns_the_check_off_and_ends_its_alerts() -> None:
    """Nobody should have to wait a day for what they switched off."""
    house = House(GOOD)
    await house.after(1, *answers(20, NEW))
    await house.store.remove(entry(GOOD).id)

    assert await house.after(2) == [f"resolved: {TITLE}"]


@pytest.mark.parametrize(
    ("new", "old", "rate", "fires"),
    [
        (20, 380, 1.0, True),  # equality: 5 % and 20
        (19, 10, 1.0, False),  # too few to say anything
        (20, 381, 1.0, False),  # too small a share
        (20, 38, 0.1, True),  # 20 of 400, since what is known was sampled at a tenth
        (20, 39, 0.1, False),
    ],
)
async def test_it_is_told_from_a_share_of_the_traffic_on(
    new: int, old: int, rate: float, *, fires: bool
) -> None:
    """A new prompt is looked at more closely, and that must not make it look larger than it is."""
    house = House(GOOD)

    assert bool(await house.after(1, *answers(new, NEW), *answers(old, GOOD, rate=rate))) is fires


async def test_many_seldom_ones_are_one_alert() -> None:
    """A hash that changes with each call stays below every share, and is all of the traffic."""
    house = House(GOOD)
    seldom = [NEW.model_copy(update={"prompt_hash": f"p{n}"}) for n in range(40)]
    many = "support-bot (production) answers with many configurations that were never evaluated, each seldom"

    assert await house.after(1, *answers(10, GOOD), *(one for by in seldom for one in answers(1, by))) == [
        f"firing: {many}"
    ]
    # A single one of them a day later is no reason to keep it open.
    assert await house.after(30, *answers(90, GOOD, hour=29), *answers(1, seldom[0], hour=29)) == [
        f"resolved: {many}"
    ]


async def test_another_model_than_asked_for_is_told_unless_the_pair_was_evaluated() -> None:
    """The combination is evaluated, and yet nobody evaluated what answers."""
    house = House(GOOD)
    told = "support-bot (production) asks for the model big, and small answers"

    assert await house.after(1, *answers(80, GOOD), *answers(20, OTHER)) == [f"firing: {told}"]
    await house.store.register([entry(GOOD, model_answered="small")])
    assert await house.after(2) == [f"resolved: {told}"]


def test_a_combination_has_one_order() -> None:
    """Whoever writes its keys in another order in gates.yaml must not make all sightings new."""
    policy = ConfigurationPolicy(combination=("prompt_hash", "model_asked"))

    assert policy.combination == ("model_asked", "prompt_hash")


async def test_the_pipeline_counts_what_answers_and_tells_with_its_first_sighting() -> None:
    """From the judgment to the message, with what was announced near it."""
    world = World(clock=ClockKind.WALL)
    store = MemoryConfigurations()
    await store.register([entry(GOOD)])
    pipeline = Pipeline(replace(world.ports, configurations=store), world.policy, world.sender)
    records = [*answers(30, GOOD, hour=-2), *answers(30, NEW)]
    await pipeline.aggregate(
        [
            Inbound(
                Position(topic="judgments", partition=0, offset=n), b"k", one.model_dump_json().encode(), {}
            )
            for n, one in enumerate(records)
        ]
    )
    world.now = NOON
    await pipeline.evaluate()
    world.now = NOON + HOUR
    await pipeline.evaluate()

    (alert,) = [one for one in await world.alerts.all() if one.kind == "configuration"]
    assert alert.state is AlertState.FIRING
    (entry_told,) = [e for e in await world.alerts.outbox(100) if e.alert.kind == "configuration"]
    text = as_text(entry_told)
    assert "prompt_hash=b served first (2026-03-10T12:00:00Z" in text
    assert "configuration=" not in text
    assert "`monitor configurations list`" in text
    assert "share of the traffic 0.5, gate 0.05, n=60" in text


def test_first_sightings_hold_the_combination_where_one_is_asked_for() -> None:
    """The list of configurations says since when each serves."""
    seen = sightings_of(answers(2, GOOD), ("model_asked", "prompt_hash"))

    (combination,) = [one for one in seen if one.aspect is Aspect.CONFIGURATION]
    assert combination.value == "model_asked=big prompt_hash=a"
    assert not [one for one in sightings_of(answers(2, GOOD)) if one.aspect is Aspect.CONFIGURATION]
