"""The messages of one Raft group that are in the store and in no entry of its log yet.

    place ─▶ run of one level ─▶ runs before ─▶ take: the first of them are in an entry

Most of the time there is one run: the messages that were placed since the last entry, all of one level.
"""

from collections.abc import Sequence

from warren.model.message import StoredMessage
from warren.store.cursor import QueueCursor
from warren.store.group_record import PositionRun
from warren.store.group_state import GroupState
from warren.store.message_store import MessageStore

# No run that the next message could continue.
_NO_LEVEL = -1


class PlacedMessages:
    """Messages with the positions that follow the last entry, in order."""

    __slots__ = (
        "_cursor", "_ends", "_level", "_levels", "_next", "_offset", "_run_count", "_state", "_store",
        "last_stored", "messages",
    )  # fmt: skip

    def __init__(self, store: MessageStore, state: GroupState) -> None:
        self._store = store
        self._state = state
        self.messages: list[StoredMessage] = []
        # The level of each, and by level the position behind them. The last run is in neither until it ends.
        self._levels = bytearray()
        self._ends: dict[int, int] = {}
        # The last run: its level, the position in the group of the next message, what is to be added for its
        # position in the store, and the number of messages.
        self._level = _NO_LEVEL
        self._next = 0
        self._offset = 0
        self._run_count = 0
        # The cursor of the message that was placed last, and the position of that message in the store.
        self._cursor: QueueCursor | None = None
        self.last_stored = 0

    def place(self, message: StoredMessage, level: int) -> int:
        """Store `message` at the next position of `level` in the group, which is returned."""
        if level != self._level:
            self._begin_run(level)
        cursor: QueueCursor = self._cursor  # type: ignore[assignment]
        position = self._next
        self._next = position + 1
        self._run_count += 1
        self.last_stored = position + self._offset
        self._store.append(message, cursor, self.last_stored)
        self.messages.append(message)
        return position

    def append_received(
        self, runs: tuple[PositionRun, ...], messages: Sequence[StoredMessage | None]
    ) -> list[StoredMessage | int]:
        """Store the messages of an entry of another replica, at the positions of its `runs`, and return them.

        None is one that was settled before it was sent: 0 is returned for it. Only while nothing is placed.
        """
        store = self._store
        kept: list[StoredMessage | int] = []
        for run in runs:
            cursor = store.cursor(self._state.number, run.level)
            # The messages of a run are next to each other in the store as well.
            position = self._state.stored(run.level, run.first)
            for _ in range(run.count):
                message = messages[len(kept)]
                if message is None:
                    store.finish(cursor, position, position + 1)
                    kept.append(0)
                else:
                    store.append(message, cursor, position)
                    kept.append(message)
                position += 1
        return kept

    def begin_with(self, runs: tuple[PositionRun, ...]) -> bool:
        """True if the first messages have the levels of `runs`."""
        levels, place = self._levels, 0
        if len(runs) == 1 and not levels:
            run = runs[0]
            return run.level == self._level and run.count <= self._run_count
        self._end_run()
        for run in runs:
            if not levels.startswith(bytes((run.level,)) * run.count, place):
                return False
            place += run.count
        return True

    def take(self, count: int) -> list[StoredMessage | int]:
        """The first `count` messages, which are in an entry now; the list may be changed."""
        if not count:
            return []
        taken: list[StoredMessage | int] = self.messages  # type: ignore[assignment]
        if count == len(taken):
            self.clear()
            return taken
        self.messages = self.messages[count:]
        self._end_run()
        del self._levels[:count]
        return taken[:count]

    def places(self) -> list[tuple[int, int, StoredMessage]]:
        """The level and the position in the store of each message."""
        self._end_run()
        state = self._state
        following = {level: state.ends.get(level, 0) for level in self._ends}
        found = []
        for level, message in zip(self._levels, self.messages, strict=True):
            found.append((level, state.stored(level, following[level]), message))
            following[level] += 1
        return found

    def clear(self) -> None:
        """Forget all messages."""
        self.messages = []
        self._level = _NO_LEVEL
        self._run_count = 0
        if self._ends:
            self._levels.clear()
            self._ends.clear()

    # --- private ----------------------------------------------------------------------------------

    def _begin_run(self, level: int) -> None:
        """Begin a run of `level`."""
        self._end_run()
        state, cursor = self._state, self._cursor
        if cursor is None or cursor.level != level:
            self._cursor = self._store.cursor(state.number, level)
        end = self._ends.get(level)
        position: int = state.ends.get(level, 0) if end is None else end
        self._level = level
        self._next = position
        self._offset = state.stored(level, position) - position

    def _end_run(self) -> None:
        """Count the last run with those before."""
        level = self._level
        if level != _NO_LEVEL:
            self._levels += bytes((level,)) * self._run_count
            self._ends[level] = self._next
            self._level = _NO_LEVEL
            self._run_count = 0
