"""What a publisher is told: sequences of what is safe, together for each turn."""

from collections import deque
from collections.abc import Callable

from warren.model.confirm_listener import ConfirmListener
from warren.session.outbox import Outbox
from warren.session.streams.counts import StreamCounts
from warren.wire.streams.codes import ResponseCode
from warren.wire.streams.commands import PublishConfirm, PublishError
from warren.wire.streams.fields import PublishingError


class StreamConfirms(ConfirmListener):
    """The messages of one publisher that are not safe yet.

    The store counts them; a client numbers them as it likes. They become safe in the order of their coming.
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
        """`settled` is told how many have got their answers; all publishers are counted in `totals`."""
        self._totals = totals
        self._outbox = outbox
        self._publisher = publisher
        self._settled = settled
        # The number of the last that came, and the client's of those that have no answer.
        self._counted = 0
        self._sequences: deque[int] = deque()
        self._done: list[int] = []
        self._failed: list[PublishingError] = []
        self._is_waiting = False
        # How many were confirmed so far, and how many refused.
        self.confirmed_count = 0
        self.failed_count = 0

    @property
    def published_count(self) -> int:
        """How many have come so far."""
        return self.confirmed_count + self.failed_count + len(self._sequences)

    def next(self, sequence: int) -> int:
        """A message with `sequence` has come; answers its number for the store."""
        self._counted += 1
        self._sequences.append(sequence)
        self._totals.published += 1
        return self._counted

    def expect(self, sequence: int) -> None:
        """One answer is due for each: that is known."""

    def done(self, first: int, last: int) -> None:
        """Those from `first` to `last` are safe: the eldest that have no answer."""
        count = last - first + 1
        sequences = self._sequences
        self._done += [sequences.popleft() for _ in range(count)]
        self.confirmed_count += count
        self._totals.confirmed += count
        self._settled(count)
        self._answer_later()

    def refused(self, sequence: int) -> None:
        """It will not be kept."""
        self._failed.append(PublishingError(self._sequences.popleft(), ResponseCode.INTERNAL_ERROR))
        self.failed_count += 1
        self._totals.failures[ResponseCode.INTERNAL_ERROR] += 1
        self._settled(1)
        self._answer_later()

    def fail(self, sequence: int, code: ResponseCode) -> None:
        """The client's `sequence` was not taken at all."""
        self._failed.append(PublishingError(sequence, code))
        self.failed_count += 1
        self._totals.published += 1
        self._totals.failures[code] += 1
        self._answer_later()

    def flush(self) -> None:
        """Say what is due."""
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
