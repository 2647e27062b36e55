"""What becomes one entry of the log of a quorum queue, from the first message to the commit.

place, settle, returned … ─▶ proposed ─ committed ─▶ messages enter the queue, confirms, releases
"""

from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.model.message import StoredMessage, body_size_of
from warren.queues.quorum.batch_codec import QuorumBatch
from warren.store.cursor import QueueCursor

_EMPTY = QuorumBatch()


class PendingBatch:
    """The messages and commands of one entry, and what is to be done on this node when it is committed."""

    __slots__ = (
        "_asked_first", "_asked_last", "_asking", "_confirms", "batch", "byte_count", "callbacks",
        "index", "messages", "releases",
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
        # Settled messages, which are released in the store when that is committed.
        self.releases: list[tuple[StoredMessage, QueueCursor, int]] = []
        # Called when the entry is committed and applied.
        self.callbacks: list[Callable[[], None]] = []
        # Confirms by listener, as ranges of sequences; the last range can grow.
        self._confirms: list[tuple[ConfirmListener, int, int]] = []
        self._asking: ConfirmListener | None = None
        self._asked_first = 0
        self._asked_last = 0

    def add(self, message: StoredMessage) -> None:
        """Add `message`, which has the next position of the batch."""
        self.messages.append(message)
        self.byte_count += body_size_of(message)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Answer publish `sequence` of `confirmation` when the entry is committed."""
        confirmation.expect(sequence)
        if confirmation is self._asking and sequence == self._asked_last + 1:
            self._asked_last = sequence
            return
        self._end_asking()
        self._asking = confirmation
        self._asked_first = self._asked_last = sequence

    def answer(self) -> None:
        """Tell publishers and others who wait that the entry is committed, in order."""
        self._end_asking()
        for confirmation, first, last in self._confirms:
            confirmation.done(first, last)
        for callback in self.callbacks:
            callback()

    def refuse(self) -> None:
        """Tell publishers that their messages are not stored, since the batch will not be proposed."""
        self._end_asking()
        for confirmation, first, last in self._confirms:
            for sequence in range(first, last + 1):
                confirmation.refused(sequence)

    def _end_asking(self) -> None:
        if self._asking is not None:
            self._confirms.append((self._asking, self._asked_first, self._asked_last))
            self._asking = None
