"""The hops behind the assembler, on the twins: judge, aggregate, notify."""

import pytest

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.alerting.alert import Transition
from monitor.hops.inbound import Inbound
from monitor.intake.dead_letter import DeadLetter, Position
from monitor.judging.judgment import FailureKind, JudgeFailure, Judgment
from monitor.judging.rubric import TargetKind
from monitor.publishing import PublishError
from tests.alerts import a_finding, step
from tests.events import HOUR, NOON, raw
from tests.judgments import MINUTE
from tests.world import CLOSED, LATER, FakeJudge, World, kept, mark


class TestJudge:
    async def test_a_judgment_goes_to_the_judgments_and_into_the_archive(self) -> None:
        """With its conversation's key, on its conversation's partition."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0), partition=1)])
        await world.judge_all()

        [judged], archived = world.on("judgments"), world.on("archive")
        assert (judged.key, judged.position.partition) == (b"c1", 1)
        assert [one.value for one in archived] == [judged.value]
        assert archived[0].key == f"c1/j/{world.records()[0].judgment_id}".encode()

    async def test_a_failure_is_buried_and_published_as_a_record(self) -> None:
        """It is counted where judgments are counted, and can be tried again by hand."""
        world = World(judge=FakeJudge(fails=lambda _: True))
        await world.run([kept(raw("c1", 0))])

        [record] = world.records()
        assert isinstance(record, JudgeFailure)
        letter = DeadLetter.model_validate_json(world.on("dead-letters")[0].value)
        assert (letter.stage, letter.fault) == ("judge", "failed")
        assert letter.value == world.on("judge-requests")[0].value
        assert await world.conversations.funnel() == {"judgment:turn|failed": 1, "turn|failed": 1}

    async def test_what_a_budget_thinned_out_is_no_dead_letter(self) -> None:
        """Judged later by hand it would count beside those that were kept to stand for it."""
        world = World(judge=FakeJudge(fails=lambda _: True, why=FailureKind.THINNED))
        await world.run([kept(raw("c1", 0))])

        [record] = world.records()
        assert record.outcome == "thinned"
        assert world.on("dead-letters") == []
        assert await world.conversations.funnel() == {"judgment:turn|thinned": 1, "turn|thinned": 1}

    async def test_a_request_twice_is_paid_once_and_says_the_same(self) -> None:
        """Redelivery is the rule, and judges cost money."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0))])
        await world.judge_all()
        await world.judge_all()

        first, second = world.records()
        assert first == second
        assert len(world.judge.requests) == 1

    async def test_what_is_no_request_is_buried_without_its_words(self) -> None:
        """The reason is listed; what users wrote is not."""
        world = World()
        position = Position(topic="judge-requests", partition=0, offset=0)
        await world.pipeline.judge(Inbound(position, b"c1", b'{"target": "Quedlinburg"}'))

        letter = DeadLetter.model_validate_json(world.on("dead-letters")[0].value)
        assert "target" in letter.reason
        assert "Quedlinburg" not in letter.reason
        assert world.on("judgments") == []


class TestAggregate:
    async def test_a_marker_counts_only_after_the_records_before_it(self) -> None:
        """The evaluator would read a window that is not full."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0)), mark(CLOSED, 1)])
        await world.judge_all()
        seen: list[int] = []
        advance = world.clock.advance

        async def spied(*args: object, **kwargs: object) -> object:
            seen.append(await world.windows.units())
            return await advance(*args, **kwargs)  # type: ignore[arg-type]

        world.clock.advance = spied  # type: ignore[method-assign,assignment]
        await world.pipeline.aggregate(world.on("judgments"))

        assert seen == [2]
        assert await world.clock.read("aggregate") == {0: CLOSED}

    async def test_a_batch_twice_counts_once(self) -> None:
        """In the windows, in the outcomes, in the review and among the alerts."""
        world = World()
        await world.run([kept(raw(f"c{n}", 0), n) for n in range(9)] + [mark(CLOSED, 9)])
        before = (
            await world.windows.units(),
            await world.conversations.funnel(),
            await world.review.waiting(99),
            {alert.fingerprint: alert.total for alert in await world.alerts.all()},
        )

        await world.pipeline.aggregate(world.on("judgments"))

        assert before[0] == 18
        assert before[2]
        assert before[3]
        assert before == (
            await world.windows.units(),
            await world.conversations.funnel(),
            await world.review.waiting(99),
            {alert.fingerprint: alert.total for alert in await world.alerts.all()},
        )

    async def test_a_resumed_conversation_counts_once(self) -> None:
        """The later revision takes the place of the earlier."""
        world = World()
        await world.run([kept(raw("c1", 0)), mark(CLOSED, 1)])
        await world.run([kept(raw("c1", 1, at=NOON + 2 * HOUR), 2), mark(LATER, 3)])

        conversations = [one for one in world.records() if one.target.kind is TargetKind.CONVERSATION]
        assert [one.target.revision for one in conversations] == [1, 2]
        assert await world.windows.units() == 2

    async def test_what_is_no_record_is_buried_and_the_rest_is_entered(self) -> None:
        """One bad record must not hold up the windows."""
        world = World()
        await world.pipeline.assemble([kept(raw("c1", 0))])
        await world.judge_all()
        bad = Inbound(Position(topic="judgments", partition=0, offset=7), b"", b'{"outcome": "Quedlinburg"}')

        await world.pipeline.aggregate([bad, *world.on("judgments")])

        letter = DeadLetter.model_validate_json(world.on("dead-letters")[0].value)
        assert (letter.stage, letter.fault) == ("aggregate", "invalid")
        assert isinstance(world.records()[0], Judgment)
        assert (await world.conversations.funnel())["turn|judged"] == 1


class TestNotify:
    async def fired(self, alerts: MemoryAlertStore) -> Transition:
        transition = step(None, a_finding())
        assert await alerts.commit(transition)
        return transition

    async def test_the_topic_has_it_before_any_receiver(self) -> None:
        """What people were told must be on record."""
        world = World()
        await self.fired(world.alerts)
        world.published.refuses = True
        for _ in range(3):
            with pytest.raises(PublishError):
                await world.pipeline.notify()
            world.now += MINUTE
        assert world.console.told == []

        world.published.refuses = False
        await world.pipeline.notify()
        world.now += MINUTE
        await world.pipeline.notify()
        assert len(world.on("alerts")) == len(world.console.told) == 1
        await world.pipeline.notify()
        assert len(world.on("alerts")) == len(world.console.told) == 1
