"""Publisher confirms: coalesces the answers to publish sequences (RabbitMQ's confirm.select).

All sequences up to `_answered` were answered. Later ones that are settled wait for `flush`, once per turn,
which sends one frame for each run of equal outcomes. As in RabbitMQ, nacks have multiple and requeue set.

Most sequences wait for one store, which settles them in order: they form a run, of which only the two ends
are stored. Sequences that do not fit into the run are counted one by one.

    answered │ settled │ run: one answer is due for each │ others, counted in `_due` │ last
"""

from itertools import groupby

from warren.framing.outbox import Outbox
from warren.model.confirm_listener import ConfirmListener
from warren.model.counters import Counters
from warren.wire.methods import BasicNack

# 13 bytes of payload, class 60, method 80; then the bytes after the tag: multiple, and the end of the frame.
_ACK_SIZE_AND_IDS = b"\x00\x00\x00\x0d\x00\x3c\x00\x50"
_SINGLE_END = b"\x00\xce"
_MULTIPLE_END = b"\x01\xce"


class Confirms(ConfirmListener):
    """The publisher confirms of one channel in confirm mode."""

    __slots__ = (
        "_ack_head",
        "_ahead",
        "_answered",
        "_channel_number",
        "_counters",
        "_due",
        "_failure",
        "_first_due",
        "_is_closed",
        "_is_waiting",
        "_outbox",
        "_refused",
        "_run_end",
        "_run_first",
        "_totals",
        "last",
    )

    def __init__(self, outbox: Outbox, channel_number: int, counters: Counters, totals: Counters) -> None:
        self._outbox = outbox
        # The counters of the channel, and those of its virtual host.
        self._counters = counters
        self._totals = totals
        self._channel_number = channel_number
        # A basic.ack frame up to the delivery tag, prepared because synchronous publishers wait for it.
        self._ack_head = b"\x01" + channel_number.to_bytes(2, "big") + _ACK_SIZE_AND_IDS
        # The sequence of the latest publish; the first is 1.
        self.last = 0
        self._answered = 0
        # True while `flush` is registered with the outbox.
        self._is_waiting = False
        self._is_closed = False
        # What has broken it, if anything.
        self._failure: Exception | None = None
        # The run [first, end): one answer is due for each sequence. Sequences in `_due` are higher.
        self._run_first = 0
        self._run_end = 0
        # Sequence -> number of due answers; and the lowest of these sequences, if there are any.
        self._due: dict[int, int] = {}
        self._first_due = 0
        # Sequences answered while a lower one was still due.
        self._ahead: set[int] = set()
        # Refused sequences that are not answered yet.
        self._refused: set[int] = set()

    def next(self) -> int:
        """Return the sequence of the message that is being published."""
        self.last += 1
        if not self._is_waiting:
            self._answer_later()
        return self.last

    def expect(self, sequence: int) -> None:
        """Register one more due answer for `sequence`: the latest, or one with due answers."""
        if not self._due:
            if self._run_first == self._run_end:
                self._run_first = sequence
                self._run_end = sequence + 1
                return
            if sequence == self._run_end:
                self._run_end = sequence + 1
                return
        if sequence < self._run_end:
            self._end_run()
        if not self._due:
            self._first_due = sequence
        self._due[sequence] = self._due.get(sequence, 0) + 1

    def done(self, first: int, last: int) -> None:
        """Count one answer for each sequence from `first` to `last`: the messages are safe."""
        if not self._is_waiting:
            self._answer_later()
        if first == self._run_first and last < self._run_end:
            self._run_first = last + 1
            return
        if first < self._run_end:
            self._end_run()
        for sequence in range(first, last + 1):
            due = self._due.pop(sequence) - 1
            if due:
                self._due[sequence] = due
                continue
            if sequence > self._first_due or self._run_first < self._run_end:
                self._answer_ahead(sequence)
            if sequence == self._first_due and self._due:
                self._pass_first_due()

    def refused(self, sequence: int) -> None:
        """Count one answer for `sequence`: a queue has refused the message."""
        self._refused.add(sequence)
        self.done(sequence, sequence)

    def failed(self, error: Exception) -> None:
        """End the connection as it writes next, since `error` may have lost an answer."""
        self._failure = error
        if not self._is_waiting:
            self._answer_later()

    @property
    def unconfirmed_count(self) -> int:
        """The number of publishes that are not confirmed yet."""
        return self.last - self._answered - len(self._ahead)

    def flush(self) -> None:
        """Send basic.ack or basic.nack for the settled sequences."""
        self._is_waiting = False
        if self._failure is not None:
            raise self._failure
        self._flush_to(self.last)

    def flush_before(self, sequence: int) -> None:
        """Answer the settled sequences before `sequence`, whose message is about to be returned.

        RabbitMQ does so, and some clients depend on a confirm between two publishes.
        """
        self._flush_to(sequence - 1)

    def _flush_to(self, last: int) -> None:
        if self._is_closed:
            return
        settled = last
        if self._run_first < self._run_end:
            settled = min(self._run_first - 1, last)
        elif self._due:
            settled = min(self._first_due - 1, last)
        if settled <= self._answered:
            return
        if not self._refused and not self._ahead:
            self._ack(settled, settled - self._answered > 1)
            self._count(settled - self._answered)
        else:
            self._answer_runs(settled)
        self._answered = settled

    def close(self) -> None:
        """Flush for the last time: no frame may follow on a channel that ends."""
        self.flush()
        self._is_closed = True

    def _end_run(self) -> None:
        """Move the sequences of the run to `_due`."""
        if self._run_first < self._run_end:
            self._first_due = self._run_first
        for sequence in range(self._run_first, self._run_end):
            self._due[sequence] = 1
        self._run_first = self._run_end = 0

    def _pass_first_due(self) -> None:
        """Advance `_first_due` to the next due sequence; amortized constant time."""
        first = self._first_due
        while first not in self._due:
            first += 1
        self._first_due = first

    def _answer_later(self) -> None:
        self._is_waiting = True
        self._outbox.flush_later(self)

    def _answer_runs(self, settled: int) -> None:
        """Send one frame for each run of equal outcomes, without the sequences that were answered ahead."""
        numbers = range(self._answered + 1, settled + 1)
        for is_refused, run in groupby(
            (number for number in numbers if number not in self._ahead), self._refused.__contains__
        ):
            *others, last = run
            if is_refused:
                self._outbox.method(self._channel_number, BasicNack(last, True, True))
            else:
                self._ack(last, bool(others))
                self._count(len(others) + 1)
        self._refused.difference_update(numbers)
        self._ahead.difference_update(numbers)

    def _answer_ahead(self, sequence: int) -> None:
        """Answer `sequence` at once, although a lower sequence is still due."""
        if self._is_closed:
            return
        self._ahead.add(sequence)
        if sequence in self._refused:
            self._refused.discard(sequence)
            self._outbox.method(self._channel_number, BasicNack(sequence, False, True))
        else:
            self._ack(sequence, False)
            self._count(1)

    def _count(self, confirmed: int) -> None:
        self._counters.confirmed += confirmed
        self._totals.confirmed += confirmed

    def _ack(self, sequence: int, multiple: bool) -> None:
        number = sequence.to_bytes(8, "big")
        self._outbox.raw(b"".join((self._ack_head, number, _MULTIPLE_END if multiple else _SINGLE_END)))
