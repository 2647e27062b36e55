"""Publisher confirms of the stream protocol, combined per turn."""

from collections import deque
from collections.abc import Callable

from warren.framing.outbox import Outbox
from warren.model.confirm_listener import ConfirmListener
from warren.session.streams.counts import StreamCounts
from warren.wire.streams.codes import ResponseCode
from warren.wire.streams.commands import PublishConfirm, PublishError
from warren.wire.streams.fields import PublishingError


class StreamConfirms(ConfirmListener):
    """The unconfirmed messages of one publisher.

    The store uses consecutive numbers, the client any sequences. Messages become safe in order of arrival.
    """

    __slots__ = (
        "_counted",
        "_done",
        "_failed",
        "_is_waiting",
        "_outbox",
        "_publisher",
        "_sequences",
        "_settled",
        "_totals",
        "confirmed_count",
        "failed_count",
    )

    def __init__(
        self, outbox: Outbox, publisher: int, *, totals: StreamCounts, settled: Callable[[int], None]
    ) -> None:
        """`settled` is called with the number of answered messages; `totals` counts for all publishers."""
        self._totals = totals
        self._outbox = outbox
        self._publisher = publisher
        self._settled = settled
        # The number of the last message, and the client's sequences of the unanswered ones.
        self._counted = 0
        self._sequences: deque[int] = deque()
        self._done: list[int] = []
        self._failed: list[PublishingError] = []
        self._is_waiting = False
        # The numbers of confirmed and of refused messages.
        self.confirmed_count = 0
        self.failed_count = 0

    @property
    def published_count(self) -> int:
        """The number of published messages."""
        return self.confirmed_count + self.failed_count + len(self._sequences)

    def next(self, sequence: int) -> int:
        """Register a message with `sequence`; return its number for the store."""
        self._counted += 1
        self._sequences.append(sequence)
        self._totals.published += 1
        return self._counted

    def expect(self, sequence: int) -> None:
        """Nothing to do: exactly one answer is due for each message."""

    def done(self, first: int, last: int) -> None:
        """Confirm the messages `first` to `last`, the oldest without an answer."""
        count = last - first + 1
        sequences = self._sequences
        self._done += [sequences.popleft() for _ in range(count)]
        self.confirmed_count += count
        self._totals.confirmed += count
        self._settled(count)
        self._answer_later()

    def refused(self, sequence: int) -> None:
        """Refuse message `sequence`, which could not be stored."""
        self._failed.append(PublishingError(self._sequences.popleft(), ResponseCode.INTERNAL_ERROR))
        self.failed_count += 1
        self._totals.failures[ResponseCode.INTERNAL_ERROR] += 1
        self._settled(1)
        self._answer_later()

    def fail(self, sequence: int, code: ResponseCode) -> None:
        """Refuse the message with the client's `sequence`, which was not accepted."""
        self._failed.append(PublishingError(sequence, code))
        self.failed_count += 1
        self._totals.published += 1
        self._totals.failures[code] += 1
        self._answer_later()

    def flush(self) -> None:
        """Send the due confirms and errors."""
        self._is_waiting = False
        if self._done:
            done, self._done = self._done, []
            self._outbox.raw(PublishConfirm(self._publisher, tuple(done)).encode())
        if self._failed:
            failed, self._failed = self._failed, []
            self._outbox.raw(PublishError(self._publisher, tuple(failed)).encode())

    def _answer_later(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._outbox.flush_later(self)
