"""`kill -9` on a real Apache Kafka: of the worker that aggregates, in mid-stream.

The scenario runs once, and several tests look at what it left behind. Longer ones are in tests/faults/.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.judging.judgment import Judgment
from monitor.topics import JUDGMENTS
from monitor.windows.bucket import BucketCounts, Scope
from tests.judgments import a_judgment
from tests.servers.apache_kafka import ApacheKafka
from tests.servers.deployment import (
    now,
    wait_until,
)
from tests.servers.house import House, a_house

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


CONVERSATIONS = 3000
KILL_AT = ((0.15, False), (0.5, True))
"""Shares of the units after which the worker is killed; the second time with batches in hand that wait for Redis."""


@dataclass
class Aggregated:
    """What the windows hold, and what they should."""

    units_at_kills: list[int]
    units: int
    wanted_units: int
    buckets: dict[Scope, Mapping[datetime, BucketCounts]]
    wanted: dict[Scope, Mapping[datetime, BucketCounts]]


def _judgments() -> list[Judgment]:
    """Return judgments of which some come twice, and some are superseded in another bucket."""
    noon = now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=12)
    found: list[Judgment] = []
    for number in range(CONVERSATIONS):
        one = a_judgment(
            f"w{number:05d}",
            at=noon + timedelta(minutes=number % 300),
            scores={"safety": 1 + number % 5, "actionability": None if number % 7 == 0 else 4},
            intent=("returns", "billing", "shipping")[number % 3],
            rate=(1.0, 0.25)[number % 2],
        )
        found.append(one)
        if number % 9 == 4:
            found.append(found[-5])
        if number % 6 == 5:
            found.append(
                a_judgment(
                    f"w{number - 3:05d}", at=noon + timedelta(hours=6), revision=2, scores={"safety": 2}
                )
            )
    return found


@pytest.fixture(scope="module")
def aggregated(apache_kafka: ApacheKafka, folder: Path) -> Iterator[Aggregated]:
    with a_house(apache_kafka, folder, "windows", clock={"kind": "wall"}) as house:
        yield _killed_while_aggregating(house)


def _killed_while_aggregating(house: House) -> Aggregated:
    judgments = _judgments()
    house.produce(
        JUDGMENTS, ((one.target.conversation_id, one.model_dump_json().encode()) for one in judgments)
    )
    wanted = MemoryWindowStore(house.policy.monitor.windows)
    house.running.work("aggregate", "aggregate")
    answer = house.views._runner.run(_expected(wanted, judgments))
    wanted_units, wanted_buckets = answer
    seen = []
    for share, held_up in KILL_AT:
        wait_until(
            lambda share=share: house.views.units() > share * wanted_units, watched=house.running, every=0.02
        )
        with house.writes_held_up() if held_up else nullcontext():
            # What is committed of the batches in hand is committed now.
            if held_up:
                house.wait_for_commits()
            house.running.kill("aggregate")
        seen.append(house.views.units())
        house.running.start("aggregate")
    house.wait_until_read("aggregate", JUDGMENTS)
    start, end = min(one.observed_at for one in judgments), now()
    buckets = {
        scope: house.views._ask(
            lambda stores, scope=scope: stores.windows.buckets(scope, start - timedelta(hours=1), end)
        )
        for scope in house.views._ask(lambda stores: stores.windows.scopes())
    }
    return Aggregated(seen, house.views.units(), wanted_units, buckets, wanted_buckets)


async def _expected(
    twin: MemoryWindowStore, judgments: Sequence[Judgment]
) -> tuple[int, dict[Scope, Mapping[datetime, BucketCounts]]]:
    """Enter each judgment once into the twin, which no kill can reach."""
    at = now()
    await twin.apply(judgments, now=at)
    begin = min(one.observed_at for one in judgments) - timedelta(hours=1)
    return await twin.units(), {scope: await twin.buckets(scope, begin, at) for scope in await twin.scopes()}


def test_the_aggregate_worker_died_in_mid_stream(aggregated: Aggregated) -> None:
    """A test of kills that came too late proves nothing."""
    first, second = aggregated.units_at_kills

    assert 0 < first < second < aggregated.wanted_units


def test_buckets_are_exact_cell_by_cell(aggregated: Aggregated) -> None:
    """Judgments that came again after a kill change no count, nor do those that a later revision took out."""
    assert aggregated.units == aggregated.wanted_units
    assert aggregated.buckets == aggregated.wanted
