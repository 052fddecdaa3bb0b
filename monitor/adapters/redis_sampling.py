"""What the sampler remembers, in Redis; blocking, since the sampler's loop is."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import ResponseError

from monitor.adapters.redis_functions import code_of, guarded, is_lost
from monitor.adapters.redis_keys import Keys
from monitor.sampling.decision import Kept
from monitor.sampling.sampler import PartitionTally
from monitor.sampling.store import Remembered, Sighting, Source

_encode = msgspec.json.Encoder().encode
_decode_names = msgspec.json.Decoder(tuple[str, str, str]).decode
_decode_kept = msgspec.json.Decoder(Kept).decode
SEPARATOR = "\x1f"


class RedisSampling:
    """The port `SamplingStore`."""

    def __init__(
        self, client: "Redis | RedisCluster", keys: Keys, *, remember_hours: int, census_days: int
    ) -> None:
        """Take a blocking client; `start()` loads the functions."""
        self._client: Any = client
        self._keys = keys
        self._remember_hours = remember_hours
        self._census_seconds = census_days * 86_400

    def start(self) -> None:
        """Load the server-side functions."""
        self._guarded("function_load", code_of("cm_sampling"), replace=True)

    def remembered(self, source: Source, *, now: datetime) -> Remembered:
        """Return what is known of a partition: the kept conversations of the last hours, and what is counted."""
        # By this the readers of the census find a partition's keys.
        self._guarded("sadd", self._keys.plain("sources"), _encode(self._place(source)))
        this_hour = int(now.timestamp()) // 3600
        kept: dict[str, Kept] = {}
        for hour in range(this_hour - self._remember_hours, this_hour + 1):
            # Later hours overwrite earlier ones: a raised rate is the newer record.
            for conversation, record in self._guarded("hgetall", self._kept_key(source, hour)).items():
                kept[conversation.decode()] = _decode_kept(record)
        counted = self._guarded("hget", self._counts_key(source), "next_offset")
        return Remembered(kept, int(counted) if counted is not None else None)

    def record(self, source: Source, tally: PartitionTally, *, now: datetime) -> bool:
        """Store a batch's counts with its next offset in one step."""
        keys = [self._counts_key(source), self._kept_key(source, int(now.timestamp()) // 3600)]
        arguments: list[Any] = [
            tally.first_offset,
            tally.next_offset,
            (self._remember_hours + 1) * 3600,
            self._census_seconds,
            len(tally.dropped),
            len(tally.remember),
        ]
        for name, count in tally.dropped.items():
            arguments += [name, count]
        for conversation, kept in tally.remember.items():
            arguments += [conversation, _encode(kept)]
        for bucket, cells in tally.census.items():
            keys.append(self._keys.source(*self._place(source), "census", bucket))
            for (stratum, signal), count in cells.items():
                arguments += [len(keys), f"{stratum}{SEPARATOR}{signal}", count]
        return bool(self._called("cm_sampling_record", keys, arguments))

    def share(self, sightings: Mapping[tuple[str, str, str], datetime]) -> list[Sighting]:
        """Store first sightings of prompts; return all that are known."""
        arguments: list[Any] = []
        for names, seen in sightings.items():
            arguments += [_encode(names), seen.timestamp()]
        flat = self._called("cm_sampling_share", [self._keys.plain("prompts")], arguments)
        found = []
        for field, at in zip(flat[::2], flat[1::2], strict=True):
            found.append(Sighting(*_decode_names(field), datetime.fromtimestamp(float(at), UTC)))
        return sorted(found)

    def funnel(self) -> dict[str, int]:
        """Return counts by outcome over all source partitions."""
        total: dict[str, int] = {}
        for key in self._scan("counts"):
            for name, count in self._guarded("hgetall", key).items():
                if name != b"next_offset":
                    total[name.decode()] = total.get(name.decode(), 0) + int(count)
        return dict(sorted(total.items()))

    def census(self) -> dict[tuple[int, str, str], int]:
        """Return the census by (bucket start, stratum, signal)."""
        total: dict[tuple[int, str, str], int] = {}
        for key in self._scan("census:*"):
            bucket = int(key.rsplit(":", 1)[1])
            for field, count in self._guarded("hgetall", key).items():
                stratum, _, signal = field.decode().rpartition(SEPARATOR)
                cell = (bucket, stratum, signal)
                total[cell] = total.get(cell, 0) + int(count)
        return total

    @staticmethod
    def _place(source: Source) -> tuple[str, str, int]:
        return source.cluster, f"{source.topic}.{source.topic_id}", source.partition

    def _counts_key(self, source: Source) -> str:
        return self._keys.source(*self._place(source), "counts")

    def _kept_key(self, source: Source, hour: int) -> str:
        return self._keys.source(*self._place(source), "kept", hour)

    def _scan(self, what: str) -> Iterator[str]:
        pattern = f"{self._keys.prefix}:{{*}}:{what}"
        with guarded("sampling"):
            for key in self._client.scan_iter(match=pattern, count=1000):
                yield key.decode()

    def _called(self, function: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        try:
            return self._guarded("fcall", function, len(keys), *keys, *arguments)
        except ResponseError as error:
            if not is_lost(error):
                raise
            self.start()
            return self._guarded("fcall", function, len(keys), *keys, *arguments)

    def _guarded(self, command: str, *arguments: Any, **options: Any) -> Any:
        with guarded("sampling"):
            return getattr(self._client, command)(*arguments, **options)
