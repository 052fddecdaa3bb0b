"""The census in, the detectors of shares over all traffic out; they are exact, and wait for no judge."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from monitor.detection.baseline import Baseline
from monitor.detection.census import CENSUS, Whose, census_series
from monitor.detection.policy import DetectionPolicy
from monitor.detection.sequential import SequentialDetector
from monitor.intake.moments import floor
from monitor.sampling.census import CensusStore
from monitor.sampling.sampler import BUCKET_SECONDS
from monitor.windows.bucket import BucketCounts, Scope

_CHANGING = timedelta(days=1)
"""What is read each time; an event later than that is counted from the next midnight (UTC) on."""
_MINUTES = BUCKET_SECONDS // 60


class SignalReader:
    """The census of all assistants, read once a boundary, with a detector for each scope."""

    def __init__(self, policy: DetectionPolicy, census: CensusStore | None, strata: Sequence[str]) -> None:
        """Take the census, None where there is none, and the attributes that it counts by."""
        self._policy = policy.of_signals
        self._census = census
        self._strata = strata
        self._detectors: dict[str, SequentialDetector] = {}
        self._said: dict[Whose, dict[datetime, BucketCounts]] = {}
        self._raw: dict[datetime, Mapping[tuple[str, str], int]] = {}
        self._counted_to: datetime | None = None

    async def read(
        self, scope: Scope, baseline: Baseline, now: datetime
    ) -> tuple[SequentialDetector, datetime]:
        """Return the detector with all that is counted up to the last whole bucket, and that bucket's end."""
        detector = self._detectors.get(scope.id)
        if detector is None:
            detector = SequentialDetector(self._policy, _MINUTES, counts_signals=True)
            self._detectors[scope.id] = detector
        end = floor(now, minutes=_MINUTES)
        if self._census is not None and not set(CENSUS).isdisjoint(baseline.shares):
            await self._count(self._census, end)
            start = max(end - self._policy.window, min(baseline.end, end))
            mine = self._said.get((scope.assistant, scope.environment), {})
            detector.update({at: cells for at, cells in mine.items() if start <= at < end}, start=start)
        return detector, end

    async def _count(self, census: CensusStore, end: datetime) -> None:
        """Read the census up to a time: in whole once a day, else its last day, as late events seldom are later."""
        if end == self._counted_to:
            return
        start = end - self._policy.window
        before = self._counted_to
        known = before is not None and start < before <= end and before.date() == end.date()
        begin = max(start, end - _CHANGING) if known else start
        counted = await census.counts(begin, end)
        # A count only grows, so that nothing has to be taken out; most buckets are as they were.
        changed = {at: cells for at, cells in counted.items() if self._raw.get(at) != cells}
        self._raw = {at: cells for at, cells in (self._raw | changed).items() if at >= start}
        fresh = census_series(changed, self._strata)
        kept = {
            whose: {at: cells for at, cells in buckets.items() if at >= start}
            for whose, buckets in self._said.items()
        }
        self._said = {whose: kept.get(whose, {}) | fresh.get(whose, {}) for whose in {*kept, *fresh}}
        self._counted_to = end
