"""Every key in Redis is built here, so that no two adapters ever mean different things by one key."""

from dataclasses import dataclass

import xxhash


@dataclass(frozen=True)
class Keys:
    """Keys of one namespace. All keys of one conversation carry one shard tag; alerts live in one slot."""

    prefix: str
    shards: int = 1

    def shard_of(self, conversation_id: str) -> int:
        """Return the shard of a conversation: 0 up to `shards` - 1."""
        return xxhash.xxh3_64_intdigest(conversation_id.encode()) % self.shards if self.shards > 1 else 0

    def sharded(self, shard: int, *parts: object) -> str:
        """Return a key that lives with the conversations of this shard."""
        return ":".join((self.prefix, f"{{{shard}}}", *map(str, parts)))

    def conversation(self, conversation_id: str, *parts: object) -> str:
        """Return a key of one conversation."""
        return self.sharded(self.shard_of(conversation_id), "c", conversation_id, *parts)

    def source(self, cluster: str, topic_id: str, partition: int, *parts: object) -> str:
        """Return a key of one source partition; the topic's id outlives a topic made anew under its name."""
        return ":".join((self.prefix, f"{{{cluster}/{topic_id}/{partition}}}", *map(str, parts)))

    def alerts(self, *parts: object) -> str:
        """Return a key of the alerts, all of them in one slot, so that a transition and its outbox are one step."""
        return ":".join((self.prefix, "{alerts}", *map(str, parts)))

    def changes(self, *parts: object) -> str:
        """Return a key of the change log, all of it in one slot."""
        return ":".join((self.prefix, "{changes}", *map(str, parts)))

    def review(self, *parts: object) -> str:
        """Return a key of the review items, all of them in one slot."""
        return ":".join((self.prefix, "{review}", *map(str, parts)))

    def budget(self, *parts: object) -> str:
        """Return a key of the budgets, all of them in one slot, so that a judgment's claims are one step."""
        return ":".join((self.prefix, "{budget}", *map(str, parts)))

    def plain(self, *parts: object) -> str:
        """Return a key that stands alone."""
        return ":".join((self.prefix, *map(str, parts)))
