"""What the server keeps of a bucket in, its counts out."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from monitor.windows.bucket import Cell

Reply = Mapping[bytes, bytes] | Sequence[bytes]
_COUNTS = msgspec.msgpack.Decoder(list[int])


class Names:
    """The names of one scope's day in one shard, by their codes."""

    def __init__(self, reply: Reply) -> None:
        """Read the hash of names; its versions and counters are left out."""
        kinds: dict[str, dict[bytes, str]] = {"t": {}, "g": {}, "r": {}, "m": {}}
        for field, code in pairs(reply):
            name = field.decode()
            if (known := kinds.get(name[:1])) is not None:
                known[code] = name[1:]
        self._strata, self._segments, self._rates = kinds["t"], kinds["g"], kinds["r"]
        self._marks = {int(code): name.partition("|")[::2] for code, name in kinds["m"].items()}
        self._cells: dict[tuple[bytes, int], Cell] = {}

    def counts(self, reply: Reply) -> dict[Cell, int]:
        """Return the counts of one bucket. Without names, which live as long as any bucket, it is gone."""
        if not self._marks:
            return {}
        counts: dict[Cell, int] = {}
        known = self._cells
        for field, packed in pairs(reply):
            flat = iter(_COUNTS.decode(packed))
            for mark, count in zip(flat, flat, strict=True):
                cell = known.get((field, mark)) or known.setdefault((field, mark), self._cell(field, mark))
                counts[cell] = count
        return counts

    def _cell(self, field: bytes, mark: int) -> Cell:
        segment, stratum, rate = field.split(b".")
        dimension, value = self._marks[mark]
        return _one(dimension, self._segments[segment], self._strata[stratum], value, self._rates[rate])


@lru_cache(maxsize=65_536)
def _one(dimension: str, segment: str, stratum: str, mark: str, rate: str) -> Cell:
    # Equal cells of many buckets are one object, which dictionaries find faster.
    return Cell(dimension, segment, stratum, mark, rate)


def pairs(reply: Reply) -> Iterable[tuple[bytes, bytes]]:
    """Return the fields of a hash with their values: RESP3 answers with a map, RESP2 with a list."""
    return reply.items() if isinstance(reply, Mapping) else zip(reply[::2], reply[1::2], strict=True)
