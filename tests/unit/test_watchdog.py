"""The dead man's switch: it speaks while everything lives, and falls silent with any process."""

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from agents.heartbeat import Pulse, Ticks, living_name
from agents.watchdog import once
from monitor.adapters.memory_alerts import MemoryReceiver
from monitor.adapters.memory_heartbeats import MemoryHeartbeats
from monitor.alerting.receiver import Undelivered
from monitor.alerting.routing import RoutingPolicy
from monitor.alerting.watchdog import STAGES, Beat, WatchdogPolicy, watch
from monitor.metrics import NoMetrics
from tests.judgments import MINUTE, NOON

SECOND = timedelta(seconds=1)
POLICY = WatchdogPolicy(receiver="switch")
PROCESSES = {"sampler": ["sample"], "judging": ["assemble", "judge"], "windows": list(STAGES[3:])}


class House:
    """Processes that beat every five seconds, and a watchdog that looks every minute."""

    def __init__(self) -> None:
        self.now = NOON
        self.heartbeats = MemoryHeartbeats()
        self.switch = MemoryReceiver("switch")
        self.living = {
            name: (Pulse(self.heartbeats, name, self.moment), stages) for name, stages in PROCESSES.items()
        }

    def moment(self) -> datetime:
        return self.now

    async def run(self, span: timedelta) -> int:
        """Return how often the switch heard it."""
        before, end = len(self.switch.told), self.now + span
        while self.now < end:
            for pulse, stages in self.living.values():
                await pulse.beat(stages)
            # The watchdog lives in the process that notifies.
            if "windows" in self.living and (self.now - NOON) % MINUTE == timedelta(0):
                await once(
                    POLICY, {"switch": self.switch}, self.heartbeats, metrics=NoMetrics(), now=self.moment
                )
            self.now += 5 * SECOND
        return len(self.switch.told) - before


async def test_while_everything_lives_it_always_fires() -> None:
    """One group, an id of its own each time, so that no receiver takes it for a repetition."""
    house = House()

    assert await house.run(10 * MINUTE) == 10
    assert len({one.id for one in house.switch.told}) == 10
    assert {one.group_id for one in house.switch.told} == {"watchdog"}


@pytest.mark.parametrize("victim", PROCESSES)
async def test_killing_any_process_makes_it_stop(victim: str) -> None:
    """A monitor that is half dead looks like a day without incidents."""
    house = House()
    await house.run(5 * MINUTE)
    del house.living[victim]

    assert await house.run(2 * MINUTE) <= 1
    assert await house.run(60 * MINUTE) == 0


async def test_killing_all_makes_it_stop() -> None:
    """Nobody is left to tell; that is what the switch is for."""
    house = House()
    await house.run(5 * MINUTE)
    house.living.clear()

    assert await house.run(60 * MINUTE) == 0


async def test_who_comes_back_under_its_name_makes_it_speak_again() -> None:
    """An orchestrator's restart heals it at once."""
    house = House()
    await house.run(5 * MINUTE)
    dead = house.living.pop("judging")
    await house.run(5 * MINUTE)
    house.living["judging"] = dead

    assert await house.run(5 * MINUTE) == 5


async def test_who_ends_in_order_is_not_missed_while_another_does_its_work() -> None:
    """Scaling down wakes nobody; taking the last one away does."""
    house = House()
    house.living["second"] = (Pulse(house.heartbeats, "second", house.moment), ["judge"])
    await house.run(5 * MINUTE)
    pulse, _ = house.living.pop("second")
    await pulse.end()
    assert await house.run(5 * MINUTE) == 5

    pulse, _ = house.living.pop("judging")
    await pulse.end()
    assert await house.run(5 * MINUTE) == 0


def test_a_dead_one_is_forgotten_when_another_runs_its_stage() -> None:
    """A container that came back under a new name must not silence it for ever."""
    beats = [Beat(stage=stage, instance="new", at=NOON) for stage in STAGES]
    old = Beat(stage="judge", instance="old", at=NOON - 10 * MINUTE)

    assert not watch([*beats, old], POLICY, now=NOON).alive
    assert watch([*beats, old], POLICY, now=NOON).reason == "judge on old has given no sign of life for 600 s"
    gone = old.model_copy(update={"at": NOON - 16 * MINUTE})
    assert watch([*beats, gone], POLICY, now=NOON).alive


def test_a_clock_ahead_keeps_nobody_alive() -> None:
    """Its last sign would count as fresh for as long as the clock is ahead."""
    beats = [Beat(stage=stage, instance="x", at=NOON + 2 * MINUTE) for stage in STAGES]

    assert not watch(beats, POLICY, now=NOON).alive


async def test_a_switch_that_does_not_answer_was_not_told() -> None:
    """It goes past the outbox: a sign of life that is late is none."""
    house = House()
    house.switch.answer = Undelivered(receiver="switch", reason="HTTP 503", retry=True)
    for pulse, stages in house.living.values():
        await pulse.beat(stages)

    assert not await once(
        POLICY, {"switch": house.switch}, house.heartbeats, metrics=NoMetrics(), now=house.moment
    )


def test_a_stage_without_progress_gives_no_sign() -> None:
    """A process that runs and does nothing is as dead as one that does not run."""
    clock = [0.0]
    ticks = Ticks(lambda: clock[0])

    assert living_name("judge", in_hand_seconds=60, ticks=None, leads=False) == "judge"
    assert living_name("judge", in_hand_seconds=200, ticks=None, leads=False) is None
    assert living_name("notify", in_hand_seconds=0, ticks=ticks, leads=True) is None
    ticks.succeeded()
    assert living_name("notify", in_hand_seconds=0, ticks=ticks, leads=True) == "notify"
    clock[0] = 100
    assert living_name("notify", in_hand_seconds=0, ticks=ticks, leads=True) is None
    assert living_name("notify", in_hand_seconds=0, ticks=ticks, leads=False) == "notify-standby"


async def test_a_standby_that_takes_over_is_no_longer_a_standby() -> None:
    """What it was would fall silent, and hold the watchdog back."""
    house = House()
    pulse = Pulse(house.heartbeats, "a", house.moment)
    await pulse.beat(["notify-standby"])
    await pulse.beat(["notify"])
    assert [one.stage for one in await house.heartbeats.beats()] == ["notify"]
    await pulse.beat(["notify-standby"])
    assert [one.stage for one in await house.heartbeats.beats()] == ["notify-standby"]


PAGER = {"type": "pagerduty", "routing_key_env": "K"}


@pytest.mark.parametrize(
    "changes",
    [
        {"watchdog": {"receiver": "nobody-we-know"}},
        {"receivers": {"pager": PAGER}, "routes": {"page": ["pager"]}},
    ],
)
def test_who_watches_must_be_somebody_else(changes: dict[str, object]) -> None:
    """A switch that is not there, or a failing pager told to itself, is found at the start."""
    routing = {"receivers": {"console": {"type": "console"}}, "routes": {"page": ["console"]}}
    with pytest.raises(ValidationError):
        RoutingPolicy.model_validate(routing | changes)
