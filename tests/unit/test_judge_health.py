"""A judge that is not well says so by an alert of its own, and blinds no gate where its failures hide something."""

from dataclasses import replace

from monitor.adapters.memory_health import MemoryHealth
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.inhibition import Inhibition
from monitor.alerting.labels import routing_labels
from monitor.alerting.render import as_text
from monitor.alerting.routing import DEFAULT_INHIBIT_RULES
from monitor.cli.judge_health import details_of
from monitor.clock import ClockKind
from monitor.detection.finding import FindingKind, Outcome, fingerprint
from monitor.detection.gates import evaluate_gates
from monitor.detection.judge_health import failures_depend, health_finding
from monitor.judging.health import HealthPolicy, JudgeHealth, Share, complaints, health_of
from monitor.judging.judgment import FailureKind, Judgment, Phase, Place, Record
from monitor.judging.rubric import TargetKind
from monitor.pipeline import Pipeline
from monitor.windows.bucket import OVERALL, Scope, contribution
from monitor.windows.window import all_stats, merged
from tests.events import HOUR, MINUTE, NOON
from tests.judgments import a_failure, a_judgment
from tests.world import IDENTITY, World

POLICY = HealthPolicy()
DIMENSION = "actionability"


async def health_after(*records: Record) -> JudgeHealth:
    store = MemoryHealth()
    for record in records:
        await store.add([(NOON, record)])
    ((name, counters),) = (await store.read(NOON, NOON + HOUR)).items()
    return health_of(name, counters)


async def test_too_many_failures_are_a_finding_and_too_few_records_none() -> None:
    """Ten of a hundred are the limit; one of two says nothing."""
    sick = await health_after(
        *(a_judgment(f"c-{n}") for n in range(80)), *(a_failure(f"f-{n}") for n in range(20))
    )
    well = await health_after(
        *(a_judgment(f"c-{n}") for n in range(95)), *(a_failure(f"f-{n}") for n in range(5))
    )
    few = await health_after(a_judgment("c"), a_failure("f"))

    assert [one.check for one in complaints(sick, POLICY)] == ["failed"]
    assert health_finding(sick, POLICY, now=NOON).outcome is Outcome.FAIL
    assert "20 of 100 (20%)" in health_finding(sick, POLICY, now=NOON).reason
    assert health_finding(well, POLICY, now=NOON).outcome is Outcome.PASS
    assert health_finding(few, POLICY, now=NOON).outcome is Outcome.NO_DATA


async def test_what_was_not_paid_for_says_nothing_about_the_judge() -> None:
    """A budget that ends every hour at a quarter to must not look like a judge that ails every hour."""
    told = await health_after(
        *(a_judgment(f"c-{n}") for n in range(60)),
        *(a_failure(f"t-{n}", why=FailureKind.THINNED) for n in range(30)),
        *(a_failure(f"b-{n}", why=FailureKind.BUDGET) for n in range(10)),
    )

    assert (told.total, told.failed, told.unpaid) == (60, {}, {"budget": 10, "thinned": 30})
    assert complaints(told, POLICY) == ()
    assert any("left out by the budget: budget 10, thinned 30" in line for line in details_of(told, POLICY))


async def test_stages_that_disagree_are_a_finding() -> None:
    """One of the two judges is wrong about what passes."""
    phase = Phase(place=Place.SECOND, probability=1.0, first_scores=({"dimension": DIMENSION, "score": 5},))
    told = await health_after(
        *(
            a_judgment(f"c-{n}", scores={DIMENSION: 2 if n % 2 else 5}).model_copy(update={"phase": phase})
            for n in range(100)
        )
    )

    assert told.disagreed == {DIMENSION: Share(part=50, of=100)}
    assert [one.check for one in complaints(told, POLICY)] == [f"disagreed:{DIMENSION}"]


def counts_of(*records: Record) -> dict:
    policy = World().policy.monitor.windows
    found = [contribution(record, policy) for record in records]
    return merged({cell: 1} for one in found if one for cell in one.cells)


def units(prompt_hash: str, *, judged: int, failed: int, score: int = 5) -> list[Record]:
    good = [
        a_judgment(f"{prompt_hash}-{n}", prompt_hash=prompt_hash, scores={DIMENSION: score})
        for n in range(judged)
    ]
    return [*good, *(a_failure(f"{prompt_hash}-f{n}", prompt_hash=prompt_hash) for n in range(failed))]


def test_failures_that_come_with_a_prompt_hide_something_and_even_ones_do_not() -> None:
    """A model that will not judge what the new prompt says is evidence; an outage is none."""
    assert failures_depend(counts_of(*units("a", judged=90, failed=5), *units("b", judged=40, failed=60)))
    assert not failures_depend(
        counts_of(*units("a", judged=70, failed=30), *units("b", judged=68, failed=32))
    )
    assert not failures_depend(counts_of(*units("a", judged=100, failed=0)))
    left_out = [a_failure(f"t{n}", prompt_hash="b", why=FailureKind.THINNED) for n in range(60)]
    assert not failures_depend(
        counts_of(*units("a", judged=70, failed=30), *units("b", judged=70, failed=30), *left_out)
    )


def test_a_gate_is_held_back_only_where_failures_have_nothing_to_do_with_what_is_judged() -> None:
    """Else the worst release would silence its own alert by being unjudgeable."""
    records = [*units("a", judged=90, failed=5), *units("b", judged=60, failed=90, score=1)]
    counts = counts_of(*records)
    first = records[0]
    assert isinstance(first, Judgment)

    def gate(*, hold: bool) -> tuple[Outcome, str]:
        found = evaluate_gates(
            all_stats(counts), World().policy.gates, scope=Scope.of(first), now=NOON, hold=hold
        )
        (one,) = (f for f in found if f.labels["dimension"] == DIMENSION and f.labels["segment"] == OVERALL)
        return one.outcome, one.reason

    assert gate(hold=True)[0] is Outcome.NO_DATA
    outcome, reason = gate(hold=False)
    assert outcome is Outcome.FAIL
    # (90 x 5 + 60 x 1 + 95 that are missing, at 1 or at 5) / 245.
    assert "so the mean lies between 2.47 and 4.02" in reason


async def test_a_sick_judge_raises_one_ticket_of_its_own_and_it_ends_with_its_sickness() -> None:
    """Whoever is on call must not look for a fault of the assistant."""
    world = World(clock=ClockKind.WALL)
    health = MemoryHealth()
    pipeline = Pipeline(replace(world.ports, health=health), world.policy, world.sender)
    for bucket in range(16):
        at = NOON + bucket * 15 * MINUTE
        ill = bucket < 8
        records: list[Record] = [
            a_judgment(f"c-{bucket}-{n}", at=at, judge_version=IDENTITY.version) for n in range(30)
        ]
        records += [
            a_failure(f"f-{bucket}-{n}", at=at, judge_version=IDENTITY.version)
            for n in range(20 if ill else 0)
        ]
        for record in records:
            assert record.target.kind is TargetKind.CONVERSATION
            await health.add([(at, record)])
        await world.windows.apply(records, now=at)
    world.now = NOON + 15 * MINUTE
    while world.now <= NOON + 5 * HOUR:
        await pipeline.evaluate()
        world.now += 15 * MINUTE

    (alert,) = (one for one in await world.alerts.all() if one.kind is FindingKind.JUDGE)
    assert alert.severity == "ticket"
    assert len(alert.firings) == 1
    assert alert.state is AlertState.RESOLVED
    told = [e for e in await world.alerts.outbox(100) if e.alert.kind is FindingKind.JUDGE]
    assert [one.status for one in told] == ["firing", "resolved"]
    assert "monitor judge-health" in as_text(told[0])


def test_one_unlucky_unit_of_a_rare_prompt_is_no_pattern() -> None:
    """Three prompts that served one conversation each, one of which failed, beside two hundred that fail evenly."""
    rare = [record for n in range(2) for record in units(f"rare-{n}", judged=1, failed=0)]
    assert not failures_depend(
        counts_of(*units("a", judged=190, failed=10), *rare, *units("rare-x", judged=0, failed=1))
    )


class Day:
    """Quarters of an hour with judgments and failures, told to the windows and to the judge's counters."""

    def __init__(self) -> None:
        self.world = World(clock=ClockKind.WALL)
        self.health = MemoryHealth()
        self.pipeline = Pipeline(
            replace(self.world.ports, health=self.health), self.world.policy, self.world.sender
        )
        self.world.now = NOON
        self._quarter = 0

    async def quarter(
        self,
        *prompts: tuple[str, int, int],
        score: int = 5,
        stage: str = IDENTITY.stage,
        version: str = IDENTITY.version,
    ) -> None:
        """Let a quarter pass in which prompts were judged and failed so often."""
        if not self._quarter:
            await self.pipeline.evaluate()
        at = NOON + self._quarter * 15 * MINUTE
        self._quarter += 1
        records: list[Record] = []
        for prompt, judged, failed in prompts:
            for record in units(prompt, judged=judged, failed=failed, score=score):
                name = f"{self._quarter}-{record.judgment_id}"
                target = record.target.model_copy(
                    update={"conversation_id": f"{self._quarter}-{record.target.conversation_id}"}
                )
                judge = record.judge.model_copy(update={"stage": stage, "version": version})
                changes = {"judgment_id": name, "target": target, "judge": judge, "observed_at": at}
                records.append(record.model_copy(update=changes))
        await self.health.add([(at, record) for record in records])
        await self.world.windows.apply(records, now=at)
        self.world.now = at + 15 * MINUTE + self.world.policy.monitor.clock.settle_minutes * MINUTE
        await self.pipeline.evaluate()

    async def alert(self) -> Alert:
        (found,) = (one for one in await self.world.alerts.all() if one.kind is FindingKind.JUDGE)
        return found

    async def mutes(self) -> bool:
        """Tell whether a page on quality would be muted now."""
        firing = [routing_labels(one) for one in await self.world.alerts.all([AlertState.FIRING])]
        page = {"finding": "gate", "severity": "page", "assistant": "shop", "segment": OVERALL}
        shipped, default = World().policy.routing.inhibit_rules, DEFAULT_INHIBIT_RULES
        told = {Inhibition(rules, firing).muted_by(page) is not None for rules in (shipped, default)}
        (muted,) = told
        return muted


EVEN = (("a", 20, 10), ("b", 20, 10))
ON_ONE_PROMPT = (("a", 30, 0), ("b", 10, 20))


async def test_only_failures_that_have_nothing_to_do_with_what_is_judged_mute_quality() -> None:
    """A prompt whose answers the judge will not look at may be the bad one: its page must ring."""
    day = Day()
    for _ in range(3):
        await day.quarter(*EVEN)
    assert (await day.alert()).state is AlertState.FIRING
    assert await day.mutes()

    for _ in range(6):
        await day.quarter(*ON_ONE_PROMPT)
    alert = await day.alert()
    assert (alert.state, len(alert.firings), alert.fingerprint) == (
        AlertState.FIRING,
        1,
        fingerprint(FindingKind.JUDGE, alert.labels),
    )
    assert not await day.mutes()


async def test_a_judge_that_is_seen_to_fail_no_more_mutes_nothing_while_its_alert_clears() -> None:
    """Its alert waits for an hour of health; a page on quality does not wait for it, nor for a judge that is gone."""
    day = Day()
    for _ in range(5):
        await day.quarter(*EVEN)
    assert await day.mutes()

    # The counters look back over whole hours.
    for _ in range(8):
        await day.quarter()
    assert (await day.alert()).state is AlertState.FIRING
    assert not await day.mutes()


async def test_a_second_judge_that_fails_mutes_nothing() -> None:
    """Detectors read the first stage, which covers the whole sample, and it is well."""
    day = Day()
    for _ in range(5):
        await day.quarter(*EVEN, stage="second", version="d" * 12)
        assert not await day.mutes()
    assert (await day.alert()).state is AlertState.FIRING


async def test_the_alert_of_a_judge_that_was_replaced_ends() -> None:
    """It was sick, somebody chose another model, and no record of it ever comes again."""
    day = Day()
    for _ in range(4):
        await day.quarter(*EVEN, version="d" * 12)
    for _ in range(20 * 4):
        await day.quarter(("a", 1, 0))
    assert (await day.alert()).state is AlertState.FIRING

    for _ in range(10 * 4):
        await day.quarter(("a", 1, 0))
    alert = await day.alert()
    assert alert.state is AlertState.RESOLVED
    assert "others were asked for a day" in alert.finding.reason


async def test_silence_of_all_judges_ends_nothing() -> None:
    """An outage of the endpoint must not look like a recovery of the judge."""
    day = Day()
    for _ in range(4):
        await day.quarter(*EVEN)
    for _ in range(30 * 4):
        await day.quarter()

    assert (await day.alert()).state is AlertState.FIRING
