"""The streams of one virtual host; one job at a time writes and syncs what was appended to all of them.

A job syncs each file that it wrote to; what is appended meanwhile shares the next job (group commit).
"""

from collections.abc import Callable

from warren.limits import STORE_PENDING_SIZE_MAX
from warren.model.confirm_listener import ConfirmListener
from warren.model.message import Message
from warren.store.disk import TRANSIENT_ERRNOS, DiskStep
from warren.store.message_store import StorePort
from warren.store.streams.chunk import MessageRun
from warren.store.streams.stream_log import StreamLog, StreamLogDependencies


class StreamStore:
    """The open streams of one virtual host; created by `recovery.open_streams`."""

    __slots__ = (
        "_batch_waiting", "_dirty", "_files", "_in_flight", "_is_announced", "_is_busy", "_is_closed",
        "_on_closed", "_pending_size", "_port", "_retried", "_waiting", "failure", "logs",
    )  # fmt: skip

    def __init__(self, files: StreamLogDependencies, port: StorePort, logs: dict[int, StreamLog]) -> None:
        self._files = files
        self._port = port
        # By the number of the stream.
        self.logs = logs
        # Streams with something to write, and streams that are part of the job in progress.
        self._dirty: list[StreamLog] = []
        self._in_flight: list[StreamLog] = []
        self._pending_size = 0
        self._is_announced = False
        self._is_busy = False
        self._is_closed = False
        self._on_closed: Callable[[], None] | None = None
        self.failure: OSError | None = None
        self._retried: list[DiskStep] = []
        # Listeners for the next batch, and those for the batch in progress, with the first and last sequence.
        self._waiting: list[tuple[ConfirmListener, int, int]] = []
        self._batch_waiting: list[tuple[ConfirmListener, int, int]] = []

    @property
    def is_idle(self) -> bool:
        """True if everything appended was written."""
        return not (self._is_busy or self._dirty or self._waiting or self._retried)

    def log(self, number: int) -> StreamLog:
        """The stream with `number`; created if it does not exist."""
        log = self.logs.get(number)
        if log is None:
            log = StreamLog(number, self._files, [])
            self.logs[number] = log
        return log

    def begin(self, log: StreamLog) -> None:
        """Write the epoch of `log` to disk before there is a message in it."""
        if not log.segments:
            log.begin()
            self.mark_dirty(log)

    def append(self, log: StreamLog, message: Message) -> int:
        """Append `message` to `log`; returns its offset."""
        offset = log.append(message)
        self._appended(log, len(message.content))
        return offset

    def _appended(self, log: StreamLog, size: int) -> None:
        before = self._pending_size
        self._pending_size = before + size
        if before <= STORE_PENDING_SIZE_MAX < self._pending_size:
            self._port.fell_behind()
        self.mark_dirty(log)

    def append_as(self, log: StreamLog, message: Message, producer: str, sequence: int) -> bool:
        """Append `message` to `log`; False if `producer` has sent it or a later one before."""
        if log.append_as(message, producer, sequence) is None:
            return False
        self._appended(log, len(message.content))
        return True

    def append_run_as(self, log: StreamLog, run: MessageRun, producer: str, sequence: int) -> int:
        """Append those messages of `run` to `log` that `producer` has not sent before; returns their number.

        The first message of the run has the given `sequence`, the others follow.
        """
        kept = log.append_run_as(run, producer, sequence)
        if kept:
            self._appended(log, run.byte_count)
        return kept

    def store_offset(self, log: StreamLog, reference: str, offset: int) -> None:
        """Store `offset` for the consumer `reference` of `log`."""
        log.store_offset(reference, offset)
        if log.has_work:
            self.mark_dirty(log)

    def confirm(self, confirmation: ConfirmListener, sequence: int) -> None:
        """Call `confirmation` with `sequence` when everything appended before is synced."""
        if self._waiting:
            asking, first, last = self._waiting[-1]
            if asking is confirmation and sequence == last:
                return
            if asking is confirmation and sequence == last + 1:
                confirmation.expect(sequence)
                self._waiting[-1] = (asking, first, sequence)
                return
        confirmation.expect(sequence)
        self._waiting.append((confirmation, sequence, sequence))

    def mark_dirty(self, log: StreamLog) -> None:
        """Record that `log` has something to write or to delete."""
        if not log.is_dirty:
            log.is_dirty = True
            self._dirty.append(log)
        if not self._is_announced:
            self._is_announced = True
            self._port.commit_due()

    def delete(self, log: StreamLog) -> None:
        """Delete `log` and its files."""
        self.logs.pop(log.number, None)
        log.delete_segments()
        self.mark_dirty(log)

    def maintain(self, now: int) -> None:
        """Trim all streams by their retention; called periodically."""
        for log in list(self.logs.values()):
            self.trim(log, now)

    def trim(self, log: StreamLog, now: int) -> None:
        """Trim `log` by its retention."""
        log.trim(now)
        if log.has_work:
            self.mark_dirty(log)

    def commit(self) -> None:
        """Write what is pending; if a batch is in progress, it is written with the next one."""
        self._is_announced = False
        if self._is_busy or self._is_closed or self.failure is not None:
            return
        self._in_flight, self._dirty = self._dirty, []
        steps: list[DiskStep] = []
        for log in self._in_flight:
            steps += log.take_batch()
            log.is_dirty = log.has_work
            if log.is_dirty:
                self._dirty.append(log)
        if self._pending_size > STORE_PENDING_SIZE_MAX:
            self._port.caught_up()
        self._pending_size = 0
        if not self._dirty:
            # Otherwise a part of what they wait for is not in this batch.
            self._batch_waiting, self._waiting = self._waiting, []
        if steps:
            self._submit(steps)
        else:
            self._confirm()

    def retry(self) -> None:
        """Submit the failed batch again, for example when the disk has room again."""
        if self._retried and not self._is_busy:
            self._submit(self._retried)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Write what is pending, then call `on_closed`; it is called after a failure as well."""
        self._on_closed = on_closed
        if not self._is_busy:
            self.commit()
        self._end_if_done()

    # --- private -------------------------------------------------------------------------------

    def _submit(self, steps: list[DiskStep]) -> None:
        self._is_busy = True
        self._retried = steps
        self._files.disk.submit(steps, self._done)

    def _done(self, error: OSError | None) -> None:
        """Handle the end of a job: confirm its messages, or report the failure."""
        self._is_busy = False
        if error is not None:
            self.failure = error
            self._port.failed(error, is_full=error.errno in TRANSIENT_ERRNOS)
            self._end_if_done()
            return
        self._retried = []
        if self.failure is not None:
            self.failure = None
            self._port.recovered()
        self._confirm()
        in_flight, self._in_flight = self._in_flight, []
        for log in in_flight:
            log.written()
        if self._dirty or self._waiting:
            self.commit()
        self._end_if_done()

    def _confirm(self) -> None:
        told, self._batch_waiting = self._batch_waiting, []
        for confirmation, first, last in told:
            confirmation.done(first, last)

    def _end_if_done(self) -> None:
        is_idle = not (self._is_busy or self._dirty or self._waiting)
        if self._on_closed is not None and (is_idle or self.failure is not None):
            on_closed, self._on_closed = self._on_closed, None
            self._is_closed = True
            on_closed()
