"""A bucket counts when nearly all that was asked has an outcome, or after a bound of time."""

from monitor.detection.settling import Group, recent_begins, unsettled_from
from monitor.hops.inbound import Inbound
from monitor.judging.judgment import JUDGMENT_RECORD, Record
from monitor.judging.shadow import shadowed
from monitor.windows.bucket import CRITICAL, OVERALL, Cell
from tests.drawn import SCOPE
from tests.events import raw
from tests.judgments import HOUR, MINUTE, NOON
from tests.world import CLOSED, World, kept, mark

QUARTER = 15 * MINUTE
OURS = Group("support-bot", "production", None, "billing")
FOREIGN = OURS._replace(assistant="shop")


def judged(count: int, stratum: str = "billing", mark: str = "0") -> dict[Cell, int]:
    return {
        Cell(CRITICAL, OVERALL, stratum, mark, "1"): count,
        Cell("safety", OVERALL, stratum, "5", "1"): count,
    }


def believed(buckets: dict[int, dict[Cell, int]], waiting: dict[int, dict[Group, int]]) -> int:
    """Return how many quarters after noon count, of four."""
    end = unsettled_from(
        {NOON + place * QUARTER: cells for place, cells in buckets.items()},
        {NOON + place * QUARTER: groups for place, groups in waiting.items()},
        scope=SCOPE,
        end=NOON + HOUR,
        share=0.95,
    )
    return (end - NOON) // QUARTER


def test_evidence_ends_before_the_first_bucket_that_lacks_outcomes() -> None:
    """What is behind it would be counted without what came before."""
    full = {place: judged(95) for place in range(4)}

    assert believed(full, {}) == 4
    assert believed(full, {1: {OURS: 5}}) == 4
    assert believed(full, {1: {OURS: 6}}) == 1
    assert believed(full, {3: {OURS: 6}, 2: {OURS: 50}}) == 2


def test_failures_are_outcomes_and_other_assistants_are_none_of_ours() -> None:
    """A judge that fails has answered; a slow judge of the shop's holds back the shop alone."""
    assert believed({0: judged(95, mark="f")}, {0: {OURS: 5}}) == 4
    assert believed({0: judged(95)}, {0: {FOREIGN: 500}}) == 4


def test_each_stratum_must_be_known() -> None:
    """A rare intent that is judged last is not hidden by the frequent one."""
    rare = OURS._replace(stratum="returns")

    assert believed({0: judged(1000)}, {0: {rare: 2}}) == 0


def test_after_a_bound_of_time_a_bucket_counts_whatever_is_missing() -> None:
    """A judge's outage must not blind the detector for a day."""
    assert recent_begins(NOON, bucket_minutes=15, bound_minutes=30) == [NOON - QUARTER, NOON - 2 * QUARTER]
    assert recent_begins(NOON, bucket_minutes=15, bound_minutes=0) == []


async def test_a_conversation_waits_from_its_close_until_it_is_in_its_window() -> None:
    """From the assembler to the windows, through the hops themselves; twice changes nothing."""
    world = World()
    messages = [kept(raw("c1", 0)), mark(CLOSED, 1)]
    for _ in range(2):
        await world.pipeline.assemble(messages)
    waiting = await world.awaited.waiting([NOON])
    assert [sum(groups.values()) for groups in waiting.values()] == [1]

    await world.judge_all()
    for _ in range(2):
        await world.pipeline.aggregate(world.on("judgments"))
    assert await world.awaited.waiting([NOON]) == {}


async def test_a_judge_on_trial_answers_nothing_that_the_live_one_was_asked() -> None:
    """It may be the faster of the two, and the live series would be believed before it is whole."""
    world = World()
    await world.pipeline.assemble([kept(raw("c1", 0)), mark(CLOSED, 1)])
    await world.judge_all()
    trial = [
        replace_value(message, shadowed(JUDGMENT_RECORD.validate_json(message.value)))
        for message in world.on("judgments")
        if not message.is_marker
    ]
    await world.pipeline.aggregate(trial)

    assert len(await world.awaited.waiting([NOON])) == 1


def replace_value(message: Inbound, record: Record) -> Inbound:
    return Inbound(
        position=message.position,
        key=message.key,
        value=record.model_dump_json().encode(),
        headers=message.headers,
    )
