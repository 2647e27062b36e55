"""What a virtual host remembers of the positions of other brokers' queues, to publish each message once.

A set belongs to a user and a source queue, so that no user can claim the positions of another one's source.
It is the value of a commit marker of the message store, written as one group with the messages: after a crash
a message and its position are both there, or neither. To forget a set, or a part of it, can only make
duplicates of what a source delivers again.
"""

from warren.limits_relay import (
    POSITION_SOURCE_AGE_MS_MAX,
    POSITION_SOURCES_MAX,
    POSITION_SOURCES_OF_USER_MAX,
)
from warren.model.message_position import ORIGIN_SIZE
from warren.model.turn import Turn
from warren.store.message_store import MessageStore
from warren.store.position_ranges import PositionRanges, used_at

_PREFIX = b"published-positions "
_USER_AT = len(_PREFIX) + ORIGIN_SIZE


class PublishedPositions:
    """The sets of one virtual host; without a `store` they last as long as its messages, until it stops."""

    __slots__ = ("_by_user", "_count", "_turn", "store")

    def __init__(self, store: MessageStore | None, turn: Turn) -> None:
        self.store = store
        self._turn = turn
        # User -> origin -> set; of each user the one unused for the longest time first. A set that was not
        # used since the start is as it was stored.
        self._by_user: dict[bytes, dict[bytes, PositionRanges | bytes]] = {}
        self._count = 0
        self._load()

    def of(self, user: str, origin: bytes) -> PositionRanges:
        """Return the set of `user` for the source queue `origin`."""
        name = user.encode("utf-8", "surrogateescape")
        sets = self._by_user.setdefault(name, {})
        found = sets.get(origin)
        if isinstance(found, PositionRanges):
            return found
        if found is None:
            self._make_room(name)
            ranges = PositionRanges(self._turn.now())
            self._count += 1
        else:
            ranges = PositionRanges.decode(found)
        sets[origin] = ranges
        return ranges

    def begin(self) -> None:
        """Begin a group of messages; `end` follows in the same turn."""
        if self.store is not None:
            self.store.begin_group()

    def end(self, user: str, origin: bytes) -> None:
        """End the group, whose positions were added to the set of `user` for `origin`."""
        name = user.encode("utf-8", "surrogateescape")
        ranges = self.of(user, origin)
        ranges.used_at = self._turn.now()
        sets = self._by_user[name]
        sets[origin] = sets.pop(origin)
        if self.store is not None:
            self.store.end_group(_key(name, origin), ranges.encode())

    def _load(self) -> None:
        """Take the stored sets over, and forget those that are too old."""
        if self.store is None:
            return
        markers = self.store.markers
        times = {key: used_at(markers[key].value) for key in markers if key.startswith(_PREFIX)}
        oldest = self._turn.now() - POSITION_SOURCE_AGE_MS_MAX
        for key in sorted(times, key=times.__getitem__):
            if times[key] <= oldest:
                self.store.forget(key)
                continue
            sets = self._by_user.setdefault(key[_USER_AT:], {})
            sets[key[len(_PREFIX) : _USER_AT]] = markers[key].value
            self._count += 1

    def _make_room(self, user: bytes) -> None:
        """Forget the oldest set of `user`, or of the user with the most, before one more is made."""
        if len(self._by_user[user]) < POSITION_SOURCES_OF_USER_MAX:
            if self._count < POSITION_SOURCES_MAX:
                return
            user = max(self._by_user, key=lambda name: len(self._by_user[name]))
        sets = self._by_user[user]
        origin = next(iter(sets))
        del sets[origin]
        self._count -= 1
        if self.store is not None and _key(user, origin) in self.store.markers:
            self.store.forget(_key(user, origin))


def _key(user: bytes, origin: bytes) -> bytes:
    return _PREFIX + origin + user
