"""The times to live of messages that arrived before the time to live of their queue was changed.

The expiry of a message is fixed when it enters a queue (RabbitMQ 3.10.8, measured): a new, changed or removed
policy concerns later messages only. Most queues see no change, and a queue forgets its changes when it has no
ready or unacknowledged messages.
"""

from collections.abc import Iterable, Iterator

from warren.limits import TTL_CHANGES_MAX
from warren.store.message_store import MessageStore

# On disk, for each change: level u8, end of its positions u64, time to live i64 (ms; -1: none).
_SIZE = 17
_PREFIX = b"message-ttl "
_NEVER = -1

# (priority level, end of the positions, time to live in ms)
LevelChange = tuple[int, int, int]


class TtlChanges:
    """The changes for one range of positions: positions below an end have the time to live in force until
    then.
    """

    __slots__ = ("_changes",)

    def __init__(self, changes: Iterable[tuple[int, int]] = ()) -> None:
        # (end, time to live), in order.
        self._changes = list(changes)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._changes)

    def add(self, end: int, ttl_ms: int) -> None:
        """Record `ttl_ms` for all positions below `end` that have no record yet."""
        changes = self._changes
        if changes and changes[-1][0] >= end:
            return
        changes.append((end, ttl_ms))
        if len(changes) > TTL_CHANGES_MAX:
            # No message may expire early: of two changes the longer time applies.
            (_, one), (end, other) = changes[:2]
            changes[:2] = [(end, _NEVER if _NEVER in (one, other) else max(one, other))]

    def at(self, position: int, ttl_ms: int) -> int:
        """The time to live (ms) of the message at `position`, if the current one is `ttl_ms`."""
        for end, older_ms in self._changes:
            if position < end:
                return older_ms
        return ttl_ms


class TtlRecord:
    """Stores the changes of one queue, so that they are known after a restart."""

    __slots__ = ("_key", "_store")

    def __init__(self, store: MessageStore, number: int) -> None:
        self._store = store
        self._key = _PREFIX + number.to_bytes(4, "big")

    def read(self) -> list[LevelChange]:
        """The changes that were written last."""
        marker = self._store.markers.get(self._key)
        value = b"" if marker is None else marker.value
        return [_decoded(value[at : at + _SIZE]) for at in range(0, len(value) - _SIZE + 1, _SIZE)]

    def write(self, changes: list[LevelChange]) -> None:
        """Store `changes`, replacing the earlier ones."""
        marker = self._store.markers.get(self._key)
        value = b"".join(map(_encoded, changes))
        if (b"" if marker is None else marker.value) != value:
            # An empty value is written, since a merely forgotten one could reappear after a restart.
            self._store.begin_group()
            self._store.end_group(self._key, value)

    def forget(self) -> None:
        """Forget the changes, since the queue was deleted."""
        if self._key in self._store.markers:
            self._store.forget(self._key)


def _encoded(change: LevelChange) -> bytes:
    level, end, ttl_ms = change
    return level.to_bytes(1, "big") + end.to_bytes(8, "big") + ttl_ms.to_bytes(8, "big", signed=True)


def _decoded(data: bytes) -> LevelChange:
    ttl_ms = int.from_bytes(data[9:], "big", signed=True)
    return data[0], int.from_bytes(data[1:9], "big"), ttl_ms
