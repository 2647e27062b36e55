"""What becomes one entry of the log of a quorum queue, from the first message to the commit.

place, settle, returned … ─▶ proposed ─ committed ─▶ messages enter the queue, confirms, releases

Messages that are settled in order of position are released as one run; publishes that follow one another are
confirmed as one. Most batches have one of each, for which no list is made.
"""

from collections.abc import Callable
from typing import Protocol

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import StoredMessage, body_size_of
from warren.queues.quorum.batch_codec import QuorumBatch
from warren.store.cursor import QueueCursor
from warren.store.message_store import MessageStore

_EMPTY = QuorumBatch()


class Waiting(Protocol):
    """Who waits for the commit of an entry."""

    def complete(self, *, is_lost: bool) -> None:
        """The entry is applied; or it `is_lost`: another replica leads, and may commit it or not."""


class PendingBatch:
    """The messages and commands of one entry, and what is to be done on this node when it is committed."""

    __slots__ = (
        "_asked_first", "_asked_last", "_asking", "_confirms", "_release_runs", "_released_count",
        "_released_cursor", "_released_end", "_waiting", "batch", "byte_count", "callbacks", "index",
        "messages", "released",
    )  # fmt: skip

    def __init__(self) -> None:
        # The index of the entry; 0 until it is proposed.
        self.index = 0
        # Its payload; empty until nothing is added any more.
        self.batch = _EMPTY
        # Its messages, in the order of the runs of the batch.
        self.messages: list[StoredMessage] = []
        # The size of the bodies of its messages.
        self.byte_count = 0
        # Settled messages, which are released in the store when that is committed, and the runs of their
        # positions: cursor, first and end; None for none but the last one, which can grow.
        self.released: list[StoredMessage] = []
        self._release_runs: list[tuple[QueueCursor, int, int]] | None = None
        self._released_cursor: QueueCursor | None = None
        self._released_end = 0
        self._released_count = 0
        # Those who wait for the commit, and what is called when the entry is applied; None for nothing.
        self._waiting: list[Waiting] | None = None
        self.callbacks: list[Callable[[], None]] | None = None
        # Confirms by listener, as ranges of sequences; None for none but the last one, which can grow.
        self._confirms: list[tuple[ConfirmListener, int, int]] | None = None
        self._asking: ConfirmListener | None = None
        self._asked_first = 0
        self._asked_last = 0

    def add(self, message: StoredMessage) -> None:
        """Add `message`, which has the next position of the batch."""
        self.messages.append(message)
        self.byte_count += body_size_of(message)

    def sizes(self) -> tuple[int, ...]:
        """The size of the bodies of its messages, by run of the batch."""
        runs = self.batch.runs
        if len(runs) == 1:
            return (self.byte_count,)
        sizes, place = [], 0
        for run in runs:
            sizes.append(sum(map(body_size_of, self.messages[place : place + run.count])))
            place += run.count
        return tuple(sizes)

    def release(self, message: StoredMessage, cursor: QueueCursor, position: int) -> None:
        """Release `message` at `position` of `cursor` when the entry is committed."""
        if position != self._released_end or cursor is not self._released_cursor:
            self._end_released()
            self._released_cursor = cursor
        self._released_end = position + 1
        self._released_count += 1
        self.released.append(message)

    def finish_released(self, store: MessageStore) -> None:
        """Settle the positions of the messages in `released` in `store`."""
        if self._release_runs is not None:
            for cursor, first, end in self._release_runs:
                store.finish(cursor, first, end)
        if self._released_count:
            end = self._released_end
            store.finish(self._released_cursor, end - self._released_count, end)  # type: ignore[arg-type]

    def finish(self, cursor: QueueCursor, first: int, end: int) -> None:
        """Settle the positions of `cursor` from `first` up to `end` when the entry is committed."""
        self._end_released()
        if self._release_runs is None:
            self._release_runs = []
        self._release_runs.append((cursor, first, end))

    def wait(self, waiting: "Waiting") -> None:
        """Complete `waiting` when the entry is committed and applied."""
        if self._waiting is None:
            self._waiting = []
        self._waiting.append(waiting)

    def call_back(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the entry is committed and applied."""
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append(callback)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Answer publish `sequence` of `confirmation` when the entry is committed."""
        confirmation.expect(sequence)
        if confirmation is self._asking and sequence == self._asked_last + 1:
            self._asked_last = sequence
            return
        self._end_asking()
        self._asking = confirmation
        self._asked_first = self._asked_last = sequence

    def confirms(self) -> list[tuple[ConfirmListener, int, int]]:
        """Who waits for an answer, in order: a listener, with its first and its last publish of a run."""
        self._end_asking()
        return self._confirms or []

    def answer(self) -> None:
        """Tell publishers and others who wait that the entry is committed, in order."""
        if self._confirms is not None:
            for confirmation, first, last in self._confirms:
                confirmation.done(first, last)
        if self._asking is not None:
            self._asking.done(self._asked_first, self._asked_last)
        if self.callbacks is not None:
            for callback in self.callbacks:
                callback()
        if self._waiting is not None:
            for waiting in self._waiting:
                waiting.complete(is_lost=False)

    def lose(self) -> None:
        """Tell those who wait that another replica leads now."""
        for waiting in self._waiting or ():
            waiting.complete(is_lost=True)

    def refuse(self) -> None:
        """Tell publishers that their messages are not stored, as far as this node can say."""
        self._end_asking()
        for confirmation, first, last in self._confirms or ():
            for sequence in range(first, last + 1):
                confirmation.refused(sequence)

    def _end_released(self) -> None:
        if self._released_count:
            end = self._released_end
            run = self._released_cursor, end - self._released_count, end
            if self._release_runs is None:
                self._release_runs = []
            self._release_runs.append(run)  # type: ignore[arg-type]
            self._released_cursor = None
            self._released_count = 0

    def _end_asking(self) -> None:
        if self._asking is not None:
            if self._confirms is None:
                self._confirms = []
            self._confirms.append((self._asking, self._asked_first, self._asked_last))
            self._asking = None
