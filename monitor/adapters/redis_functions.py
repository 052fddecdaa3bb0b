"""Server-side functions: Lua files of this folder, loaded once, called by name, loaded again when a server lost them.

Functions instead of scripts: redis-py refuses pipelined EVALSHA on a cluster, and FCALL survives a restart.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

Client = Redis | RedisCluster
Argument = str | bytes | int | float
Call = tuple[Sequence[str], Sequence[Argument]]


class StoreUnavailable(Exception):  # noqa: N818 - it states a condition, in our words
    """Redis cannot be reached or refuses to work; what was asked may be asked again."""


UNAVAILABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.InvalidResponse,
    exceptions.ClusterError,
    # It is no RedisError.
    exceptions.RedisClusterException,
    # These are answers, and yet no fault of the question: a replica, a full memory, a slot on its way.
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.NoPermissionError,
    exceptions.TryAgainError,
)
"""What the client raises when the store is out of luck. Any other answer is a bug of ours, and stays one."""
_REFUSALS = ("MISCONF", "NOREPLICAS", "BUSY ", "UNKILLABLE")
"""How a server begins that cannot write to its disk, has too few replicas, or is held up by a script."""
_NO_FUNCTION = "function not found"
_OF_PIPELINE = "caused error: "


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Say in our words that the store is out of luck; a bug goes through as it is."""
    try:
        yield
    except UNAVAILABLE as error:
        raise StoreUnavailable(f"{what}: {_words(error)}") from error
    except exceptions.ResponseError as error:
        if not _words(error).startswith(_REFUSALS):
            raise
        raise StoreUnavailable(f"{what}: {_words(error)}") from error


def is_lost(error: exceptions.ResponseError) -> bool:
    """Tell whether the server has lost its functions: a new primary, or an emptied one."""
    return _NO_FUNCTION in str(error).lower()


def code_of(*names: str) -> str:
    """Return the text of one library of functions, from one file or several."""
    folder = files("monitor.adapters")
    return "\n".join(folder.joinpath(f"{name}.lua").read_text(encoding="utf-8") for name in names)


class Functions:
    """One library of server-side functions."""

    def __init__(self, client: Client, library: str, *more: str) -> None:
        """Take the Lua file `<library>.lua` of this folder, and what continues it; nothing is sent yet."""
        self._client = client
        self._library = library
        self._code = code_of(library, *more)

    async def load(self) -> None:
        """Load the library onto every primary; loading it twice changes nothing."""
        with guarded(f"{self._library}: cannot load the functions"):
            await self._client.function_load(self._code, replace=True)

    async def call(self, function: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Call one function; all keys must carry one shard tag."""
        try:
            return await self._fcall(function, keys, arguments)
        except exceptions.ResponseError as error:
            if not is_lost(error):
                raise
            # The functions are gone, the effects are not.
            await self.load()
            return await self._fcall(function, keys, arguments)

    async def call_many(self, function: str, calls: Sequence[Call]) -> list[Any]:
        """Call one function several times in one round trip, in order; each call keeps to its own shard."""
        if len(calls) <= 1:
            # A pipeline of one costs more than the call.
            return [await self.call(function, *call) for call in calls]
        try:
            return await self._pipelined(function, calls)
        except exceptions.ResponseError as error:
            if not is_lost(error):
                raise
            await self.load()
            return await self._pipelined(function, calls)

    async def _pipelined(self, function: str, calls: Sequence[Call]) -> list[Any]:
        with guarded(function):
            pipe = self._client.pipeline(transaction=False)
            for keys, arguments in calls:
                pipe.fcall(function, len(keys), *keys, *arguments)
            return list(await pipe.execute())

    async def _fcall(self, function: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        with guarded(function):
            return await self._client.fcall(function, len(keys), *keys, *arguments)


def _words(error: Exception) -> str:
    # A pipeline puts the command before the answer, and with it what users wrote.
    return str(error).rpartition(_OF_PIPELINE)[2]
